"""Which function answers which request code, and what an error becomes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pocketmq.model.errors import PocketMQError
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command, encode_response

if TYPE_CHECKING:
    from pocketmq.net.remoting import RemotingConnection

logger = logging.getLogger(__name__)

Answer = bytes | list[bytes] | list[bytes | memoryview] | None
"""What a handler returns: one frame, its parts, or None when it answers later (or never)."""
Handler = Callable[["RemotingConnection", Command], Answer]
AsyncHandler = Callable[["RemotingConnection", Command], Awaitable[Answer]]


class Dispatcher:
    """Request code -> handler.

    Handlers are plain functions, called from `data_received`: a request that can be answered at once makes no task.
    Those that must wait (for a settings change to be durable, for another peer) are registered with `on_async`.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, code: RequestCode, handler: Handler) -> None:
        """Answer `code` with `handler`; the last registration wins."""
        self._handlers[int(code)] = handler

    def on_async(self, code: RequestCode, handler: AsyncHandler) -> None:
        """Answer `code` with a coroutine, in a task of its own."""

        def start(connection: "RemotingConnection", command: Command) -> None:
            task = asyncio.get_running_loop().create_task(self._run(connection, command, handler))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._handlers[int(code)] = start

    def codes(self) -> list[int]:
        """The codes that have a handler, sorted."""
        return sorted(self._handlers)

    def handle(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Answer one request. Never raises; a one-way request is never answered, not even with an error."""
        handler = self._handlers.get(command.code)
        try:
            if handler is None:
                return _unless_oneway(
                    command,
                    encode_response(
                        command.opaque,
                        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                        f" request type {command.code} not supported",
                        serialize_type=command.serialize_type,
                    ),
                )
            return handler(connection, command)
        except Exception as error:
            return _unless_oneway(command, error_answer(command, error))

    async def close(self) -> None:
        """Cancel what is still being answered."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, connection: "RemotingConnection", command: Command, handler: AsyncHandler) -> None:
        try:
            answer = await handler(connection, command)
        except Exception as error:
            answer = error_answer(command, error)
        if answer is not None and not command.is_oneway:
            connection.write(answer if isinstance(answer, bytes) else b"".join(answer))


def _unless_oneway(command: Command, answer: bytes) -> bytes | None:
    return None if command.is_oneway else answer


def error_answer(command: Command, error: Exception) -> bytes:
    """The response for an error: its code and remark when it is one of ours, code 1 when it is a mistake of ours."""
    if isinstance(error, PocketMQError):
        code, remark = error.code, error.message
    else:
        logger.warning("request %s failed: %s: %s", command.code, type(error).__name__, error)
        logger.debug("traceback of the failed request", exc_info=error)
        code, remark = int(ResponseCode.SYSTEM_ERROR), f"{type(error).__name__}: {error}"
    return encode_response(command.opaque, code, remark, serialize_type=command.serialize_type)
