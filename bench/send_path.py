"""What one send costs the broker inside its process, step by step, without sockets: CPU time in microseconds a message.

    python3 dev.py run python bench/send_path.py

The rest of what `compare.py` shows for a send is the operating system's: waiting for connections to become readable,
receiving, sending, and what two busy programs on the same cores take from each other's caches.
"""

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import Callable
from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.log.disk import RealDisk
from pocketmq.model.settings import Settings
from pocketmq.net.clock import SystemClock
from pocketmq.net.network import TcpNetwork
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import JSON, ROCKETMQ, encode_request
from pocketmq.wire.frame import CommandReader
from pocketmq.wire.headers.send import SendMessageRequestHeaderV2

TOPIC = "SendPath"
BODY = b"x" * 128
MESSAGES = 20_000
ROUNDS = 7


class Output(asyncio.Transport):
    """A transport that swallows what is written."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 50000) if name in ("peername", "sockname") else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: Any) -> None:
        pass

    def writelines(self, list_of_data: Any) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        pass


def frame(number: int, kind: int) -> bytes:
    """A send as the official benchmark makes it."""
    properties = f"UNIQ_KEY\x01AC11000200002A9F00000000{number:08X}\x02WAIT\x01true"
    header = SendMessageRequestHeaderV2(
        "benchmark_producer", TOPIC, "TBW102", 4, number % 4, 0, 1_700_000_000_000 + number, 0, properties,
        0, False, None, False, "broker-a",
    )  # fmt: skip
    return encode_request(
        RequestCode.SEND_MESSAGE_V2, number, header, BODY, serialize_type=kind, language="JAVA", version=479
    )


def cost_us(reads: list[bytes], per_read: int, handle: Callable[[bytes], object]) -> float:
    """The least of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for data in reads:
            handle(data)
        best = min(best, time.process_time() - began)
    return best / len(reads) / per_read * 1e6


async def measure() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings()
        settings.store.data_dir = folder
        settings.broker.port = 0
        broker = Broker(settings, clock=SystemClock(), disk=RealDisk(), network=TcpNetwork())
        await broker.start()
        connection = broker.server._accept()
        connection.connection_made(Output())
        connection.data_received(frame(0, JSON))
        await asyncio.sleep(0.1)
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        print("header  sends a read  reading frames  all in process")
        for name, kind in (("JSON", JSON), ("binary", ROCKETMQ)):
            for per_read in (1, 4, 16, 64):
                reads = [
                    b"".join(frame(index * per_read + each, kind) for each in range(per_read))
                    for index in range(MESSAGES // per_read)
                ]
                reader = CommandReader()
                reading = cost_us(reads, per_read, reader.feed)
                everything = cost_us(reads, per_read, connection.data_received)
                print(f"{name:6}  {per_read:12}  {reading:11.2f} µs  {everything:11.2f} µs")
                await asyncio.sleep(0)
        connection.connection_lost(None)
        await broker.stop()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    asyncio.run(measure())
