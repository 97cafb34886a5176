"""Heartbeat, Telemetry and NotifyClientTermination: clients that come, stay and go."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from pocketmq.grpc.calls import Call, set_ok
from pocketmq.grpc.client_settings import ClientSettings
from pocketmq.grpc.sessions import Outbox, Session, Sessions
from pocketmq.model.errors import PocketMQError
from pocketmq.wire.grpc.schema import Proto, Schema

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker

logger = logging.getLogger("pocketmq.grpc")


class ClientProcedures:
    """Takes what clients say about themselves."""

    def __init__(self, broker: "Broker", schema: Schema, sessions: Sessions, settings: ClientSettings) -> None:
        self._broker = broker
        self._schema = schema
        self._sessions = sessions
        self._settings = settings

    def heartbeat(self, call: Call, request: Proto) -> Proto:
        """The client is alive. Raises CodedError UNRECOGNIZED_CLIENT_TYPE when its settings are not known."""
        self._sessions.register(self._sessions.get(call), call)
        response = self._schema.HeartbeatResponse()
        set_ok(response.status)
        return response

    def terminate(self, call: Call, request: Proto) -> Proto:
        """The client goes."""
        self._sessions.drop(self._sessions.get(call))
        response = self._schema.NotifyClientTerminationResponse()
        set_ok(response.status)
        return response

    async def telemetry(self, call: Call, commands: AsyncIterator[Proto]) -> AsyncIterator[Proto]:
        """The stream over which client and broker tell each other settings, and ask each other things.

        It ends when the client ends its half, or goes. Raises PocketMQError for settings that cannot be.
        """
        call.check_client_id()
        outbox = Outbox()
        reader = asyncio.get_running_loop().create_task(self._read(call, commands, outbox))
        try:
            while (command := await outbox.take()) is not None:
                yield command
            # What went wrong with the client's commands is told to the client by how the stream ends.
            if reader.done() and not reader.cancelled() and (error := reader.exception()) is not None:
                raise error
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await reader
            outbox.close()
            session = self._sessions.find(call.client_id)
            if session is not None:
                session.detach(outbox)

    async def _read(self, call: Call, commands: AsyncIterator[Proto], outbox: Outbox) -> None:
        try:
            async for command in commands:
                if command.WhichOneof("command") == "settings":
                    session = self._sessions.settle(call, command.settings)
                    session.attach(outbox)
                    outbox.put(self._told(session))
                else:
                    self._take(call, command)
        finally:
            outbox.close()

    def _told(self, session: Session) -> Proto:
        command = self._schema.TelemetryCommand()
        set_ok(command.status)
        command.settings.CopyFrom(self._settings.complete(session.settings))
        return command

    def _take(self, call: Call, command: Proto) -> None:
        """An answer to something that was asked; nothing is asked that has one yet."""
        logger.debug("%s sent %s", call.client_id, command.WhichOneof("command"))


def refusal_of(error: BaseException) -> PocketMQError:
    """An error as one that can be told."""
    return error if isinstance(error, PocketMQError) else PocketMQError(f"{type(error).__name__}: {error}")
