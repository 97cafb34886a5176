"""What a start that takes long says about how far it is."""

import pytest

from pocketmq.cli.serve import _ProgressLine
from pocketmq.log.recovery import Progress

MIB = 1 << 20


def shown(capsys: pytest.CaptureFixture[str], *steps: Progress) -> list[str]:
    line = _ProgressLine()
    for step in steps:
        line.show(step)
    return capsys.readouterr().err.splitlines()


def test_it_says_what_is_done_and_how_far_it_is_but_not_at_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [Progress("reading the log", done * MIB, 200 * MIB) for done in range(0, 201, 4)]
    assert shown(capsys, *steps) == [f"reading the log: {percent} % of 200 MiB" for percent in range(10, 101, 10)]


def test_a_second_phase_begins_again(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = Progress("reading the log", 5 * MIB, 10 * MIB), Progress("making the index again", 2 * MIB, 4 * MIB)
    assert shown(capsys, first, second) == ["reading the log: 50 % of 10 MiB", "making the index again: 50 % of 4 MiB"]


def test_a_start_that_is_done_at_once_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, Progress("reading the log", 10, 10)) == []
