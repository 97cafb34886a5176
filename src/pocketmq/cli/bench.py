"""`pocketmq bench send|consume|latency`: what this client and a server do per second, and what it costs.

Every run is bounded in messages or seconds. CPU times are those of the whole processes (user + system); the server's
are known when it was started by `--serve`, or its process id is given.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from cyclopts import App, Parameter

from pocketmq.cli.bench_server import Cpu, server_for
from pocketmq.cli.connection import NamesrvOption
from pocketmq.cli.output import Output, show_one
from pocketmq.model.errors import PocketMQError, UsageError

app = App(name="bench", help="Measure a server together with this client.")

Serve = Annotated[
    bool, Parameter(negative=(), help="Start a server of its own for the run (in memory, another process).")
]
DataDir = Annotated[str | None, Parameter(help="With --serve: keep the log in this folder instead of in memory.")]
ServerPid = Annotated[int | None, Parameter(help="Process id of a running server, to show its CPU time too.")]

WARM_UP_SHARE = 0.1
PREFILL_CHUNK = 10_000
STALL_TIMEOUT_S = 30.0


@app.command
def send(
    *,
    topic: str = "pocketmq-bench",
    size: int = 128,
    count: int = 200_000,
    concurrency: int = 256,
    batch: int = 1,
    merge: bool = True,
    serve: Serve = False,
    data_dir: DataDir = None,
    server_pid: ServerPid = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Send messages as fast as they are acknowledged.

    Parameters
    ----------
    topic
        Where to; it is created when it is missing.
    size
        Bytes of a body.
    count
        Messages to send.
    concurrency
        Callers that send at the same time, each waiting for its receipt.
    batch
        Messages of one `send_batch` call; 1 uses `send`.
    merge
        Let sends of the same moment share requests (--no-merge: one request a message).
    """
    _check(size=size, count=count, concurrency=concurrency, batch=batch)

    async def run(address: str) -> dict[str, Any]:
        import pocketmq

        body = bytes(size)
        async with pocketmq.connect(address, merge=merge) as client:
            latencies: list[float] = []
            await client.send(topic, body)

            async def caller(calls: int) -> None:
                for _ in range(calls):
                    began = time.perf_counter()
                    if batch > 1:
                        await client.send_batch(topic, [body] * batch)
                    else:
                        await client.send(topic, body)
                    latencies.append(time.perf_counter() - began)

            calls = max(1, count // (concurrency * batch))
            await _callers(caller, concurrency, max(1, int(calls * WARM_UP_SHARE)))
            latencies.clear()
            cpu = Cpu(pid)
            await _callers(caller, concurrency, calls)
            return {**cpu.report(calls * concurrency * batch), **_percentiles(latencies)}

    with server_for(serve, namesrv, data_dir, server_pid) as (address, pid):
        show_one(_run(run(address)), output)


@app.command
def consume(
    *,
    topic: str | None = None,
    size: int = 128,
    count: int = 200_000,
    serve: Serve = False,
    data_dir: DataDir = None,
    server_pid: ServerPid = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Fill a topic, then let one consumer drain it, acknowledging every message.

    Parameters
    ----------
    topic
        Topic to fill and drain (default: a new one).
    size
        Bytes of a body.
    count
        Messages.
    """
    _check(size=size, count=count)
    name = topic or f"pocketmq-bench-{os.getpid()}"

    async def run(address: str) -> dict[str, Any]:
        import pocketmq

        body = bytes(size)
        async with pocketmq.connect(address) as client:
            for start in range(0, count, PREFILL_CHUNK):
                bodies = [body] * min(PREFILL_CHUNK, count - start)
                await asyncio.gather(*(client.send(name, each) for each in bodies))
            cpu = Cpu(pid)
            done = 0
            consumer = client.consume(name, group=f"bench-{os.getpid()}", from_where="first", buffer_messages=10_000)
            async with consumer:
                while done < count:
                    delivery = await asyncio.wait_for(anext(consumer), STALL_TIMEOUT_S)
                    await delivery.ack()
                    done += 1
                return cpu.report(done)

    with server_for(serve, namesrv, data_dir, server_pid) as (address, pid):
        show_one(_run(run(address)), output)


@app.command
def latency(
    *,
    topic: str | None = None,
    size: int = 128,
    rate: int = 200,
    seconds: float = 10.0,
    serve: Serve = False,
    data_dir: DataDir = None,
    server_pid: ServerPid = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Send at a fixed rate and measure from before the send until the consumer has the message.

    Parameters
    ----------
    topic
        Topic to use (default: a new one).
    size
        Bytes of a body, at least 8.
    rate
        Messages a second.
    seconds
        How long.
    """
    _check(size=size, rate=rate)
    name = topic or f"pocketmq-bench-{os.getpid()}"
    count = int(rate * seconds)

    async def run(address: str) -> dict[str, Any]:
        import pocketmq

        latencies: list[float] = []
        async with pocketmq.connect(address) as client:
            await client.send(name, bytes(max(8, size)))
            consumer = client.consume(name, group=f"bench-{os.getpid()}", from_where="first")

            async def receiver() -> None:
                async for delivery in consumer:
                    sent = int.from_bytes(delivery.body[:8], "big")
                    if sent:
                        latencies.append((time.perf_counter_ns() - sent) / 1e9)
                    await delivery.ack()
                    if len(latencies) >= count:
                        return

            async with consumer:
                receiving = asyncio.ensure_future(receiver())
                await asyncio.sleep(1.0)
                cpu = Cpu(pid)
                await _send_at_rate(client, name, max(8, size), rate, count)
                await asyncio.wait_for(receiving, STALL_TIMEOUT_S)
                return {**cpu.report(count), **_percentiles(latencies)}

    with server_for(serve, namesrv, data_dir, server_pid) as (address, pid):
        show_one(_run(run(address)), output)


async def _send_at_rate(client: Any, topic: str, size: int, rate: int, count: int) -> None:
    began = time.perf_counter()
    sends: set[asyncio.Task[Any]] = set()
    for number in range(count):
        wait = began + number / rate - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        body = time.perf_counter_ns().to_bytes(8, "big") + bytes(size - 8)
        task = asyncio.ensure_future(client.send(topic, body))
        sends.add(task)
        task.add_done_callback(sends.discard)
    await asyncio.gather(*sends)


async def _callers(caller: Callable[[int], Coroutine[Any, Any, None]], concurrency: int, calls: int) -> None:
    await asyncio.gather(*(caller(calls) for _ in range(concurrency)))


def _percentiles(latencies: list[float]) -> dict[str, float]:
    """p50, p99 and the largest, in milliseconds."""
    ordered = sorted(latencies)
    last = len(ordered) - 1
    return {
        "latency_p50_ms": round(ordered[last // 2] * 1000, 3),
        "latency_p99_ms": round(ordered[int(last * 0.99)] * 1000, 3),
        "latency_max_ms": round(ordered[last] * 1000, 3),
    }


def _run(main: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    try:
        import uvloop
    except ImportError:
        runner: Callable[[Coroutine[Any, Any, dict[str, Any]]], dict[str, Any]] = asyncio.run
    else:
        runner = uvloop.run
    try:
        return runner(main)
    except TimeoutError as error:
        raise PocketMQError(f"nothing came for {STALL_TIMEOUT_S:g} s; the run was given up", cause=error) from error


def _check(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise UsageError(f"--{name} must be at least 1")
