"""The blocking API with a real server in this process."""

import threading

import pytest

import pocketmq.sync
from pocketmq import Message, UsageError


def test_sending_and_receiving_block_until_done(pocketmq_sync_client):
    client = pocketmq_sync_client
    receipts = client.send_batch([Message(topic="blocking", body=b"%d" % n, tag="t") for n in range(5)])
    assert [receipt.queue_offset for receipt in receipts] == list(range(5))
    bodies = []
    with client.consume("blocking", group="blocking-group", from_where="first") as consumer:
        for message in consumer:
            with message:
                bodies.append(message.body)
                assert (message.topic, message.tag, message.delivery_attempt) == ("blocking", "t", 1)
            if len(bodies) == 5:
                break
        assert consumer.next(timeout=0.05) is None
        assert consumer.group == "blocking-group"
        assert sum(consumer.positions().values()) == 5
        assert len(consumer.queues) >= 4
    assert bodies == [b"%d" % n for n in range(5)]
    assert consumer.closed


def test_many_threads_may_use_one_client(pocketmq_sync_client):
    client = pocketmq_sync_client
    receipts = []

    def work(name):
        receipts.extend([client.send("threads", b"%s %d" % (name, n)) for n in range(20)])

    threads = [threading.Thread(target=work, args=(b"%d" % n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({(receipt.queue, receipt.queue_offset) for receipt in receipts}) == 100


def test_a_handler_runs_in_threads_and_may_use_the_client(pocketmq_sync_client):
    client = pocketmq_sync_client
    client.send_batch("handled", [b"%d" % n for n in range(10)])
    names, done = set(), threading.Event()
    consumer = client.consume("handled", group="handler-group", from_where="first")

    def handle(message):
        names.add(threading.current_thread().name)
        receipt = client.send("answers", message.body)
        assert receipt.status == "SEND_OK"
        if sum(end(client, queue) for queue in client.queues("answers")) == 10:
            done.set()

    runner = threading.Thread(target=consumer.run, args=(handle,), kwargs={"concurrency": 4})
    runner.start()
    assert done.wait(10)
    consumer.close()
    runner.join(10)
    assert not runner.is_alive()
    assert all(name.startswith("pocketmq-handler") for name in names)


def end(client, queue):
    return client.end_offset(queue)


def test_calling_from_the_loop_itself_is_refused_instead_of_hanging(pocketmq_server):
    class Impatient:
        def choose(self, message, queues, avoid):
            client.queues("orders")

    with (
        pocketmq.sync.connect(pocketmq_server.namesrv, router=Impatient()) as client,
        pytest.raises(UsageError, match="loop"),
    ):
        client.send("orders", b"")
