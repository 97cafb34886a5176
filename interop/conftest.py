"""Fixtures of the interop tests: a server, and programs of other languages that play scenarios against it.

By default the server is `pocketmq serve`. `--apache` plays the same scenarios against Apache RocketMQ, `--against
HOST:PORT` against whatever listens there; that shows that the scenarios themselves are true.
"""

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "bench"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from apache.server import ApacheServer  # noqa: E402
from programs import Played, Program, Run  # noqa: E402

from pocketmq.testing.process import ServerProcess  # noqa: E402

TEST_TIMEOUT_S = 900
"""The first test of a program also builds it and plays all its scenarios."""

PATIENT = {"waitTimeMillsInSendQueue": 5000}
"""Apache's broker refuses what waited for 200 ms, which happens on a busy machine just after its start."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interop tests")
    group.addoption("--require-interop", action="store_true", help="a missing Java, Maven or Go is a failure")
    group.addoption("--against", metavar="HOST:PORT", help="play against the server of this name server")
    group.addoption("--apache", action="store_true", help="play against Apache RocketMQ, started for this")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def missing(pytestconfig: pytest.Config) -> Callable[[Exception], None]:
    """What to do when a tool is missing: skip, or fail where the interop tests are required."""

    def react(reason: Exception) -> None:
        if pytestconfig.getoption("--require-interop") or os.environ.get("POCKETMQ_REQUIRE_INTEROP"):
            pytest.fail(str(reason))
        pytest.skip(str(reason))

    return react


@pytest.fixture(scope="session")
def start_server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Any]]:
    """Starts a server that can be killed and started again; all are stopped at the end of the session."""
    with ExitStack() as stack:

        def start() -> ServerProcess | ApacheServer:
            if pytestconfig.getoption("--against"):
                pytest.skip("a server given by --against is not ours to restart")
            folder = tmp_path_factory.mktemp("server")
            if pytestconfig.getoption("--apache"):
                return stack.enter_context(ApacheServer(folder, settings=PATIENT))
            return stack.enter_context(ServerProcess(folder / "data"))

        yield start


@pytest.fixture(scope="session")
def name_server(pytestconfig: pytest.Config, start_server: Callable[[], Any]) -> str:
    """The name server of the server that all scenarios share."""
    given: str | None = pytestconfig.getoption("--against")
    return given or start_server().namesrv


class Plays:
    """Plays all scenarios of a program that this session asks for in one process, when the first of them is needed."""

    def __init__(self, items: list[pytest.Item], name_server: str) -> None:
        self._wanted: dict[str, list[str]] = {}
        for item in items:
            parameters = getattr(getattr(item, "callspec", None), "params", {})
            if "scenario" in parameters and "program" in parameters:
                self._wanted.setdefault(parameters["program"].name, []).append(parameters["scenario"])
        self._name_server = name_server
        self._played: dict[str, Played] = {}

    def report(self, program: Program, scenario: str) -> dict[str, object]:
        """How a scenario went. Raises MissingToolError."""
        if program.name not in self._played:
            run = Run(program, self._name_server, new_run(program), self._wanted[program.name])
            self._played[program.name] = run.finish()
        played = self._played[program.name]
        silent = {"ok": False, "detail": f"the program said nothing about it; its errors:\n{played.errors}"}
        return played.reports.get(scenario, silent)


@pytest.fixture(scope="session")
def plays(request: pytest.FixtureRequest, name_server: str) -> Plays:
    return Plays(request.session.items, name_server)


def new_run(program: Program) -> str:
    """A prefix for topics and groups that nobody used before."""
    return f"{program.name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def run_name() -> Callable[[Program], str]:
    return new_run
