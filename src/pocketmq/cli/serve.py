"""`pocketmq serve`, `namesrv` and `broker`: the server processes."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pocketmq.model.errors import SettingError, UsageError
from pocketmq.model.settings import Settings

if TYPE_CHECKING:
    from pocketmq.log.recovery import Progress
    from pocketmq.server.server import Ready, Server

EPHEMERAL_SEGMENT_BYTES = 64 * 1024 * 1024

Assignments = Annotated[
    list[str] | None, Parameter(name="--set", negative=(), help="Any setting, as NAME=VALUE; repeatable.")
]
PortOption = str | None
"""A number, or `off`."""


def serve(
    *,
    data_dir: str | None = None,
    ephemeral: Annotated[bool, Parameter(negative=())] = False,
    config: str | None = None,
    set_: Assignments = None,
    host: str | None = None,
    advertise: str | None = None,
    namesrv_port: PortOption = None,
    broker_port: PortOption = None,
    grpc_port: PortOption = None,
    http_port: PortOption = None,
    workers: int = 1,
    ready_file: str | None = None,
) -> int:
    """Run name server, broker, gRPC endpoint and HTTP port in one process.

    Prints a line `ready ...` when it can serve. Ctrl-C or SIGTERM stops it cleanly.

    Parameters
    ----------
    data_dir
        Folder of the log and its views (default: ./pocketmq-data).
    ephemeral
        Keep everything in memory; nothing survives the process.
    config
        Settings file: TOML, or a Java broker.conf.
    host
        Address to listen on (default: 127.0.0.1; 0.0.0.0 for all interfaces).
    advertise
        Address that clients are told (default: the one that each client used).
    namesrv_port
        Port of the name server (default: 9876; 0 for any free one, `off` for none).
    broker_port
        Port of the broker (default: 10911; the fast port is two below it).
    grpc_port
        Port of the gRPC endpoint (default: 8081; 0 for any free one, `off` for none).
    http_port
        Port of health and metrics (default: 8082).
    workers
        Broker processes, as one cluster; only 1 yet.
    ready_file
        JSON file with the addresses, written when the server can serve.
    """
    settings = _settings(config, set_, prefer=("broker",))
    _override(settings, data_dir, ephemeral, host, advertise)
    _port(settings.namesrv, "--namesrv-port", namesrv_port)
    _port(settings.broker, "--broker-port", broker_port)
    _port(settings.grpc, "--grpc-port", grpc_port)
    _port(settings.http, "--http-port", http_port)
    if workers != 1:
        raise UsageError("this version runs one broker process; leave --workers at 1")
    return _run(settings, {"namesrv", "broker", "grpc", "http"}, ready_file)


def namesrv(
    *,
    config: str | None = None,
    set_: Assignments = None,
    host: str | None = None,
    port: PortOption = None,
    http_port: PortOption = "off",
    ready_file: str | None = None,
) -> int:
    """Run a name server alone. Several of them need not know each other.

    Parameters
    ----------
    config
        Settings file: TOML, or a Java namesrv.conf.
    host
        Address to listen on (default: 127.0.0.1).
    port
        Port to listen on (default: 9876; 0 for any free one).
    http_port
        Port of health and metrics.
    ready_file
        JSON file with the addresses, written when it can serve.
    """
    settings = _settings(config, set_, prefer=("namesrv",))
    _override(settings, None, False, host, None)
    _port(settings.namesrv, "--port", port)
    _port(settings.http, "--http-port", http_port)
    return _run(settings, {"namesrv", "http"}, ready_file)


def broker(
    *,
    namesrv: str | None = None,
    data_dir: str | None = None,
    ephemeral: Annotated[bool, Parameter(negative=())] = False,
    config: str | None = None,
    set_: Assignments = None,
    host: str | None = None,
    advertise: str | None = None,
    name: str | None = None,
    broker_port: PortOption = None,
    grpc_port: PortOption = "off",
    http_port: PortOption = "off",
    ready_file: str | None = None,
) -> int:
    """Run a broker alone and register it with name servers.

    Parameters
    ----------
    namesrv
        Name servers: HOST:PORT;HOST:PORT.
    data_dir
        Folder of the log and its views (default: ./pocketmq-data).
    ephemeral
        Keep everything in memory; nothing survives the process.
    config
        Settings file: TOML, or a Java broker.conf.
    host
        Address to listen on (default: 127.0.0.1).
    advertise
        Address that clients are told (default: the one it reaches the name server from).
    name
        Name of the broker (default: broker-a).
    broker_port
        Port to listen on (default: 10911, and the fast port two below it; 0 for any free ones).
    grpc_port
        Port of the gRPC endpoint.
    http_port
        Port of health and metrics.
    ready_file
        JSON file with the addresses, written when it can serve.
    """
    settings = _settings(config, set_, prefer=("broker",))
    _override(settings, data_dir, ephemeral, host, advertise)
    if namesrv is not None:
        settings.broker.namesrv = namesrv
    if name is not None:
        settings.broker.name = name
    if not settings.broker.namesrv:
        raise UsageError("a broker needs a name server: --namesrv HOST:PORT")
    _port(settings.broker, "--broker-port", broker_port)
    _port(settings.grpc, "--grpc-port", grpc_port)
    _port(settings.http, "--http-port", http_port)
    return _run(settings, {"broker", "grpc", "http"}, ready_file)


def _settings(config: str | None, assignments: list[str] | None, *, prefer: Collection[str]) -> Settings:
    from pocketmq.server.config import load_settings

    settings, warnings = load_settings(
        file=config, environment=os.environ, assignments=assignments or (), prefer=prefer
    )
    for warning in warnings:
        print(f"pocketmq: {warning}", file=sys.stderr)
    return settings


def _override(
    settings: Settings, data_dir: str | None, ephemeral: bool, host: str | None, advertise: str | None
) -> None:
    if data_dir is not None:
        if ephemeral:
            raise UsageError("--ephemeral keeps nothing in --data-dir; give one of them")
        settings.store.data_dir = data_dir
    if ephemeral:
        settings.store.ephemeral = True
    if settings.store.ephemeral:
        settings.store.segment_bytes = min(settings.store.segment_bytes, EPHEMERAL_SEGMENT_BYTES)
    if host is not None:
        settings.namesrv.host = settings.broker.host = settings.grpc.host = settings.http.host = host
    if advertise is not None:
        settings.broker.advertise = advertise


def _port(section: Any, option: str, text: str | None) -> None:
    if text is None:
        return
    if text.lower() in {"off", "-1"}:
        section.port = -1
        return
    if not text.isdecimal() or int(text) > 65_535:
        raise SettingError(f"{option} {text} is no port; give a number from 0 (any free one) to 65535, or off")
    section.port = int(text)


def _run(settings: Settings, parts: Collection[str], ready_file: str | None) -> int:
    from pocketmq.server.logging import configure_logging

    configure_logging(settings.log)
    if ready_file is not None:
        if not os.path.isdir(os.path.dirname(ready_file) or "."):  # noqa: PTH112, PTH120 - as below
            raise UsageError(f"the folder of --ready-file {ready_file} does not exist")
        with contextlib.suppress(FileNotFoundError):
            os.remove(ready_file)  # noqa: PTH107 - pathlib would cost start-up time
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_serve(settings, parts, ready_file))
    return uvloop.run(_serve(settings, parts, ready_file))


async def _serve(settings: Settings, parts: Collection[str], ready_file: str | None) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    # Before what takes long is imported: a Ctrl-C at any time is to stop in good order.
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)

    from pocketmq.log.disk import RealDisk
    from pocketmq.log.memory_disk import MemoryDisk
    from pocketmq.net.clock import SystemClock
    from pocketmq.net.network import TcpNetwork
    from pocketmq.server.server import Server

    disk = MemoryDisk() if settings.store.ephemeral else RealDisk()
    server = Server(
        settings, clock=SystemClock(), network=TcpNetwork(), disk=disk, parts=parts, progress=_ProgressLine().show
    )
    starting = asyncio.ensure_future(server.start())
    stop_wanted = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({starting, stop_wanted}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return 0
    stop_wanted.cancel()
    ready = starting.result()
    _tune_garbage_collection()
    _announce(ready, server, ready_file)
    await stopping.wait()
    await server.stop()
    if ready_file is not None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(ready_file)  # noqa: PTH107
    return 0


def _tune_garbage_collection() -> None:
    """What lives now lives until the end: never look at it again; and look at new objects less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _announce(ready: "Ready", server: "Server", ready_file: str | None) -> None:
    import msgspec

    places = [f"{name} {place}" for name, place in msgspec.structs.asdict(ready).items() if name != "pid" and place]
    settings = server.settings.store
    if server.broker is not None:
        places.append("in memory" if settings.ephemeral else f"data {settings.data_dir}")
    if ready_file is not None:
        beside = f"{ready_file}.{os.getpid()}"
        with open(beside, "wb") as file:  # noqa: PTH123
            file.write(msgspec.json.encode(ready) + b"\n")
        os.replace(beside, ready_file)  # noqa: PTH105
    print("ready", "  ".join(places), flush=True)


class _ProgressLine:
    """Shows how far the opening of the log is: one line that is rewritten, or a line now and then in a log file."""

    def __init__(self) -> None:
        self._phase = ""
        self._shown_percent = -1

    def show(self, progress: "Progress") -> None:
        percent = min(100, int(100 * progress.done_bytes / max(1, progress.total_bytes)))
        step = 1 if sys.stderr.isatty() else 10
        if progress.phase != self._phase:
            self._phase = progress.phase
            self._shown_percent = -1
        if percent < self._shown_percent + step and percent < 100:
            return
        if self._shown_percent < 0 and percent >= 100:
            return
        self._shown_percent = percent
        end = "\r" if sys.stderr.isatty() and percent < 100 else "\n"
        text = f"{progress.phase}: {percent} % of {progress.total_bytes >> 20} MiB"
        print(text, end=end, file=sys.stderr, flush=True)
