"""Sends with the official Python client of RocketMQ 5, as fast as its messages are acknowledged.

Run by `compare.py` with the Python of an environment that has `rocketmq-python-client`. Arguments: the gRPC endpoint,
the topic, how many threads send at the same time, seconds to warm up, seconds to measure. Prints one JSON line.
"""

import json
import sys
import threading
import time

from rocketmq.v5.client import ClientConfiguration, Credentials
from rocketmq.v5.model import Message
from rocketmq.v5.producer import Producer

BODY_BYTES = 128


def main() -> None:
    """Send, count, print."""
    endpoint, topic, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    warm_up_s, seconds = float(sys.argv[4]), float(sys.argv[5])
    producer = Producer(ClientConfiguration(endpoint, Credentials()), (topic,))
    producer.startup()
    counts = [0] * threads
    failures: list[str] = []
    stopping = threading.Event()

    def send(place: int) -> None:
        while not stopping.is_set():
            message = Message()
            message.topic = topic
            message.body = bytes(BODY_BYTES)
            try:
                producer.send(message)
            except Exception as error:  # a busy server refuses some
                failures.append(repr(error))
            else:
                counts[place] += 1

    senders = [threading.Thread(target=send, args=(place,), daemon=True) for place in range(threads)]
    for sender in senders:
        sender.start()
    time.sleep(warm_up_s)
    count, began, cpu_s = sum(counts), time.perf_counter(), time.process_time()
    time.sleep(seconds)
    count, elapsed_s, cpu_s = sum(counts) - count, time.perf_counter() - began, time.process_time() - cpu_s
    stopping.set()
    if not count:
        sys.exit(f"nothing was acknowledged; {failures[:1]}")
    figures = {"messages_per_second": count / elapsed_s, "client_cpu_us_per_message": cpu_s / count * 1e6}
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
