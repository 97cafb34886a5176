"""The clients of the endpoint: one session for each client id, a member of the broker's one registry.

Theory of operation. A client says what it is in its settings, over its telemetry stream; that makes its session. The
session is what the registry of clients knows as the "connection" of its producers and consumers, so that operators see
gRPC clients beside all others. Heartbeats keep it alive; it ends when the client says so, or when the registry has not
heard from it for too long. A telemetry stream that breaks does not end it: clients open another one, and meanwhile
nothing can be asked of them.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from pocketmq.broker.heartbeats import Beat, ConsumerBeat, Heartbeats
from pocketmq.grpc.calls import Address, Call
from pocketmq.grpc.names import group_of, topic_of
from pocketmq.model.config import Subscription
from pocketmq.views.filters import SQL92, TAG
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto

if TYPE_CHECKING:
    from collections.abc import Callable

    from pocketmq.broker.broker import Broker
    from pocketmq.broker.transaction_checks import Check

SESSIONS_MAX = 100_000
COMMANDS_MAX = 1_000
"""Most commands that wait for one client."""
CONGESTED_COMMANDS = 64

PRODUCER, PUSH_CONSUMER, SIMPLE_CONSUMER, PULL_CONSUMER = 1, 2, 3, 4
CLIENT_TYPES = {
    PRODUCER: "producer",
    PUSH_CONSUMER: "push consumer",
    SIMPLE_CONSUMER: "simple consumer",
    PULL_CONSUMER: "pull consumer",
}
_CONSUMERS = frozenset({PUSH_CONSUMER, SIMPLE_CONSUMER, PULL_CONSUMER})
_CONSUME_TYPES = {PUSH_CONSUMER: "CONSUME_PASSIVELY"}
SQL = 2


class Outbox:
    """What waits to be written to one telemetry stream."""

    def __init__(self) -> None:
        self._commands: deque[Proto] = deque()
        self._wake = asyncio.Event()
        self.closed = False

    def __len__(self) -> int:
        return len(self._commands)

    def put(self, command: Proto) -> bool:
        """Queue a command; False when the client does not read, or is gone."""
        if self.closed or len(self._commands) >= COMMANDS_MAX:
            return False
        self._commands.append(command)
        self._wake.set()
        return True

    def close(self) -> None:
        """Nothing more will come; what waits is still delivered."""
        self.closed = True
        self._wake.set()

    async def take(self) -> Proto | None:
        """The next command; None when there will be none."""
        while not self._commands:
            if self.closed:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._commands.popleft()


class Session:
    """One client. For the registry of clients it is the connection of its producers and consumers."""

    def __init__(self, sessions: "Sessions", call: Call, settings: Proto) -> None:
        self._sessions = sessions
        self.client_id = call.client_id
        self.peer_address: Address = call.peer_address
        self.settings = settings
        """As the client sent them."""
        self.outbox: Outbox | None = None
        """Its telemetry stream, while there is one."""

    @property
    def client_type(self) -> int:
        """The number of its type; told from what it does when it does not say."""
        if self.settings.client_type:
            return int(self.settings.client_type)
        return PRODUCER if self.settings.WhichOneof("pub_sub") == "publishing" else PUSH_CONSUMER

    @property
    def closed(self) -> bool:
        """True when it has ended."""
        return self._sessions.find(self.client_id) is not self

    def close(self) -> None:
        """End it: the registry has not heard from the client for too long."""
        self._sessions.drop(self)

    def attach(self, outbox: Outbox) -> None:
        """Another telemetry stream takes over."""
        if self.outbox is not None and self.outbox is not outbox:
            self.outbox.close()
        self.outbox = outbox

    def detach(self, outbox: Outbox) -> None:
        """A telemetry stream has ended."""
        if self.outbox is outbox:
            self.outbox = None

    # What `pocketmq.broker.transaction_checks` asks of a producer's connection.

    def ready_for_check(self) -> bool | None:
        """Whether the client can be asked about a transaction now; None: not before it has read what it was sent."""
        if self.outbox is None or self.outbox.closed:
            return False
        return None if len(self.outbox) >= CONGESTED_COMMANDS else True

    def send_check(self, check: "Check") -> None:
        """Ask the client about a transaction."""
        if self.outbox is not None:
            self.outbox.put(self._sessions.check_command(check))


class Sessions:
    """All sessions of an endpoint."""

    def __init__(self, broker: "Broker", check_command: "Callable[[Check], Proto]") -> None:
        self._broker = broker
        self.check_command = check_command
        """Makes the command that asks about a transaction."""
        self._heartbeats = Heartbeats(broker.clients, broker.topic_service, broker.topics)
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, client_id: str) -> Session | None:
        """The session of a client."""
        return self._sessions.get(client_id)

    def get(self, call: Call) -> Session:
        """The session of the caller. Raises CodedError UNRECOGNIZED_CLIENT_TYPE: the client sends its settings then."""
        session = self._sessions.get(call.client_id)
        if session is None:
            raise CodedError(
                Code.UNRECOGNIZED_CLIENT_TYPE,
                f"the client {call.client_id} is not known here; it must send its settings by Telemetry first",
            )
        return session

    def settle(self, call: Call, settings: Proto) -> Session:
        """Take a client's settings: its session exists afterwards, and its groups have it as a member.

        Raises CodedError, PocketMQError for names and filters that cannot be, or when there are too many clients.
        """
        if settings.WhichOneof("pub_sub") is None:
            raise CodedError(
                Code.UNRECOGNIZED_CLIENT_TYPE, "the settings name neither topics to publish to nor subscriptions"
            )
        session = self._sessions.get(call.client_id)
        known = session is not None
        if session is None:
            self._check_type(settings)
            if len(self._sessions) >= SESSIONS_MAX:
                raise CodedError(Code.TOO_MANY_REQUESTS, f"{SESSIONS_MAX} clients are connected already")
            session = Session(self, call, settings)
        else:
            session.settings = settings
            session.peer_address = call.peer_address
        self.register(session, call)
        if not known:
            self._sessions[call.client_id] = session
        return session

    def _check_type(self, settings: Proto) -> None:
        if settings.client_type and settings.client_type not in CLIENT_TYPES:
            raise CodedError(
                Code.UNRECOGNIZED_CLIENT_TYPE, f"clients of the type {settings.client_type} are not served"
            )

    def register(self, session: Session, call: Call) -> None:
        """Make or keep the client a member of its groups. Raises PocketMQError."""
        settings = session.settings
        producers: list[str] = []
        consumers: list[ConsumerBeat] = []
        if settings.WhichOneof("pub_sub") == "publishing":
            # A producer has no group of its own; its topics stand for one.
            producers = [topic_of(topic) for topic in settings.publishing.topics]
        elif session.client_type in _CONSUMERS:
            consumers = [
                ConsumerBeat(
                    group_of(settings.subscription.group),
                    _CONSUME_TYPES.get(session.client_type, "CONSUME_ACTIVELY"),
                    "CLUSTERING",
                    "CONSUME_FROM_LAST_OFFSET",
                    [self._subscription(entry) for entry in settings.subscription.subscriptions],
                    False,
                )
            ]
        self._heartbeats.take(session, Beat(call.client_id, call.language, call.version, producers, consumers))

    def _subscription(self, entry: Proto) -> Subscription:
        expression_type = SQL92 if entry.expression.type == SQL else TAG
        return Subscription(
            topic=topic_of(entry.topic),
            sub_string=entry.expression.expression or "*",
            expression_type=expression_type,
            sub_version=self._broker.clock.time_ms(),
        )

    def drop(self, session: Session) -> None:
        """A client is gone."""
        if self._sessions.get(session.client_id) is session:
            del self._sessions[session.client_id]
        if session.outbox is not None:
            session.outbox.close()
        self._broker.clients.remove_connection(session)

    def close(self) -> None:
        """The endpoint closes: all clients are gone."""
        for session in list(self._sessions.values()):
            self.drop(session)
