"""The official Python client of RocketMQ 5 on Apache's server, beside our SDK on ours.

That client speaks gRPC only, so Apache's proxy runs too. The older `rocketmq-client-python` (remoting protocol) is left
out: it is a shell around a C++ library that no Python package brings along.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

from apache.server import ApacheServer
from subjects import Apache, Subject

from pocketmq.admin import connect_admin

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / "results" / "python-client"
PACKAGE = "rocketmq-python-client"
PROGRAM = HERE / "apache" / "python_client.py"
THREADS = 64
WARM_UP_S = 8.0
ROW = "Python, official client on Apache, our SDK on PocketMQ"
TOPIC = "python"


def official_client(subject: Subject, options: argparse.Namespace) -> dict[tuple[str, str], float]:
    """Concurrent sends with the official client; nothing, with a word on stderr, when it cannot be installed."""
    if not isinstance(subject, Apache):
        raise TypeError("the official Python client is measured on Apache's server only")
    python = client_python()
    if python is None:
        print(f"    {PACKAGE} could not be installed, so it is not measured", file=sys.stderr)
        return {}
    with ApacheServer(subject.folder, proxy=True) as server:
        asyncio.run(_create_topic(server.namesrv))
        arguments = [server.grpc, TOPIC, str(THREADS), str(WARM_UP_S), str(options.seconds)]
        done = subprocess.run(
            [str(python), str(PROGRAM), *arguments],
            stdout=subprocess.PIPE,
            check=True,
            env={**os.environ, "HOME": str(subject.folder)},  # it writes its log there
        )
    return rows(json.loads(done.stdout))


def rows(figures: dict[str, float]) -> dict[tuple[str, str], float]:
    """The same rows for both clients."""
    return {
        (f"{ROW}: throughput", "msg/s"): figures["messages_per_second"],
        (f"{ROW}: client CPU", "µs/msg"): figures["client_cpu_us_per_message"],
    }


def client_python() -> Path | None:
    """The Python of an environment that has the official client, made when it is first needed."""
    python = ENVIRONMENT / "bin" / "python"
    if _has_client(python):
        return python
    try:
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", PACKAGE], check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError):
        return None
    return python if _has_client(python) else None


def _has_client(python: Path) -> bool:
    if not python.exists():
        return False
    command = [str(python), "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('rocketmq') is None)"]
    return subprocess.run(command, check=False).returncode == 0


async def _create_topic(namesrv: str) -> None:
    async with connect_admin(namesrv) as admin:
        await admin.topics.create(TOPIC, queues=8)
