"""The blocking API is what the generator makes of the asynchronous one, and works the same."""

import importlib.util
import inspect
import threading
from pathlib import Path

import pytest

import pocketmq
import pocketmq.sync
from pocketmq import ClientClosedError, UsageError
from pocketmq.testing.fakes import FakeQueue, FakeRouter

ROOT = Path(__file__).resolve().parents[3]


def test_the_generated_files_are_up_to_date():
    pytest.importorskip("ruff", reason="the generator formats with ruff, which only `python3 dev.py lint` installs")
    spec = importlib.util.spec_from_file_location("generate_sync", ROOT / "scripts" / "generate_sync.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    stale = [path.name for path, text in generator.generate().items() if path.read_text() != text]
    assert not stale, "run: python scripts/generate_sync.py"


@pytest.mark.parametrize("name", ["Client", "Consumer", "Delivery", "PullConsumer", "Transaction"])
def test_every_public_name_is_there_with_the_same_parameters(name):
    source, blocking = getattr(pocketmq, name), getattr(pocketmq.sync, name)
    renamed = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__", "__anext__": "__next__"}
    for member, value in vars(source).items():
        if member.startswith("_") and member not in renamed:
            continue
        assert hasattr(blocking, renamed.get(member, member)), member
        if inspect.isfunction(value):
            counterpart = getattr(blocking, renamed.get(member, member))
            assert list(inspect.signature(counterpart).parameters) == list(inspect.signature(value).parameters)
            assert inspect.getdoc(counterpart)


def test_blocking_calls_work_and_one_thread_serves_all_clients():
    queue = FakeQueue("orders")
    options = {"writable_queues": lambda topic: [queue], "router": FakeRouter()}
    before = threading.active_count()
    with pocketmq.sync.connect("127.0.0.1:1", **options) as one, pocketmq.sync.connect("127.0.0.1:1", **options) as two:
        receipt = one.send("orders", b"a", tag="t")
        two.send("orders", b"b")
        assert receipt.queue_offset == 0
        assert threading.active_count() == before + 1
    assert [message.body for message in queue.written] == [b"a", b"b"]
    assert threading.active_count() == before


def test_a_closed_client_says_so_and_closing_again_does_nothing():
    client = pocketmq.sync.connect("127.0.0.1:1")
    client.close()
    client.close()
    with pytest.raises(ClientClosedError):
        client.send("orders", b"")


def test_errors_come_through():
    with pytest.raises(UsageError):
        pocketmq.sync.connect("nonsense")
    with pocketmq.sync.connect("127.0.0.1:1") as client, pytest.raises(UsageError):
        client.send("bad topic!", b"")


def test_importing_does_nothing():
    import subprocess
    import sys

    code = (
        "import sys, threading, pocketmq, pocketmq.sync;"
        "assert 'asyncio' not in sys.modules and 'msgspec' not in sys.modules, 'something was loaded';"
        "assert threading.active_count() == 1;"
        "pocketmq.connect; pocketmq.sync.connect; pocketmq.Tag; assert 'connect' in dir(pocketmq)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
