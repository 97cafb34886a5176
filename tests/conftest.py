"""Options of the project's own test runs."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pocketmq's own tests")
    group.addoption("--crashes", type=int, default=5, help="how often the crash tests kill a real broker (CI: 50)")
    group.addoption("--crash-seed", type=int, default=1, help="seed of the moments at which they do")
