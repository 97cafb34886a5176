"""Plays a scenario: each step, and a comparison of what it saw with what stands behind its arrow."""

import asyncio
import logging
import os
import uuid
from collections.abc import Coroutine, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pocketmq.model.errors import PocketMQError
from pocketmq.testing.loop import VirtualLoop
from pocketmq.testing.scenario.acting import VERBS, Handler, Play, Seen
from pocketmq.testing.scenario.script import Expected, Script, Step, Verb, parse_script, read_script
from pocketmq.testing.scenario.stage import BROKER, NAME_SERVER, RealStage, SimulatedStage
from pocketmq.wire.codes import ResponseCode

STEPS = ("world", "admin", "producing", "consuming", "looking")
POLL_S = 0.1
STEP_TIMEOUT_S = 60.0
"""Longest real time that a step may take on a real cluster beyond what it says itself."""
_BROKER_WAITS = 0.5

logger = logging.getLogger("pocketmq.testing.scenario")


class ScenarioError(AssertionError):
    """Something went otherwise than the scenario says; the message names file, line, step and what was seen."""


def verbs() -> list[Verb]:
    """All steps that there are."""
    for name in STEPS:
        import_module(f"pocketmq.testing.scenario.steps_{name}")
    return [verb for verb, _ in VERBS.values()]


def read(path: Path | str) -> Script:
    """Read a scenario from a file. Raises ScriptError."""
    return read_script(Path(path), verbs())


def parse(source: str, path: str = "scenario") -> Script:
    """Read a scenario from text. Raises ScriptError."""
    return parse_script(source, path, verbs())


def play(
    scenario: Script | Path | str,
    *,
    handlers: Mapping[str, Handler] | None = None,
    namesrv: str | None = None,
    seed: int = 0,
) -> None:
    """Play a scenario (or the file of that path) to its end.

    Args:
        scenario: what to play.
        handlers: functions that `consume ... handler=NAME` gives its messages to.
        namesrv: name servers of a cluster that runs somewhere. Default: in the simulation, on virtual time.
        seed: of the simulation.

    Raises:
        ScenarioError: something went otherwise than the scenario says.
        ScriptError: it cannot be understood.
    """
    script = scenario if isinstance(scenario, Script) else read(scenario)
    run(
        _play_real(script, handlers or {}, namesrv) if namesrv else _play_simulated(script, handlers or {}, seed),
        namesrv,
    )


def run(work: Coroutine[Any, Any, None], namesrv: str | None) -> None:
    """Run it on virtual time, or on real time when there is a cluster."""
    with asyncio.Runner(loop_factory=None if namesrv else VirtualLoop) as runner:
        runner.run(work)


async def _play_simulated(script: Script, handlers: Mapping[str, Handler], seed: int) -> None:
    stage = SimulatedStage(script.settings, seed)
    await stage.start(NAME_SERVER)
    await stage.start(BROKER)
    await stage.clock.sleep(_BROKER_WAITS)
    await _play_all(Play(script, stage, handlers))
    await stage.close()


async def _play_real(script: Script, handlers: Mapping[str, Handler], namesrv: str) -> None:
    stage = RealStage(namesrv, f"{os.getpid()}-{uuid.uuid4().hex[:6]}")
    try:
        await _play_all(Play(script, stage, handlers))
    finally:
        await stage.close()


async def _play_all(play: Play) -> None:
    began = play.stage.clock.monotonic()
    for step in play.script.steps:
        elapsed_s = play.stage.clock.monotonic() - began
        logger.info("%10.3f  %s", elapsed_s, step.text)
        try:
            await _play_step(play, step)
        except ValueError as error:
            raise _failed(play, step, elapsed_s, str(error)) from error


async def _play_step(play: Play, step: Step) -> None:
    expected = step.expected
    action = VERBS[step.verb.usage][1]
    deadline = play.stage.clock.monotonic() + float(step.options.get("within", 0.0))
    polls = step.verb.seen is not None and "after" not in step.verb.options
    while True:
        problem: str | None = None
        try:
            seen = await action(play, step)
        except PocketMQError as error:
            if expected is None or expected.error is None:
                if not polls or play.stage.clock.monotonic() >= deadline:
                    raise ValueError(f"{type(error).__name__} {error.code}: {error}") from error
                problem = str(error)
            else:
                _compare_error(expected, error)
                return
        else:
            if expected is None:
                return
            if expected.error is not None:
                raise ValueError("there was no error")
            problem = _difference(expected, seen or Seen())
        if problem is None:
            return
        if not polls or play.stage.clock.monotonic() >= deadline:
            raise ValueError(problem)
        await play.stage.clock.sleep(POLL_S)


def _compare_error(expected: Expected, error: PocketMQError) -> None:
    names = {"any", str(error.code), type(error).__name__}
    if error.code in ResponseCode.__members__.values():
        names.add(ResponseCode(error.code).name)
    if expected.error not in names:
        raise ValueError(f"the error was {type(error).__name__} {error.code}: {error}") from error
    if expected.error_text not in str(error):
        raise ValueError(f"the error says: {error}") from error


def _difference(expected: Expected, seen: Seen) -> str | None:
    if tuple(seen.words) != expected.words and (expected.words or not expected.facts or seen.words):
        return f"saw {' '.join(seen.words) or 'nothing'}"
    for name, value in expected.facts.items():
        if str(seen.facts.get(name)) != value:
            return f"{name} is {seen.facts.get(name)}"
    return None


def _failed(play: Play, step: Step, elapsed_s: float, problem: str) -> ScenarioError:
    return ScenarioError(f"{play.script.path}:{step.line}: {step.text}\n    {problem}\n    (at {elapsed_s:.3f} s)")
