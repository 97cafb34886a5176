"""Programs that were written for the Java and Go clients of RocketMQ do what they should."""

from collections.abc import Callable
from typing import Any

import pytest
from programs import PROGRAMS, MissingToolError, Program


@pytest.mark.parametrize(
    ("program", "scenario"),
    [
        pytest.param(program, scenario, id=f"{program.name}-{scenario}")
        for program in PROGRAMS
        for scenario in program.scenarios
    ],
)
def test_scenario(program: Program, scenario: str, plays: Any, missing: Callable[[Exception], None]) -> None:
    try:
        report = plays.report(program, scenario)
    except MissingToolError as error:
        missing(error)
    assert report["ok"], report["detail"]
