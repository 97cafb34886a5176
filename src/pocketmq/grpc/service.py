"""The service: its procedures by name, whatever server carries them.

A carrier makes a `Call` of each request and runs the procedure: `unary` for those with one answer, `stream` for those
with several, `telemetry` for the one that goes both ways. What goes wrong is in the answers' status; only a telemetry
stream has no place for that, and raises.
"""

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pocketmq.broker.complaints import Complaints
from pocketmq.grpc.calls import Call, set_status
from pocketmq.grpc.client_settings import ClientSettings
from pocketmq.grpc.pulling import PullProcedures
from pocketmq.grpc.routing import RouteProcedures
from pocketmq.grpc.sending import SendProcedures
from pocketmq.grpc.sessions import Sessions
from pocketmq.grpc.telemetry import ClientProcedures
from pocketmq.grpc.transactions import TransactionProcedures
from pocketmq.model.errors import PocketMQError
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto, Schema

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker

logger = logging.getLogger("pocketmq.grpc")

Unary = Callable[[Call, Proto], Proto | Awaitable[Proto]]
Stream = Callable[[Call, Proto], AsyncIterator[Proto]]


class Service:
    """The procedures of the API over one broker."""

    def __init__(self, broker: "Broker", schema: Schema) -> None:
        self.schema = schema
        self._complaints = Complaints(broker.clock, logger)
        settings = ClientSettings(broker, schema)
        sending = SendProcedures(broker, schema)
        routes = RouteProcedures(broker, schema)
        transactions = TransactionProcedures(broker, schema)
        self.sessions = Sessions(broker, transactions.check_command)
        clients = ClientProcedures(broker, schema, self.sessions, settings)
        pulling = PullProcedures(broker, schema)
        self._unary: dict[str, Unary] = {
            "QueryRoute": routes.route,
            "QueryAssignment": routes.assignment,
            "Heartbeat": clients.heartbeat,
            "NotifyClientTermination": clients.terminate,
            "SendMessage": sending.send,
            "RecallMessage": sending.recall,
            "EndTransaction": transactions.end,
            "UpdateOffset": pulling.update,
            "GetOffset": pulling.get,
            "QueryOffset": pulling.query,
            "SyncLiteSubscription": self._no_lite_topics,
        }
        self._streams: dict[str, Stream] = {"PullMessage": pulling.pull}
        self._telemetry = clients.telemetry

    def close(self) -> None:
        """All clients are gone."""
        self.sessions.close()

    def unary(self, name: str) -> Callable[[Call, Proto], Awaitable[Proto]]:
        """A procedure with one answer; what it raises is in the answer's status."""
        function: Unary = self._unary.get(name, self._not_implemented)
        response_class = self.schema.classes[self.schema.methods[name].response]

        async def run(call: Call, request: Proto) -> Proto:
            try:
                call.check_client_id()
                answer = function(call, request)
                return await answer if inspect.isawaitable(answer) else answer
            except Exception as error:
                response = response_class()
                set_status(response.status, self._refusal(name, error))
                return response

        return run

    def stream(self, name: str) -> Stream:
        """A procedure with several answers; what it raises is the status of one more answer."""
        function = self._streams.get(name)
        response_class = self.schema.classes[self.schema.methods[name].response]

        async def run(call: Call, request: Proto) -> AsyncIterator[Proto]:
            try:
                call.check_client_id()
                if function is None:
                    self._not_implemented(call, request)
                    return
                async for answer in function(call, request):
                    yield answer
            except Exception as error:
                response = response_class()
                set_status(response.status, self._refusal(name, error))
                yield response

        return run

    async def telemetry(self, call: Call, commands: AsyncIterator[Proto]) -> AsyncIterator[Proto]:
        """The stream that goes both ways. Raises PocketMQError."""
        try:
            async for command in self._telemetry(call, commands):
                yield command
        except Exception as error:
            raise self._refusal("Telemetry", error) from error

    def _refusal(self, name: str, error: Exception) -> PocketMQError:
        if isinstance(error, PocketMQError):
            return error
        self._complaints.warn(name, f"{name} failed: {type(error).__name__}: {error}")
        logger.debug("%s failed", name, exc_info=error)
        return CodedError(Code.INTERNAL_SERVER_ERROR, f"{name} failed: {type(error).__name__}: {error}")

    def _not_implemented(self, call: Call, request: Proto) -> Any:
        raise CodedError(Code.NOT_IMPLEMENTED, "this procedure is not implemented here")

    def _no_lite_topics(self, call: Call, request: Proto) -> Any:
        raise CodedError(Code.UNSUPPORTED, "lite topics are not supported")
