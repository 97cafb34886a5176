"""A real server process, for tests that need one: killed without warning, stopped, paused, started again.

    with ServerProcess(tmp_path / "data", settings={"store.flush": "sync"}) as server:
        ...                       # talk to server.namesrv
        server.kill()             # as the kernel would, without a word
        server.start()            # on the same ports

Nothing here waits for a fixed time: a server is ready when its ready file says so.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import IO, Self

FIRST_PORT, PORTS = 20_000, 12_000
"""Where free ports are looked for: below those that systems give to outgoing connections, so that a server that is
started again finds its own ports free."""

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
_POLL_S = 0.005
_OUTPUT_SHOWN_BYTES = 4000


class ServerProcess:
    """`python -m pocketmq serve` (or `namesrv`, `broker`) in a process of its own, on ports that stay its own.

    Args:
        data_dir: the data directory; None for `--ephemeral`.
        command: `serve`, `namesrv` or `broker`.
        settings: passed as `--set key=value`.
        http: open the HTTP port, too.
        grpc: open the gRPC port, too.
        options: further options, as they are.
        work_dir: where the ready file and the output go; by default beside the data directory.
        environment: added to that of this process.
        python: how to start Python; put another command before it to change its limits.
        name: of the ready file and of the output file.
    """

    def __init__(
        self,
        data_dir: Path | None,
        *,
        command: str = "serve",
        settings: Mapping[str, object] | None = None,
        http: bool = False,
        grpc: bool = False,
        options: Sequence[str] = (),
        work_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        python: Sequence[str] = (sys.executable,),
        name: str = "pocketmq",
    ) -> None:
        self.data_dir = data_dir
        self.command = command
        self.settings = dict(settings or {})
        self.options = list(options)
        self.environment = dict(environment or {})
        self.python = list(python)
        if work_dir is None:
            if data_dir is None:
                raise ValueError("an ephemeral server needs a work_dir for its ready file and output")
            work_dir = data_dir.parent
        work_dir.mkdir(parents=True, exist_ok=True)
        self.ready_file = work_dir / f"{name}.ready"
        self.output_file = work_dir / f"{name}.log"
        self.ready: dict[str, str | int | None] = {}
        """What the ready file said: pid and addresses."""
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        first = free_ports(5)
        self._ports = {
            "namesrv": str(first),
            "broker": str(first + 3),
            "http": str(first + 2) if http else "off",
            "grpc": str(first + 4) if grpc else "off",
        }

    # Where it is.

    @property
    def pid(self) -> int:
        """The id of the running process. Raises RuntimeError when there is none."""
        return self._running().pid

    @property
    def namesrv(self) -> str:
        """`host:port` of the name server."""
        return self._address("namesrv")

    @property
    def broker(self) -> str:
        """`host:port` of the broker's main port."""
        return self._address("broker")

    @property
    def vip(self) -> str:
        """`host:port` of the broker's fast port, two below the main one."""
        host, _, port = self.broker.rpartition(":")
        return f"{host}:{int(port) - 2}"

    @property
    def http(self) -> str:
        """`host:port` of the HTTP port."""
        return self._address("http")

    @property
    def grpc(self) -> str:
        """`host:port` of the gRPC endpoint."""
        return self._address("grpc")

    @property
    def is_running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def output(self) -> str:
        """All that the processes of this server have printed so far."""
        return self.output_file.read_text(errors="replace") if self.output_file.exists() else ""

    def resident_bytes(self) -> int:
        """Memory that the process holds now, as the kernel counts it."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"process {self.pid} has no memory any more")

    # Its life.

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Start it and wait until it serves; every time on the same ports.

        Raises RuntimeError with the end of its output when it ends or is not ready in time.
        """
        self.launch()
        return self.wait_ready(timeout_s=timeout_s)

    def launch(self) -> None:
        """Start it, and do not wait."""
        if self.is_running:
            raise RuntimeError(f"process {self.pid} is running already")
        self.ready_file.unlink(missing_ok=True)
        self._close_output()
        self._output = self.output_file.open("ab")
        self._process = subprocess.Popen(
            self.arguments(),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
        )

    def arguments(self) -> list[str]:
        """The command line."""
        line = [*self.python, "-m", "pocketmq", self.command, "--ready-file", str(self.ready_file)]
        if self.command != "namesrv":
            line += ["--ephemeral"] if self.data_dir is None else ["--data-dir", str(self.data_dir)]
            line += ["--broker-port", self._ports["broker"], "--grpc-port", self._ports["grpc"]]
        if self.command == "namesrv":
            line += ["--port", self._ports["namesrv"]]
        if self.command == "serve":
            line += ["--namesrv-port", self._ports["namesrv"]]
        line += ["--http-port", self._ports["http"]]
        for key, value in self.settings.items():
            line += ["--set", f"{key}={value}"]
        return line + self.options

    def wait_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Wait until it serves."""
        deadline = time.monotonic() + timeout_s
        while not self._read_ready_file():
            if not self.is_running:
                raise RuntimeError(f"the server ended with code {self._running_code()}:\n{self._output_end()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the server was not ready within {timeout_s} s:\n{self._output_end()}")
            time.sleep(_POLL_S)
        return self

    def wait_end(self, *, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Wait until it ends by itself; returns its exit code."""
        return self._running().wait(timeout_s)

    def kill(self) -> None:
        """End it with SIGKILL: it can do nothing more. Fine when it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._close_output()

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Ask it to end with SIGTERM, wait, and return its exit code. Kills it when it does not end in time."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the server did not stop within {timeout_s} s:\n{self._output_end()}") from None
        finally:
            self._close_output()

    def pause(self) -> None:
        """Let it stand still (SIGSTOP) until `resume`."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._running().send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # Inside.

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server was not started")
        return self._process

    def _running_code(self) -> int | None:
        return self._running().poll()

    def _address(self, part: str) -> str:
        address = self.ready.get(part)
        if not isinstance(address, str):
            raise RuntimeError(f"the server has no {part} port, or is not ready yet")
        return address

    def _read_ready_file(self) -> bool:
        try:
            ready = json.loads(self.ready_file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return False
        self.ready = ready
        return True

    def _output_end(self) -> str:
        return self.output[-_OUTPUT_SHOWN_BYTES:]

    def _close_output(self) -> None:
        if self._output is not None:
            self._output.close()
            self._output = None


def free_ports(count: int) -> int:
    """The first of `count` neighbouring ports that nobody uses on 127.0.0.1."""
    random = Random(f"{os.getpid()} {time.monotonic_ns()}")
    for _ in range(1000):
        first = FIRST_PORT + random.randrange(PORTS - count)
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise RuntimeError(f"no {count} neighbouring ports are free on 127.0.0.1")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
