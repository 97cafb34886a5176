"""What a scenario is at while it is played: the stage, its consumers and transactions, and the moments it remembers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pocketmq.client import Consumer, Delivery, Transaction
from pocketmq.testing.scenario.script import Script, Step, Verb
from pocketmq.testing.scenario.stage import SimulatedStage, Stage
from pocketmq.testing.scenario.values import shown

Handler = Callable[[Delivery], Awaitable[object]]
"""What a consumer of a scenario may be made to do with its messages: it returns, or raises to give one back."""


@dataclass
class Seen:
    """What a step saw: words in order, and named facts."""

    words: list[str] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)


@dataclass
class Reader:
    """A consumer of the scenario: what it has taken and not settled, and what its handler did."""

    consumer: Consumer
    out: list[Delivery] = field(default_factory=list)
    handled: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


class Play:
    """One run of a scenario."""

    def __init__(self, script: Script, stage: Stage, handlers: Mapping[str, Handler]) -> None:
        self.script = script
        self.stage = stage
        self.handlers = handlers
        self.readers: dict[str, Reader] = {}
        self.transactions: dict[str, tuple[str, Transaction]] = {}
        """Name -> the producer that began it, and the transaction."""
        self.answers: dict[str, bool | None] = {}
        """Body -> what producers answer when they are asked about it."""
        self.asked: dict[str, int] = {}
        """Body -> how often they were asked."""
        self.moments: dict[str, int] = {}
        self.last_touched: dict[str, float] = {}
        """Body -> when it was last sent or given back, in seconds of the stage's clock."""

    @property
    def simulated(self) -> SimulatedStage:
        """The stage, for steps that only the simulation has."""
        assert isinstance(self.stage, SimulatedStage)
        return self.stage

    def touch(self, body: str) -> None:
        """Something was done with a message from which its delay counts."""
        self.last_touched[body] = self.stage.clock.monotonic()

    def reader(self, name: str) -> Reader:
        """The consumer of that name. Raises ValueError."""
        if name not in self.readers:
            raise ValueError(f"there is no consumer {name!r}; `consume {name} TOPIC group=GROUP` starts one")
        return self.readers[name]

    def transaction(self, name: str) -> tuple[str, Transaction]:
        """The transaction of that name, and who began it. Raises ValueError."""
        if name not in self.transactions:
            raise ValueError(f"there is no transaction {name!r}; `transaction begin {name} TOPIC BODY` begins one")
        return self.transactions[name]

    def time_ms(self, mark: str) -> int:
        """A remembered moment in ms since the epoch. Raises ValueError."""
        if mark not in self.moments:
            raise ValueError(f"nothing has remembered {mark}; write `remember {mark}` where it is")
        return self.moments[mark]

    async def check(self, message: Any) -> bool | None:
        """What producers answer when they are asked about a transaction."""
        body = shown(message.body)
        self.asked[body] = self.asked.get(body, 0) + 1
        return self.answers.get(body)


Action = Callable[[Play, Step], Awaitable[Seen | None]]

VERBS: dict[str, tuple[Verb, Action]] = {}
"""Usage -> what the step may look like, and what it does. Filled by the modules of steps."""


def step(usage: str, **about: Any) -> Callable[[Action], Action]:
    """Declare a step; its documentation is the docstring of the function."""

    def declare(action: Action) -> Action:
        VERBS[usage] = (Verb(usage, (action.__doc__ or "").strip(), **about), action)
        return action

    return declare
