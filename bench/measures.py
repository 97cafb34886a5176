"""What is measured of each server. A measure starts and stops the server itself and returns figures by row and unit."""

import argparse
import asyncio
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apache.server import java_command
from python_clients import official_client, rows
from subjects import Apache, Subject, compile_modules

import pocketmq
from pocketmq.admin import connect_admin
from pocketmq.cli.bench_server import process_cpu_s

HERE = Path(__file__).resolve().parent
Figures = dict[tuple[str, str], float]

WARM_UP_S = 6.0
WARM_UP_MESSAGES = 200_000
WARM_UP_S_MAX = 60.0
"""What runs on a Java machine compiles itself while it works: it gets that much time and work first, and no more."""
BODY_BYTES = 128
DRAIN_MESSAGES = 2_000_000
DRAIN_TIMEOUT_S = 120.0
FILL_BODY_BYTES = 1024
TOPICS, QUEUES = 1000, 8
JAVA_LATENCY = HERE / "apache" / "Latency.java"


@contextmanager
def running(subject: Subject) -> Iterator[Subject]:
    """The server, started and in the end stopped."""
    compile_modules()
    subject.start()
    try:
        yield subject
    finally:
        subject.stop()


@contextmanager
def java_program(subject: Subject, name: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """One of the benchmark classes that come with Apache RocketMQ, ended at the end."""
    home = subject.folder / "client-home"
    home.mkdir(exist_ok=True)
    command = java_command("-Xms256m", "-Xmx512m", f"-Duser.home={home}")
    command += [f"org.apache.rocketmq.example.benchmark.{name}", "-n", subject.namesrv, "-ri", "1000", *arguments]
    with (subject.folder / f"{name}.out").open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def stored(namesrv: str, topic: str) -> int:
    """Messages that the queues of a topic have got so far."""
    async with pocketmq.connect(namesrv) as client:
        return sum([await client.end_offset(queue) for queue in await client.queues(topic)])


def warm_up(subject: Subject, topic: str) -> None:
    """Let client and server compile themselves; on a slow machine that takes longer."""
    began = time.monotonic()
    while (elapsed_s := time.monotonic() - began) < WARM_UP_S_MAX:
        time.sleep(1)
        if elapsed_s >= WARM_UP_S and _stored_or_0(subject, topic) >= WARM_UP_MESSAGES:
            return


def under_load(subject: Subject, row: str, seconds: float, topic: str) -> Figures:
    """Messages a second and CPU a message while a producer runs."""
    warm_up(subject, topic)
    count, cpu_s, began = asyncio.run(stored(subject.namesrv, topic)), process_cpu_s(subject.broker_pid), time.time()
    time.sleep(seconds)
    cpu_s = process_cpu_s(subject.broker_pid) - cpu_s
    count, elapsed_s = asyncio.run(stored(subject.namesrv, topic)) - count, time.time() - began
    return {
        (f"{row}: throughput", "msg/s"): count / elapsed_s,
        (f"{row}: broker CPU", "µs/msg"): cpu_s / count * 1e6,
    }


def single_16(subject: Subject, options: argparse.Namespace) -> Figures:
    """Java's Producer, one message a request, 16 threads."""
    return _single(subject, options, 16)


def single_64(subject: Subject, options: argparse.Namespace) -> Figures:
    """The same with 64 threads."""
    return _single(subject, options, 64)


def _single(subject: Subject, options: argparse.Namespace, threads: int) -> Figures:
    arguments = ("-t", "single", "-s", str(BODY_BYTES), "-w", str(threads))
    with running(subject), java_program(subject, "Producer", *arguments):
        return under_load(subject, f"single sends, {threads} threads", options.seconds, "single")


def batch_32(subject: Subject, options: argparse.Namespace) -> Figures:
    """Java's BatchProducer, 32 messages a request."""
    arguments = ("-t", "batch", "-s", str(BODY_BYTES), "-w", "16", "-b", "32")
    with running(subject), java_program(subject, "BatchProducer", *arguments):
        return under_load(subject, "batches of 32", options.seconds, "batch")


def drain(subject: Subject, options: argparse.Namespace) -> Figures:
    """Java's push consumer takes a backlog."""
    group = f"drain-{uuid.uuid4().hex[:8]}"
    with running(subject):
        with java_program(subject, "BatchProducer", "-t", "drain", "-s", str(BODY_BYTES), "-w", "16", "-b", "32"):
            _wait(lambda: _stored_or_0(subject, "drain") >= DRAIN_MESSAGES, DRAIN_TIMEOUT_S)
        count = asyncio.run(stored(subject.namesrv, "drain"))
        cpu_s = process_cpu_s(subject.broker_pid)
        with java_program(subject, "Consumer", "-t", "drain", "-g", group, "-p", "false"):
            _wait(lambda: asyncio.run(_behind(subject.namesrv, "drain", group)) == 0, DRAIN_TIMEOUT_S)
            cpu_s = process_cpu_s(subject.broker_pid) - cpu_s
    rates = _rates(subject.folder / "Consumer.out", "Consume TPS:")
    return {
        ("push consumer drains a backlog: throughput", "msg/s"): rates[-1],
        ("push consumer drains a backlog: broker CPU", "µs/msg"): cpu_s / count * 1e6,
    }


def latency(subject: Subject, options: argparse.Namespace) -> Figures:
    """Send to consume at 200 messages a second, with PocketMQ's SDK on both servers."""
    with running(subject):
        _bench(subject, "latency", "--rate", "200", "--seconds", "4")
        figures = _bench(subject, "latency", "--rate", "200", "--seconds", str(options.seconds))
    return {
        ("send to consume at 200 msg/s, our SDK: p50", "ms"): figures["latency_p50_ms"],
        ("send to consume at 200 msg/s, our SDK: p99", "ms"): figures["latency_p99_ms"],
    }


def latency_java(subject: Subject, options: argparse.Namespace) -> Figures:
    """The same with the Java client."""
    with running(subject):
        arguments = [subject.namesrv, "latency", "latency", "200", str(2 * WARM_UP_S), str(options.seconds)]
        command = java_command("-Xms256m", "-Xmx256m", f"-Duser.home={subject.folder}")
        done = subprocess.run([*command, str(JAVA_LATENCY), *arguments], stdout=subprocess.PIPE, check=True)
    figures = json.loads(next(line for line in done.stdout.splitlines() if line.startswith(b"{")))
    return {
        ("send to consume at 200 msg/s, Java client: p50", "ms"): figures["consume_p50_ms"],
        ("send to consume at 200 msg/s, Java client: p99", "ms"): figures["consume_p99_ms"],
    }


def sdk(subject: Subject, options: argparse.Namespace) -> Figures:
    """PocketMQ's SDK on both servers: concurrent sends, merged and not."""
    with running(subject):
        _bench(subject, "send", "--count", "50000")
        merged = _bench(subject, "send", "--count", "300000", "--concurrency", "512")
        unmerged = _bench(subject, "send", "--count", "50000", "--concurrency", "64", "--no-merge")
        consumed = _bench(subject, "consume", "--count", "200000")
    return {
        ("our SDK, concurrent sends (merged): throughput", "msg/s"): merged["messages_per_second"],
        ("our SDK, concurrent sends (merged): SDK CPU", "µs/msg"): merged["client_cpu_us_per_message"],
        ("our SDK, concurrent sends (merged): broker CPU", "µs/msg"): merged["server_cpu_us_per_message"],
        ("our SDK, one request a send: SDK CPU", "µs/msg"): unmerged["client_cpu_us_per_message"],
        ("our SDK, consuming: SDK CPU", "µs/msg"): consumed["client_cpu_us_per_message"],
    }


def python(subject: Subject, options: argparse.Namespace) -> Figures:
    """Python clients, each on the server that it was made for: concurrent sends."""
    if isinstance(subject, Apache):
        return official_client(subject, options)
    with running(subject):
        _bench(subject, "send", "--count", "50000")
        return rows(_bench(subject, "send", "--count", "300000", "--concurrency", "512"))


def start(subject: Subject, options: argparse.Namespace) -> Figures:
    """From exec until it serves, three times (the median), and what it holds then."""
    compile_modules()
    times = []
    for _ in range(3):
        times.append(subject.start())
        memory_mb = subject.resident_mb()
        subject.stop()
    return {("start-up", "s"): sorted(times)[1], ("memory, idle", "MB"): memory_mb}


def restart(subject: Subject, options: argparse.Namespace) -> Figures:
    """From exec until it serves, after kill -9 with a large log."""
    row = f"restart after kill -9, {options.log_gb:g} GB log"
    with running(subject):
        asyncio.run(_fill(subject.namesrv, "restart", int(options.log_gb * 1e9)))
        subject.kill_broker()
        return {(row, "s"): subject.start()}


def topics(subject: Subject, options: argparse.Namespace) -> Figures:
    """What 1,000 topics of 8 queues add to the memory."""
    with running(subject):
        before_mb = subject.resident_mb()
        asyncio.run(_create_topics(subject.namesrv))
        time.sleep(2)
        return {(f"{TOPICS:,} topics x {QUEUES} queues", "MB more"): subject.resident_mb() - before_mb}


async def _create_topics(namesrv: str) -> None:
    async with connect_admin(namesrv) as admin:
        for number in range(TOPICS):
            await admin.topics.create(f"topic-{number}", queues=QUEUES)


async def _fill(namesrv: str, topic: str, size_bytes: int) -> None:
    """Write a log of about `size_bytes`."""
    body = bytes(FILL_BODY_BYTES)
    batch = [body] * 256
    async with pocketmq.connect(namesrv) as client:
        for _ in range(max(1, size_bytes // (len(batch) * (FILL_BODY_BYTES + 200) * 4))):
            await asyncio.gather(*(client.send_batch(topic, batch) for _ in range(4)))


async def _behind(namesrv: str, topic: str, group: str) -> int:
    async with pocketmq.connect(namesrv) as client:
        behind = 0
        for queue in await client.queues(topic):
            position = await client.committed_offset(queue, group=group) or 0
            behind += await client.end_offset(queue) - position
        return behind


def _stored_or_0(subject: Subject, topic: str) -> int:
    try:
        return asyncio.run(stored(subject.namesrv, topic))
    except pocketmq.RouteNotFoundError:
        return 0


def _bench(subject: Subject, name: str, *arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "pocketmq", "bench", name, "--namesrv", subject.namesrv]
    command += ["--server-pid", str(subject.broker_pid), "--output", "json", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _rates(output: Path, label: str) -> list[float]:
    """The numbers behind `label` in a program's output, sorted."""
    found = [float(line.split(label)[1].split()[0]) for line in output.read_text().splitlines() if label in line]
    if not found:
        raise RuntimeError(f"{output} reports no {label}")
    return sorted(found)


def _wait(condition: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"what was waited for did not happen within {timeout_s:g} s")
        time.sleep(0.5)


MEASURES: dict[str, Callable[[Subject, argparse.Namespace], Figures]] = {
    "single16": single_16,
    "single": single_64,
    "batch": batch_32,
    "drain": drain,
    "latency": latency,
    "latency_java": latency_java,
    "sdk": sdk,
    "python": python,
    "start": start,
    "restart": restart,
    "topics": topics,
}
