"""A fake for each replaceable part of the SDK: it does the simplest thing that obeys the contract, and remembers.

    FakeRouter      FakeQueue (a WritableQueue)      FakeAllocator      FakeBuffer (a MessageBuffer)
    FakeCursors     FakeSerializer                   FakeClock

Each can be told to fail, with `fail`. See `pocketmq.client.parts` for the contracts.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pocketmq.client.parts import WritableQueue
from pocketmq.model.message import Message, MessageQueue, ReceivedMessage, SendReceipt
from pocketmq.model.seams import Cancellable
from pocketmq.testing.clock import START_MS


def make_received(topic: str = "topic", body: bytes = b"", *, offset: int = 0, **fields: Any) -> ReceivedMessage:
    """A received message with plain values for everything that is not given."""
    values: dict[str, Any] = {
        "properties": {},
        "broker_name": "broker-a",
        "queue_id": 0,
        "physical_offset": offset * 128,
        "message_id": f"{offset:032X}",
        "offset_message_id": f"7F00000100002A9F{offset * 128:016X}",
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp": START_MS,
        "born_host": "127.0.0.1:40000",
        "store_timestamp": START_MS,
        "store_host": "127.0.0.1:10911",
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "store_size": 91 + len(topic) + len(body),
    }
    return ReceivedMessage(topic=topic, body=body, queue_offset=offset, **(values | fields))


class _Failing:
    """Raises what it was told to, once for each time."""

    def __init__(self) -> None:
        self._errors: list[BaseException] = []

    def fail(self, error: BaseException, *, times: int = 1) -> None:
        """Raise `error` at the next `times` calls."""
        self._errors += [error] * times

    def _fail_if_asked(self) -> None:
        if self._errors:
            raise self._errors.pop(0)


class FakeQueue(_Failing):
    """A queue without a broker: keeps what is written, in `written`, and gives receipts with rising offsets.

    `hold` lets writers wait until `release`.
    """

    def __init__(self, topic: str = "topic", broker_name: str = "broker-a", queue_id: int = 0) -> None:
        super().__init__()
        self.queue = MessageQueue(topic, broker_name, queue_id)
        self.written: list[Message] = []
        self._open = asyncio.Event()
        self._open.set()

    def hold(self) -> None:
        """Let writers wait."""
        self._open.clear()

    def release(self) -> None:
        """Let them go on."""
        self._open.set()

    async def write(self, message: Message, timeout_s: float) -> SendReceipt:
        """Keep the message."""
        await self._open.wait()
        self._fail_if_asked()
        offset = len(self.written)
        self.written.append(message)
        message_id = message.properties.get("UNIQ_KEY") or f"{offset:032X}"
        offset_id = f"7F00000100002A9F{offset * 128:016X}"
        return SendReceipt(message_id=message_id, offset_message_id=offset_id, queue=self.queue, queue_offset=offset)


class FakeRouter(_Failing):
    """Always chooses the queue at `index`, or what `choice(message, queues)` says; keeps what was asked in `asked`."""

    def __init__(
        self, index: int = 0, *, choice: Callable[[Message, Sequence[WritableQueue]], WritableQueue] | None = None
    ) -> None:
        super().__init__()
        self.index = index
        self.asked: list[tuple[Message, list[MessageQueue], set[str]]] = []
        self._choice = choice

    def choose(self, message: Message, queues: Sequence[WritableQueue], avoid: Collection[str]) -> WritableQueue:
        """The queue at `index`, whatever is to be avoided."""
        self._fail_if_asked()
        self.asked.append((message, [queue.queue for queue in queues], set(avoid)))
        return self._choice(message, queues) if self._choice is not None else queues[self.index % len(queues)]


class FakeAllocator(_Failing):
    """Gives each consumer what it was told to give it in `shares` (client id -> queues); by default everything."""

    def __init__(self, shares: Mapping[str, Sequence[MessageQueue]] | None = None) -> None:
        super().__init__()
        self.shares: dict[str, Sequence[MessageQueue]] = dict(shares or {})
        self.asked: list[tuple[str, list[str], list[MessageQueue]]] = []

    def allocate(self, me: str, consumers: Sequence[str], queues: Sequence[MessageQueue]) -> list[MessageQueue]:
        """The share of `me`."""
        self._fail_if_asked()
        self.asked.append((me, list(consumers), list(queues)))
        return list(self.shares.get(me, queues))


class FakeBuffer:
    """A buffer of which everything can be seen: the messages that wait, that are `taken`, that are `settled`.

    It is never full by itself; set `full` to stop fetching.
    """

    def __init__(self, position: int = 0) -> None:
        self.full = False
        self.ready: list[ReceivedMessage] = []
        self.taken: list[ReceivedMessage] = []
        self.settled: list[ReceivedMessage] = []
        self._next_offset = position

    @property
    def position(self) -> int:
        """The lowest offset that is not settled, or where the next fetch begins."""
        unsettled = [message.queue_offset for message in (*self.ready, *self.taken)]
        return min([*unsettled, self._next_offset])

    @property
    def waiting(self) -> int:
        """Messages that can be taken."""
        return len(self.ready)

    @property
    def unsettled(self) -> int:
        """Messages that wait or are taken."""
        return len(self.ready) + len(self.taken)

    def put(self, messages: Sequence[ReceivedMessage], next_offset: int) -> None:
        """Add what a fetch brought."""
        self.ready += messages
        self._next_offset = next_offset

    def take(self, count_max: int) -> list[ReceivedMessage]:
        """Hand out waiting messages, lowest offset first."""
        messages = self.ready[:count_max]
        del self.ready[:count_max]
        self.taken += messages
        return messages

    def settle(self, message: ReceivedMessage) -> bool:
        """The message is done with; False when it is not taken."""
        if message not in self.taken:
            return False
        self.taken.remove(message)
        self.settled.append(message)
        return True

    def put_back(self, message: ReceivedMessage) -> None:
        """A taken message waits again, before all others."""
        if message in self.taken:
            self.taken.remove(message)
            self.ready.insert(0, message)

    def drop_waiting(self) -> int:
        """Forget the messages that nobody took."""
        dropped = len(self.ready)
        self._next_offset = min([*(message.queue_offset for message in self.ready), self._next_offset])
        self.ready.clear()
        return dropped

    def clear(self, position: int) -> None:
        """Forget everything and start again at `position`."""
        self.ready.clear()
        self.taken.clear()
        self._next_offset = position


class FakeCursors(_Failing):
    """Keeps positions in a dictionary, `positions`, and every call of `store` in `stored`."""

    def __init__(self, positions: Mapping[tuple[str, MessageQueue], int] | None = None) -> None:
        super().__init__()
        self.positions: dict[tuple[str, MessageQueue], int] = dict(positions or {})
        self.stored: list[tuple[str, dict[MessageQueue, int], bool]] = []

    async def load(self, group: str, queue: MessageQueue) -> int | None:
        """The position, or None."""
        self._fail_if_asked()
        return self.positions.get((group, queue))

    async def store(self, group: str, positions: Mapping[MessageQueue, int], *, final: bool) -> None:
        """Keep the positions."""
        self._fail_if_asked()
        self.stored.append((group, dict(positions), final))
        self.positions.update({(group, queue): position for queue, position in positions.items()})


class FakeSerializer(_Failing):
    """Gives each value a body that says nothing of it (`value 0`), and for that body the same object back."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[Any] = []

    def encode(self, value: Any, properties: dict[str, str]) -> bytes:
        """A body that stands for the value; adds the property `fake` with its number."""
        self._fail_if_asked()
        number = len(self.values)
        self.values.append(value)
        properties["fake"] = str(number)
        return b"value %d" % number

    def decode(self, body: bytes, properties: Mapping[str, str]) -> Any:
        """The very object that was encoded."""
        self._fail_if_asked()
        return self.values[int(body.removeprefix(b"value "))]


class _Call:
    """One call that a `FakeClock` will make."""

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """A clock that stands still until `advance`, which needs no event loop and returns when all that is due was called.

    For whole programs on virtual time take a `VirtualLoop` and its `VirtualClock`.
    """

    def __init__(self, *, start_ms: int = START_MS) -> None:
        self._start_ms = start_ms
        self._now = 0.0
        self._calls: list[tuple[float, int, _Call]] = []
        self._sequence = itertools.count()

    def time_ms(self) -> int:
        """Wall-clock time in ms since the epoch."""
        return self._start_ms + round(self._now * 1000)

    def monotonic(self) -> float:
        """Seconds that were advanced so far."""
        return self._now

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Call `callback(*args)` when `delay` seconds were advanced."""
        call = _Call(callback, args)
        heapq.heappush(self._calls, (self._now + max(0.0, delay), next(self._sequence), call))
        return call

    async def sleep(self, delay: float) -> None:
        """Wait until `delay` seconds were advanced."""
        if delay <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = self.call_later(delay, _wake, woken)
        try:
            await woken
        finally:
            call.cancel()

    @property
    def pending(self) -> int:
        """Calls that are still to come."""
        return sum(call.callback is not None for _, _, call in self._calls)

    def advance(self, seconds: float) -> None:
        """Move the time forward and make the calls that become due, in order, each at its moment."""
        target = self._now + seconds
        while self._calls and self._calls[0][0] <= target:
            when, _, call = heapq.heappop(self._calls)
            if call.callback is not None:
                self._now = max(self._now, when)
                callback, call.callback = call.callback, None
                callback(*call.args)
        self._now = target


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
