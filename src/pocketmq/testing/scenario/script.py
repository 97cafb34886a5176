"""Reads scenarios: one step a line, checked against the table of verbs before anything is played.

# A filtered message does not stall the cursor.        (the first comment is the title)
set broker.delay_max_s=60                                (settings of the server, before the first step)
topic orders queues=2
send orders m1..m3 tag=new
receive c1 within=5s => m1 m2 m3                         (what is expected comes behind the arrow)
send orders huge size=5M => error 13 "too large"
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pocketmq.testing.scenario.values import Reader, expand

_TOKEN = re.compile(r'\s*((?:[^\s"]|"[^"]*")+)')
_OPTION = re.compile(r"([a-z][a-z-]*(?:\.[^=\"\s]+)?)=(.*)\Z", re.DOTALL)
_FACT = re.compile(r"([^=\"\s]+)=(.*)\Z", re.DOTALL)
ARROW = "=>"


class ScriptError(Exception):
    """A scenario that cannot be understood; the message names file and line."""


@dataclass(frozen=True)
class Verb:
    """What a step may look like. `usage` has its literal words in lower case and its arguments in upper case; a
    last argument with `...` takes any number of bodies, at least one."""

    usage: str
    doc: str
    options: Mapping[str, Reader] = field(default_factory=dict)
    seen: str | None = None
    """What may be expected of it, for people; None: nothing but an error."""
    facts: frozenset[str] = frozenset()
    """Names that may be expected of it as `name=value`; `*` stands for any."""
    only_simulated: bool = False

    @property
    def literals(self) -> tuple[str, ...]:
        """The words that name it."""
        return tuple(word for word in self.usage.split() if word.islower())

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(word for word in self.usage.split() if not word.islower())


@dataclass(frozen=True)
class Expected:
    """What stands behind an arrow."""

    words: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    """The code that an error must have, or `any`."""
    error_text: str = ""


@dataclass(frozen=True)
class Step:
    """One line."""

    line: int
    text: str
    verb: Verb
    arguments: Mapping[str, str]
    bodies: tuple[str, ...]
    options: Mapping[str, Any]
    properties: Mapping[str, str]
    expected: Expected | None


@dataclass(frozen=True)
class Script:
    """A scenario that was understood."""

    path: str
    title: str
    settings: Mapping[str, str]
    steps: tuple[Step, ...]
    only_simulated: str | None = None
    """Why it can be played in the simulation only, when it says so."""
    differs: str | None = None
    """Why Apache RocketMQ does otherwise, when it does."""

    @property
    def seconds(self) -> float:
        """How long it takes at least, in seconds, where time cannot be moved."""
        return sum(float(step.options.get(name, 0.0)) for step in self.steps for name in ("after", "for", "duration"))

    def obstacle(self, *, apache: bool, seconds_max: float) -> str | None:
        """Why it cannot be played on a cluster that runs somewhere; None when it can."""
        if self.only_simulated is not None:
            return self.only_simulated
        if apache and self.differs is not None:
            return f"Apache RocketMQ differs: {self.differs}"
        if self.settings:
            return f"needs a server with {next(iter(self.settings))} set"
        for step in self.steps:
            if step.verb.only_simulated:
                return f"line {step.line}: {step.text}"
        if self.seconds > seconds_max:
            return f"would take {self.seconds:g} s"
        return None


def read_script(path: Path, verbs: Sequence[Verb]) -> Script:
    """Read a file. Raises ScriptError, OSError."""
    return parse_script(path.read_text(encoding="utf-8"), str(path), verbs)


def parse_script(source: str, path: str, verbs: Sequence[Verb]) -> Script:
    """Read a scenario. Raises ScriptError."""
    title = ""
    settings: dict[str, str] = {}
    marks: dict[str, str] = {}
    steps: list[Step] = []
    for number, line in enumerate(source.splitlines(), start=1):
        text = line.strip()
        if not title and text.startswith("#"):
            title = text.lstrip("# ")
        try:
            tokens = _tokens(text)
            if not tokens:
                continue
            if tokens[0] in ("set", "simulated", "differs"):
                if steps:
                    raise ValueError(f"{tokens[0]} stands before the first step")
                _read_head(tokens, settings, marks)
            else:
                steps.append(_read_step(number, text, tokens, verbs))
        except ValueError as error:
            raise ScriptError(f"{path}:{number}: {error}") from error
    if not steps:
        raise ScriptError(f"{path}:1: there is no step in it")
    return Script(path, title, settings, tuple(steps), marks.get("simulated"), marks.get("differs"))


def _read_head(tokens: list[str], settings: dict[str, str], marks: dict[str, str]) -> None:
    name, *rest = tokens
    if name != "set":
        if len(rest) != 1:
            raise ValueError(f'{name} takes one sentence in quotes: {name} "why"')
        marks[name] = _unquoted(rest[0])
        return
    for token in rest:
        key, equals, value = token.partition("=")
        if not equals:
            raise ValueError(f"{token!r} is no setting; write section.name=value")
        settings[key] = _unquoted(value)


def _read_step(number: int, text: str, tokens: list[str], verbs: Sequence[Verb]) -> Step:
    before, after = (
        (tokens[: tokens.index(ARROW)], tokens[tokens.index(ARROW) + 1 :]) if ARROW in tokens else (tokens, None)
    )
    verb = _find_verb(before, verbs)
    arguments, bodies, options, properties = _read_call(verb, before[len(verb.literals) :])
    expected = None if after is None else _read_expected(verb, after)
    return Step(number, text, verb, arguments, bodies, options, properties, expected)


def _find_verb(tokens: list[str], verbs: Sequence[Verb]) -> Verb:
    found = [verb for verb in verbs if tuple(tokens[: len(verb.literals)]) == verb.literals]
    if not found:
        known = sorted({verb.literals[0] for verb in verbs})
        same = [verb.usage for verb in verbs if verb.literals[0] == tokens[0]]
        advice = f"write {', '.join(same)}" if same else f"the steps are {', '.join(known)}"
        raise ValueError(f"there is no step {' '.join(tokens[:2])!r}; {advice}")
    return max(found, key=lambda verb: len(verb.literals))


def _read_call(verb: Verb, tokens: list[str]) -> tuple[dict[str, str], tuple[str, ...], dict[str, Any], dict[str, str]]:
    words: list[str] = []
    options: dict[str, Any] = {}
    properties: dict[str, str] = {}
    for token in tokens:
        found = _OPTION.match(token)
        if found is None:
            words.append(_unquoted(token))
            continue
        name, value = found[1], _unquoted(found[2])
        if name.startswith("property.") and "property" in verb.options:
            properties[name.removeprefix("property.")] = value
        elif name in verb.options and name != "property":
            options[name] = verb.options[name](value)
        else:
            known = ", ".join(sorted(verb.options)) or "none"
            raise ValueError(f"{verb.literals[0]!r} has no option {name!r}; it has {known}")
    arguments: dict[str, str] = {}
    bodies: tuple[str, ...] = ()
    for name in verb.arguments:
        if name.endswith("..."):
            bodies = tuple(body for word in words for body in expand(word))
            words = []
            if not bodies:
                raise ValueError(f"{name} is missing: {verb.usage}")
        elif words:
            arguments[name] = words.pop(0)
        else:
            raise ValueError(f"{name} is missing: {verb.usage}")
    if words:
        raise ValueError(f"{words[0]!r} is too much: {verb.usage}")
    if "DURATION" in arguments:
        options["duration"] = verb.options["duration"](arguments["DURATION"])
    return arguments, bodies, options, properties


def _read_expected(verb: Verb, tokens: list[str]) -> Expected:
    if tokens and tokens[0] == "error":
        if not 2 <= len(tokens) <= 3:
            raise ValueError('write => error CODE, => error any, or => error CODE "words of the message"')
        return Expected(error=tokens[1], error_text=_unquoted(tokens[2]) if len(tokens) > 2 else "")
    if verb.seen is None:
        raise ValueError(f"of {verb.literals[0]!r} nothing can be expected but an error")
    words: list[str] = []
    facts: dict[str, str] = {}
    for token in tokens:
        found = (_FACT if "*" in verb.facts else _OPTION).match(token)
        if found is None:
            words += [_unquoted(token)] if token.startswith('"') else expand(token)
        elif found[1] in verb.facts or "*" in verb.facts:
            facts[found[1]] = _unquoted(found[2])
        else:
            known = ", ".join(sorted(verb.facts)) or "none"
            raise ValueError(f"{verb.literals[0]!r} shows no {found[1]!r}; it shows {known}")
    if not words and not facts:
        raise ValueError(f"behind the arrow something must stand: {verb.seen}, or error CODE")
    return Expected(() if words == ["nothing"] else tuple(words), facts)


def _tokens(text: str) -> list[str]:
    if text.count('"') % 2 and not text.startswith("#"):
        raise ValueError("a quote is not closed")
    tokens: list[str] = []
    for token in _TOKEN.findall(text):
        if token.startswith("#"):
            break
        tokens.append(token)
    return tokens


def _unquoted(word: str) -> str:
    return word.replace('"', "")
