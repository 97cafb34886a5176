"""The service carried by `grpcio`'s asyncio server, on a port of this machine that only the endpoint's own port uses.

`grpcio` cannot tell TLS from plaintext on one port, and must not be loaded before somebody needs it; so clients connect
to `pocketmq.grpc.port`, which passes the bytes on. Who a call comes from is found by the connection it passed through.
"""

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import grpc.aio

from pocketmq.grpc.calls import Address, Call
from pocketmq.model.errors import PocketMQError
from pocketmq.model.limits import FRAME_BYTES_MAX
from pocketmq.wire.grpc.codes import code_of
from pocketmq.wire.grpc.proto_text import Method
from pocketmq.wire.grpc.schema import Proto

if TYPE_CHECKING:
    from pocketmq.grpc.service import Service
    from pocketmq.model.seams import Clock

HOST = "127.0.0.1"
REQUEST_BYTES_MAX = FRAME_BYTES_MAX
PING_INTERVAL_MIN_MS = 5_000
STREAMS_MAX = 100_000
CALLS_MAX = 200_000
"""Most calls under way, those that wait for messages included."""


class Ends(NamedTuple):
    """Both ends of the connection that a call came over."""

    peer: Address
    local: Address


Find = Callable[[str], Ends | None]
"""Finds the ends of the client's connection by what `grpcio` calls its peer."""


class GrpcioServer:
    """Carries one service."""

    def __init__(self, service: "Service", clock: "Clock", find: Find, *, idle_s: float) -> None:
        self._service = service
        self._clock = clock
        self._find = find
        self._server = grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_concurrent_streams", STREAMS_MAX),
                ("grpc.max_connection_idle_ms", int(idle_s * 1000)),
                ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MIN_MS),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.so_reuseport", 0),
            ),
            maximum_concurrent_rpcs=CALLS_MAX,
        )
        handlers = {method.name: self._handler(method) for method in service.schema.methods.values()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.schema.service, handlers),))

    async def start(self) -> int:
        """Serve; returns the port."""
        port: int = self._server.add_insecure_port(f"{HOST}:0")
        await self._server.start()
        return port

    async def stop(self, grace_s: float) -> None:
        """Accept no more calls; those under way have `grace_s`."""
        await self._server.stop(grace_s)

    def _handler(self, method: Method) -> Any:
        schema = self._service.schema
        read = schema.classes[method.request].FromString
        write = schema.classes[method.response].SerializeToString
        if method.streams_requests:
            return grpc.stream_stream_rpc_method_handler(self._telemetry, read, write)
        if method.streams_responses:
            stream = self._service.stream(method.name)

            async def answers(request: Proto, context: Any) -> AsyncIterator[Proto]:
                async for answer in stream(self._call(context), request):
                    yield answer

            return grpc.unary_stream_rpc_method_handler(answers, read, write)
        unary = self._service.unary(method.name)

        async def answer(request: Proto, context: Any) -> Proto:
            return await unary(self._call(context), request)

        return grpc.unary_unary_rpc_method_handler(answer, read, write)

    async def _telemetry(self, commands: AsyncIterator[Proto], context: Any) -> AsyncIterator[Proto]:
        try:
            async for command in self._service.telemetry(self._call(context), commands):
                yield command
        except PocketMQError as error:
            of_client = 40000 <= code_of(error) < 50000
            status = grpc.StatusCode.INVALID_ARGUMENT if of_client else grpc.StatusCode.INTERNAL
            await context.abort(status, error.message)

    def _call(self, context: Any) -> Call:
        ends = self._find(context.peer()) or Ends(("", 0), ("", 0))
        remaining_s = context.time_remaining()
        return Call(
            context.invocation_metadata() or (),
            peer_address=ends.peer,
            local_address=ends.local,
            deadline=None if remaining_s is None else self._clock.monotonic() + remaining_s,
        )
