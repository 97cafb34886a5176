"""Options of the project's own test runs."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("pocketmq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pocketmq")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pocketmq's own tests")
    group.addoption("--crashes", type=int, default=5, help="how often the crash tests kill a real broker (CI: 50)")
    group.addoption("--every-crash", action="store_true", help="crash the simulated broker everywhere")
    group.addoption("--crash-seed", type=int, default=1, help="seed of the moments at which they do")


@pytest.fixture
def crash_step(pytestconfig: pytest.Config) -> int:
    """Each how many-th disk operation the simulated broker crashes at."""
    return 1 if pytestconfig.getoption("--every-crash") else 10
