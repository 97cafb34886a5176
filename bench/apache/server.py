#!/usr/bin/env python3
"""Runs Apache RocketMQ (name server and broker) in a folder of its own: the yardstick of benchmarks and interop tests.

    python3 bench/apache/server.py --data-dir /tmp/apache --namesrv-port 9876        until Ctrl-C

Needs Java (a JDK, 11 or newer) and Maven, which fetches Apache RocketMQ from Maven Central into lib/ beside this file,
once.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

HERE = Path(__file__).resolve().parent
LIBRARIES = HERE / "lib"
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0
GET_BROKER_CLUSTER_INFO = 106

# Java 17 hides what the broker needs to unmap its files and to count its direct memory.
_OPENED = ("java.nio", "sun.nio.ch", "java.lang", "java.util", "java.util.concurrent", "jdk.internal.misc")


def fetch() -> Path:
    """Fetch the jars if they are not there yet; returns their folder. Raises RuntimeError when a tool is missing."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise RuntimeError(f"{tool} was not found; a JDK (11 or newer) and Maven are needed to run Apache RocketMQ")
    if not any(LIBRARIES.glob("rocketmq-proxy-*.jar")):
        subprocess.run(["mvn", "-q", "-B", "package"], cwd=HERE, check=True)
    return LIBRARIES


def java_command(*options: str) -> list[str]:
    """The start of a command line that runs a class of Apache RocketMQ."""
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    return ["java", *opens, "-Djava.net.preferIPv4Stack=true", *options, "-cp", f"{fetch()}/*"]


class ApacheServer:
    """A name server and a broker, each in its own Java process; ports of 0 become free ones and are kept over restarts.

    Args:
        data_dir: holds the store (in `store`), the settings and the logs.
        settings: lines of `broker.conf` beside those given here, by their Java names.
        proxy: start a proxy too, for gRPC clients; they find it at `grpc`.
        broker_options, namesrv_options: of the Java machines, heap sizes above all.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        namesrv_port: int = 0,
        broker_port: int = 0,
        settings: Mapping[str, object] | None = None,
        proxy: bool = False,
        broker_options: Sequence[str] = ("-Xms512m", "-Xmx512m", "-XX:MaxDirectMemorySize=512m"),
        namesrv_options: Sequence[str] = ("-Xms128m", "-Xmx128m"),
    ) -> None:
        self.data_dir = data_dir
        self.settings = dict(settings or {})
        self.broker_options = list(broker_options)
        self.namesrv_options = list(namesrv_options)
        self.namesrv_port = namesrv_port or free_port()
        self.broker_port = broker_port or free_port(around=(-2, 1))  # it also takes the ports 2 below and 1 above
        self._grpc_port = free_port() if proxy else None
        self._namesrv: subprocess.Popen[bytes] | None = None
        self._proxy: subprocess.Popen[bytes] | None = None
        self._broker: subprocess.Popen[bytes] | None = None
        self._outputs: list[IO[bytes]] = []

    @property
    def store_dir(self) -> Path:
        """Where the commit log and all that belongs to it is."""
        return self.data_dir / "store"

    @property
    def namesrv(self) -> str:
        """`host:port` of the name server."""
        return f"127.0.0.1:{self.namesrv_port}"

    @property
    def broker(self) -> str:
        """`host:port` of the broker."""
        return f"127.0.0.1:{self.broker_port}"

    @property
    def grpc(self) -> str:
        """`host:port` of the proxy. Raises RuntimeError when there is none."""
        if self._grpc_port is None:
            raise RuntimeError("the server was made without a proxy")
        return f"127.0.0.1:{self._grpc_port}"

    @property
    def pid(self) -> int:
        """The id of the broker's process. Raises RuntimeError when there is none."""
        if self._broker is None:
            raise RuntimeError("the broker was not started")
        return self._broker.pid

    @property
    def pids(self) -> list[int]:
        """The ids of all its processes."""
        return [process.pid for process in (self._namesrv, self._broker, self._proxy) if process is not None]

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Start what does not run, and wait until the name server knows the broker."""
        if self._namesrv is None:
            self._namesrv = self._run("namesrv", "org.apache.rocketmq.namesrv.NamesrvStartup", self.namesrv_options)
            self._wait(lambda: can_connect(self.namesrv), timeout_s)
        if self._broker is None:
            self._broker = self._run("broker", "org.apache.rocketmq.broker.BrokerStartup", self.broker_options)
        self._wait(lambda: can_connect(self.broker) and bool(broker_names(self.namesrv)), timeout_s)
        if self._grpc_port is not None and self._proxy is None:
            self._proxy = self._run("proxy", "org.apache.rocketmq.proxy.ProxyStartup", self.broker_options)
            self._wait(lambda: can_connect(self.grpc), timeout_s)
        return self

    def kill(self) -> None:
        """End the broker with SIGKILL; the name server stays."""
        if self._broker is not None:
            self._broker.kill()
            self._broker.wait()
            self._broker = None

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ask both to end, broker first; kill what does not."""
        for process in (self._proxy, self._broker, self._namesrv):
            if process is None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._proxy = self._broker = self._namesrv = None
        while self._outputs:
            self._outputs.pop().close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop(timeout_s=1)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, name: str, main_class: str, options: Sequence[str]) -> subprocess.Popen[bytes]:
        home = self.data_dir / "home"
        home.mkdir(parents=True, exist_ok=True)
        file = self._write_settings(name)
        output = (self.data_dir / f"{name}.out").open("ab")
        self._outputs.append(output)
        # Its logs go below user.home, so they stay in the folder too.
        command = java_command(*options, f"-Duser.home={home}", f"-Drocketmq.home.dir={home}")
        return subprocess.Popen(
            [*command, main_class, "-pc" if name == "proxy" else "-c", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "ROCKETMQ_HOME": str(home), "NAMESRV_ADDR": self.namesrv},
        )

    def _write_settings(self, name: str) -> Path:
        file = self.data_dir / f"{name}.conf"
        if name == "proxy":
            settings = {
                "rocketMQClusterName": "DefaultCluster",
                "namesrvAddr": self.namesrv,
                "proxyMode": "CLUSTER",
                "grpcServerPort": self._grpc_port,
                "remotingListenPort": free_port(),
                "localServeAddr": "127.0.0.1",
            }
            file.write_text(json.dumps(settings))
        else:
            file.write_text("".join(f"{key}={value}\n" for key, value in self._properties(name).items()))
        return file

    def _properties(self, name: str) -> dict[str, object]:
        if name == "namesrv":
            return {"listenPort": self.namesrv_port, "bindAddress": "127.0.0.1"}
        return {
            "brokerClusterName": "DefaultCluster",
            "brokerName": "broker-a",
            "brokerId": 0,
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "bindAddress": "127.0.0.1",
            "listenPort": self.broker_port,
            "haListenPort": self.broker_port + 1,
            "namesrvAddr": self.namesrv,
            "storePathRootDir": self.store_dir,
            "storePathCommitLog": self.store_dir / "commitlog",
            "autoCreateTopicEnable": "true",
            "brokerRole": "ASYNC_MASTER",
            "flushDiskType": "ASYNC_FLUSH",
            **self.settings,
        }

    def _wait(self, condition: Any, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            for name, process in (("name server", self._namesrv), ("broker", self._broker), ("proxy", self._proxy)):
                if process is not None and process.poll() is not None:
                    raise RuntimeError(f"Apache's {name} ended with code {process.returncode}; see {self.data_dir}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"Apache RocketMQ was not ready within {timeout_s} s; see {self.data_dir}")
            time.sleep(0.01)


def free_port(around: Sequence[int] = ()) -> int:
    """A port that is free on 127.0.0.1, with its neighbours at the given distances."""
    for _ in range(100):
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                for distance in around:
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port + distance))
            except (OSError, OverflowError):
                continue
            return port
    raise RuntimeError("no free ports were found")


def can_connect(address: str) -> bool:
    """Whether something listens there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def broker_names(namesrv: str) -> list[str]:
    """The brokers that a name server knows; nothing when it cannot be asked."""
    host, _, port = namesrv.rpartition(":")
    header = json.dumps(
        {"code": GET_BROKER_CLUSTER_INFO, "language": "OTHER", "version": 0, "opaque": 1, "flag": 0, "extFields": {}}
    ).encode()
    try:
        with socket.create_connection((host, int(port)), timeout=5) as connection, connection.makefile("rb") as answer:
            connection.sendall(struct.pack(">ii", 4 + len(header), len(header)) + header)
            size, head_size = struct.unpack(">ii", answer.read(8))
            answer.read(head_size & 0xFFFFFF)
            body = answer.read(size - 4 - (head_size & 0xFFFFFF))
    except (OSError, struct.error):
        return []
    # Its keys may be numbers without quotes, so this is no JSON to every reader; the names are enough here.
    return [name for name in body.decode(errors="replace").split('"') if name.startswith("broker-")]


def main() -> None:
    """Run it until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--namesrv-port", type=int, default=0)
    parser.add_argument("--broker-port", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a line of broker.conf")
    arguments = parser.parse_args()
    settings = dict(line.split("=", 1) for line in arguments.set)
    server = ApacheServer(
        arguments.data_dir.absolute(),
        namesrv_port=arguments.namesrv_port,
        broker_port=arguments.broker_port,
        settings=settings,
    )
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    with server, contextlib.suppress(KeyboardInterrupt):
        print(f"ready namesrv {server.namesrv}  broker {server.broker}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
