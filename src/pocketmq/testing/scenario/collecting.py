"""Lets pytest collect scenario files: each `*.scenario` is a test. In a conftest.py:

    from pocketmq.testing.scenario.collecting import pytest_collect_file

With `--pocketmq-url HOST:PORT` they are played on that cluster, in real time; with `--apache` too, it is Apache
RocketMQ. What cannot be played there is skipped, and says why.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pocketmq.testing.scenario.acting import Handler
from pocketmq.testing.scenario.playing import ScenarioError, play, read
from pocketmq.testing.scenario.script import ScriptError

SUFFIX = ".scenario"
SECONDS_MAX = 60.0
"""Scenarios that would take longer in real time are skipped on a real cluster."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    """One test for each file."""
    if file_path.suffix != SUFFIX:
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


class ScenarioFile(pytest.File):
    """One file."""

    def collect(self) -> Iterable["ScenarioItem"]:
        """The one test that it is."""
        yield ScenarioItem.from_parent(self, name=self.path.stem)


class ScenarioItem(pytest.Item):
    """One scenario."""

    handlers: Mapping[str, Handler] = {}

    def runtest(self) -> None:
        """Play it."""
        script = read(self.path)
        namesrv = self.config.getoption("--pocketmq-url", default=None)
        if namesrv is not None:
            apache = bool(self.config.getoption("--apache", default=False))
            obstacle = script.obstacle(apache=apache, seconds_max=SECONDS_MAX)
            if obstacle is not None:
                pytest.skip(obstacle)
        play(script, handlers=self.handlers, namesrv=namesrv)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """File, line and difference say it all."""
        if isinstance(excinfo.value, ScenarioError | ScriptError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is."""
        return self.path, 0, f"scenario {self.name}"
