"""The two servers that are compared, behind one face."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from apache.server import ApacheServer

from pocketmq.testing.process import ServerProcess

# Start-up must not pay for compiling our modules each time, wherever this is run.
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "", "POCKETMQ__LOG__LEVEL": "warning"}


class Subject:
    """A server to measure, in `folder`."""

    name = ""

    def __init__(self, folder: Path, server: ServerProcess | ApacheServer) -> None:
        self.folder = folder
        self._server = server

    def start(self) -> float:
        """Start it; returns the seconds from the first exec until clients are served."""
        began = time.perf_counter()
        self._server.start()
        return time.perf_counter() - began

    def kill_broker(self) -> None:
        """End the broker as a power switch would, without a word."""
        self._server.kill()

    def stop(self) -> None:
        """Stop it in good order."""
        self._server.stop()

    @property
    def namesrv(self) -> str:
        """`host:port` of the name server."""
        return self._server.namesrv

    @property
    def broker_pid(self) -> int:
        """The process whose CPU time counts."""
        return self._server.pid

    @property
    def pids(self) -> list[int]:
        """All processes, for their memory."""
        return self._server.pids if isinstance(self._server, ApacheServer) else [self._server.pid]

    def resident_mb(self) -> float:
        """Megabytes that all processes hold."""
        total_kb = 0
        for pid in self.pids:
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total_kb += int(line.split()[1])
        return total_kb / 1024


class PocketMQ(Subject):
    """`pocketmq serve` with a data directory."""

    name = "PocketMQ"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ServerProcess(folder / "data", environment=_ENVIRONMENT))


class Apache(Subject):
    """Name server and broker of Apache RocketMQ, without its proxy."""

    name = "Apache"

    def __init__(self, folder: Path) -> None:
        options = ("-Xms1g", "-Xmx1g", "-XX:MaxDirectMemorySize=1g")
        super().__init__(folder, ApacheServer(folder, broker_options=options))


SUBJECTS: list[Callable[[Path], Subject]] = [Apache, PocketMQ]


def compile_modules() -> None:
    """Write the byte code of our modules once, as an installation does."""
    import pocketmq

    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", str(Path(pocketmq.__file__).parent)],
        check=True,
        env={"PYTHONDONTWRITEBYTECODE": ""},
    )
