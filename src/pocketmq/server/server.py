"""A server process: name server, broker, gRPC and HTTP port, any of them, started and stopped in order.

The name server comes first, because the broker registers with it; the HTTP port comes last and goes first, so that what
it shows exists. Nothing here reads the command line or handles signals: see `pocketmq.cli.serve`.
"""

import errno
import importlib.util
import logging
import os
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from pocketmq.broker.broker import Broker
from pocketmq.grpc.port import MISSING, GrpcPort
from pocketmq.http.port import HttpPort
from pocketmq.log.recovery import Progress
from pocketmq.model.errors import PocketMQError
from pocketmq.model.seams import Clock, Disk, Network
from pocketmq.model.setting_table import PORT_OFF
from pocketmq.model.settings import Settings
from pocketmq.namesrv.server import NameServer
from pocketmq.server.config import check_settings

logger = logging.getLogger(__name__)

ALL_PARTS = frozenset({"namesrv", "broker", "grpc", "http"})


class Ready(msgspec.Struct, kw_only=True):
    """Where a running server is: the content of the ready file. None stands for a part that is off."""

    pid: int
    namesrv: str | None = None
    broker: str | None = None
    grpc: str | None = None
    http: str | None = None


class Server:
    """The parts of one process. `progress` is called while the log is opened. Raises SettingError."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        network: Network,
        disk: Disk,
        parts: Collection[str] = ALL_PARTS,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        check_settings(settings)
        self.settings = settings
        self.name_server: NameServer | None = None
        self.broker: Broker | None = None
        self.grpc: GrpcPort | None = None
        self.http: HttpPort | None = None
        if "namesrv" in parts and settings.namesrv.port != PORT_OFF:
            self._keep_key_values(disk, with_broker="broker" in parts)
            self.name_server = NameServer(settings, clock=clock, network=network, disk=disk)
        if "broker" in parts and settings.broker.port != PORT_OFF:
            self.broker = Broker(settings, clock=clock, disk=disk, network=network, progress=progress)
        if "grpc" in parts and self.broker is not None and settings.grpc.port != PORT_OFF and _grpc_is_installed():
            self.grpc = GrpcPort(self.broker, clock=clock, network=network)
        if "http" in parts and settings.http.port != PORT_OFF:
            self.http = HttpPort(
                settings.http.host, settings.http.port, self.name_server, self.broker, clock=clock, network=network
            )

    async def start(self) -> Ready:
        """Start every part; all serve when this returns. Raises PocketMQError, OSError; nothing is left open then."""
        try:
            if self.name_server is not None:
                await _named("the name server", self.settings.namesrv.port, self.name_server.start)
                self._register_here(self.name_server)
            if self.broker is not None:
                await _named("the broker", self.settings.broker.port, self.broker.start)
            if self.grpc is not None:
                await _named("the gRPC endpoint", self.settings.grpc.port, self.grpc.start)
            if self.http is not None:
                await _named("the HTTP server", self.settings.http.port, self.http.start)
        except BaseException:
            await self.stop()
            raise
        return self.ready()

    async def stop(self) -> None:
        """Stop accepting, flush, close. Fine when it has stopped, or was never started."""
        for part in (self.http, self.grpc, self.broker, self.name_server):
            if part is not None:
                try:
                    await part.stop()
                except Exception as error:
                    logger.error("%s did not stop cleanly: %s", type(part).__name__, error, exc_info=True)

    def ready(self) -> Ready:
        """Where the parts are, as addresses of this machine."""
        settings = self.settings
        return Ready(
            pid=os.getpid(),
            namesrv=_address(settings.namesrv.host, self.name_server.port) if self.name_server else None,
            broker=_address(settings.broker.host, self.broker.port) if self.broker else None,
            grpc=_address(settings.grpc.host, self.grpc.port) if self.grpc else None,
            http=_address(settings.http.host, self.http.port) if self.http else None,
        )

    def _register_here(self, name_server: NameServer) -> None:
        here = _address(self.settings.namesrv.host, name_server.port)
        others = self.settings.broker.namesrv
        given = [address for address in others.split(";") if address.strip() not in ("", here)]
        self.settings.broker.namesrv = ";".join((here, *given))

    def _keep_key_values(self, disk: Disk, *, with_broker: bool) -> None:
        """In a server with a data directory the name server's key-value table is kept in it."""
        settings = self.settings
        if with_broker and not settings.store.ephemeral and not settings.namesrv.kv_file:
            folder = f"{settings.store.data_dir}/namesrv"
            disk.make_folder(folder)
            settings.namesrv.kv_file = f"{folder}/kvConfig.json"


def _grpc_is_installed() -> bool:
    """Whether the library is there. It is not loaded before somebody connects."""
    if importlib.util.find_spec("grpc") is not None and importlib.util.find_spec("google.protobuf") is not None:
        return True
    logger.info("there is no gRPC endpoint: %s", MISSING)
    return False


async def _named(what: str, port: int, start: Callable[[], Any]) -> None:
    """Start a part; a port that is taken, or a folder that cannot be used, becomes a sentence that names it."""
    try:
        await start()
    except OSError as error:
        if isinstance(error, PocketMQError) or error.errno is None:
            raise
        where = f"port {port}" if error.filename is None else error.filename
        reason = error.strerror or str(error)
        advice = "; stop what uses it, or choose another port" if error.errno == errno.EADDRINUSE else ""
        raise PocketMQError(f"{what} could not start ({where}): {reason}{advice}", cause=error) from error


def _address(host: str, port: int) -> str:
    """`host:port` as a client on this machine reaches it."""
    if host in {"", "0.0.0.0"}:
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
