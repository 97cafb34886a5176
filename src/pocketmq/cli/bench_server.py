"""The server that a benchmark runs against, and the CPU time of both sides."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pocketmq.cli.connection import name_servers
from pocketmq.model.errors import PocketMQError

READY_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 20.0
POLL_S = 0.01


@contextlib.contextmanager
def server_for(
    serve: bool, namesrv: str | None, data_dir: str | None, server_pid: int | None
) -> Iterator[tuple[str, int | None]]:
    """The name server's address and the server's process id; starts and stops a server when asked to."""
    if not serve:
        yield name_servers(namesrv), server_pid
        return
    with tempfile.TemporaryDirectory(prefix="pocketmq-bench-") as folder:
        ready = Path(folder) / "ready.json"
        command = [sys.executable, "-m", "pocketmq", "serve", "--grpc-port", "off", "--http-port", "off"]
        command += [
            "--ready-file",
            str(ready),
            "--namesrv-port",
            "0",
            "--broker-port",
            "0",
            "--set",
            "log.level=warning",
        ]
        command += ["--data-dir", data_dir] if data_dir else ["--ephemeral"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield _wait_ready(process, ready), process.pid
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_ready(process: "subprocess.Popen[bytes]", ready: Path) -> str:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if ready.exists():
            return str(json.loads(ready.read_text())["namesrv"])
        if process.poll() is not None:
            raise PocketMQError(f"the server for the benchmark ended with exit code {process.returncode}")
        time.sleep(POLL_S)
    raise PocketMQError(f"the server for the benchmark was not ready within {READY_TIMEOUT_S:g} s")


class Cpu:
    """CPU seconds of this process and of the server, from now on."""

    def __init__(self, server_pid: int | None) -> None:
        self._server_pid = server_pid
        self._began = time.perf_counter()
        self._client_s = _own_cpu_s()
        self._server_s = process_cpu_s(server_pid) if server_pid else None

    def report(self, messages: int) -> dict[str, float | int]:
        """Messages, seconds, rate, and microseconds of CPU a message."""
        elapsed_s = time.perf_counter() - self._began
        result: dict[str, float | int] = {
            "messages": messages,
            "seconds": round(elapsed_s, 3),
            "messages_per_second": round(messages / elapsed_s),
            "client_cpu_us_per_message": round((_own_cpu_s() - self._client_s) / messages * 1e6, 2),
        }
        if self._server_pid is not None and self._server_s is not None:
            used_s = process_cpu_s(self._server_pid) - self._server_s
            result["server_cpu_us_per_message"] = round(used_s / messages * 1e6, 2)
        return result


def _own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def process_cpu_s(pid: int) -> float:
    """User and system seconds of another process, from /proc. Raises PocketMQError when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError as error:
        raise PocketMQError(
            f"the CPU time of process {pid} cannot be read: {error.strerror or error}", cause=error
        ) from error
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
