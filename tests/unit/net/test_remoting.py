"""Requests, answers, limits and ends of one remoting connection, over a transport that only keeps what is written."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.model.errors import ConnectionClosedError, RequestTimeoutError, UsageError
from pocketmq.net import pending, remoting
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.command import Command, encode_request, encode_response
from pocketmq.wire.frame import CommandReader

Make = Callable[..., RemotingConnection]


@pytest.fixture
def make(clock: Any, transport: Any) -> Make:
    def open_connection(**options: Any) -> RemotingConnection:
        connection = RemotingConnection(clock, **options)
        connection.connection_made(transport)
        return connection

    return open_connection


def commands(*writes: bytes) -> list[Command]:
    return CommandReader().feed(b"".join(writes))


def echo(connection: RemotingConnection, command: Command) -> bytes:
    return encode_response(command.opaque, 0, f"code {command.code}")


async def test_all_requests_of_one_read_are_answered_in_one_write(make: Make, transport: Any) -> None:
    ended: list[RemotingConnection] = []
    connection = make(on_request=echo, on_batch_end=ended.append)
    connection.data_received(b"".join(encode_request(10, opaque) for opaque in range(5)))
    assert len(transport.writes) == 1
    assert [c.opaque for c in commands(*transport.writes)] == [0, 1, 2, 3, 4]
    assert ended == [connection]


async def test_a_frame_cut_anywhere_is_put_together(make: Make, transport: Any) -> None:
    connection = make(on_request=echo)
    for byte in encode_request(10, 7, {"a": "b"}, b"body"):
        connection.data_received(bytes([byte]))
    assert [c.opaque for c in commands(*transport.writes)] == [7]


async def test_an_answer_of_several_buffers_is_written_whole(make: Make, transport: Any) -> None:
    frame = encode_response(1, 0, None, None, b"x" * 100_000)
    connection = make(on_request=lambda _, command: [frame[:50], memoryview(frame)[50:]])
    connection.data_received(encode_request(11, 1) + encode_request(11, 1))
    assert transport.writes == [frame + frame]


async def test_what_a_handler_writes_itself_leaves_with_the_batch(make: Make, transport: Any) -> None:
    def handle(connection: RemotingConnection, command: Command) -> bytes:
        connection.write(encode_request(40, 99, oneway=True))
        return encode_response(command.opaque)

    connection = make(on_request=handle)
    connection.data_received(encode_request(34, 1))
    assert len(transport.writes) == 1
    assert [c.opaque for c in commands(*transport.writes)] == [99, 1]


async def test_one_way_requests_get_no_answer_whatever_the_handler_says(make: Make, transport: Any) -> None:
    connection = make(on_request=echo)
    connection.data_received(encode_request(10, 1, oneway=True))
    assert transport.writes == []


async def test_a_handler_that_raises_becomes_an_answer_and_the_connection_lives(
    make: Make, transport: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def handle(connection: RemotingConnection, command: Command) -> bytes:
        if command.code == 1:
            raise ValueError("surprise")
        if command.code == 2:
            raise UsageError("ask for something else", code=29)
        return echo(connection, command)

    connection = make(on_request=handle)
    with caplog.at_level(logging.INFO, "pocketmq.net"):
        connection.data_received(b"".join(encode_request(code, code) for code in (1, 2, 3)))
    answers = commands(*transport.writes)
    assert [(c.code, c.remark) for c in answers] == [
        (1, "ValueError: surprise"),
        (29, "ask for something else"),
        (0, "code 3"),
    ]
    assert len(caplog.records) == 1
    assert "10.0.0.9:50000" in caplog.text and "Traceback" not in caplog.text
    assert not connection.closed


async def test_without_a_handler_every_request_is_refused_with_3(make: Make, transport: Any) -> None:
    connection = make()
    connection.data_received(encode_request(40, 5))
    assert [(c.code, c.opaque) for c in commands(*transport.writes)] == [(3, 5)]


async def test_answers_can_be_held_back_and_written_later(make: Make, transport: Any) -> None:
    held: list[Any] = []
    connection = make(on_request=echo, on_batch_end=lambda c: held.extend(c.hold_output()))
    connection.data_received(encode_request(10, 1) + encode_request(10, 2))
    assert transport.writes == []
    connection.write_all(held)
    assert [c.opaque for c in commands(*transport.writes)] == [1, 2]


async def test_a_batch_end_that_fails_lets_no_answer_out(make: Make, transport: Any) -> None:
    def fail(connection: RemotingConnection) -> None:
        raise OSError("no room")

    connection = make(on_request=echo, on_batch_end=fail)
    connection.data_received(encode_request(10, 1))
    assert transport.writes == []
    assert transport.aborted


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"\xff\xff\xff\xff\x00\x00\x00\x00", "negative"),
        (b"\x7f\xff\xff\xff\x00\x00\x00\x00", "bytes"),
    ],
)
async def test_garbage_is_one_log_line_and_the_end_of_the_connection(
    make: Make, transport: Any, caplog: pytest.LogCaptureFixture, data: bytes, hint: str
) -> None:
    connection = make(on_request=echo)
    connection.data_received(data)
    connection.data_received(data)
    assert transport.aborted and transport.writes == []
    assert len(caplog.records) == 1
    assert "10.0.0.9:50000" in caplog.text and hint in caplog.text


async def test_a_request_gets_its_own_answer_in_any_order(make: Make, transport: Any) -> None:
    connection = make(accepted=False)
    first = asyncio.ensure_future(connection.request(105, timeout_s=3))
    second = asyncio.ensure_future(connection.request(106, timeout_s=3))
    await asyncio.sleep(0)
    sent = commands(*transport.writes)
    assert [c.code for c in sent] == [105, 106]
    connection.data_received(encode_response(sent[1].opaque, 0, "two") + encode_response(sent[0].opaque, 17, "one"))
    assert ((await first).remark, (await second).remark) == ("one", "two")


async def test_requests_time_out_each_in_its_time_and_late_answers_are_ignored(
    make: Make, transport: Any, clock: Any
) -> None:
    connection = make(accepted=False)
    long, short = (connection.start_request(105, timeout_s=timeout_s) for timeout_s in (10, 2))
    clock.advance(2.5)
    assert isinstance(short.exception(), RequestTimeoutError) and not long.done()
    for command in commands(*transport.writes):
        connection.data_received(encode_response(command.opaque))
    assert long.result().code == 0
    clock.advance(60)
    assert clock.timers == 0


async def test_a_cancelled_request_leaves_nothing_behind(make: Make, transport: Any) -> None:
    connection = make(accepted=False)
    task = asyncio.ensure_future(connection.request(105, timeout_s=3))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    connection.data_received(encode_response(commands(*transport.writes)[0].opaque))
    assert not connection.closed


async def test_numbers_wrap_round_and_skip_those_still_waiting(clock: Any) -> None:
    waiting = pending.PendingRequests(clock, "peer:1")
    waiting.add(0, asyncio.get_running_loop().create_future(), 5)
    waiting._next_opaque = pending.OPAQUE_MAX
    assert waiting.take_opaque() == pending.OPAQUE_MAX
    assert waiting.take_opaque() == 1


async def test_the_table_of_waiting_requests_is_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "REQUESTS_PENDING_MAX", 3)
    connection = make(accepted=False)
    for _ in range(3):
        connection.start_request(105, timeout_s=1)
    with pytest.raises(Exception, match="wait for an answer already"):
        connection.start_request(105, timeout_s=1)


async def test_a_lost_connection_fails_what_waits_and_refuses_what_comes(make: Make, transport: Any) -> None:
    closed: list[RemotingConnection] = []
    connection = make(accepted=False, on_closed=closed.append)
    future = connection.start_request(105, timeout_s=3)
    connection.connection_lost(ConnectionResetError("reset by peer"))
    assert closed == [connection]
    with pytest.raises(ConnectionClosedError, match="reset by peer"):
        await future
    with pytest.raises(ConnectionClosedError):
        await connection.request(105, timeout_s=3)
    with pytest.raises(ConnectionClosedError):
        connection.request_oneway(105)
    connection.write(b"late answer of a held pull")
    assert len(transport.writes) == 1


async def test_nothing_is_written_to_a_connection_that_just_broke(make: Make, transport: Any) -> None:
    connection = make()
    transport.closing = True
    for _ in range(10):
        connection.write(b"x")
    assert transport.writes == []
    connection.connection_lost(None)


async def test_one_way_requests_of_our_own_carry_the_flag(make: Make, transport: Any) -> None:
    make(accepted=False).request_oneway(40, {"consumerGroup": "g"})
    (command,) = commands(*transport.writes)
    assert command.is_oneway and command.ext() == {"consumerGroup": "g"}


async def test_a_silent_peer_is_closed_and_a_talking_one_is_not(make: Make, transport: Any, clock: Any) -> None:
    connection = make(on_request=echo, idle_s=120)
    clock.advance(100)
    connection.data_received(encode_request(34, 1))
    clock.advance(100)
    assert not transport.closing
    assert clock.timers == 1
    clock.advance(30)
    assert transport.closing
    connection.connection_lost(None)
    assert clock.timers == 0


async def test_a_closed_connection_writes_what_is_queued_and_waits_only_so_long(
    make: Make, transport: Any, clock: Any
) -> None:
    def handle(connection: RemotingConnection, command: Command) -> bytes:
        connection.close("go away")
        return encode_response(command.opaque)

    connection = make(on_request=handle)
    connection.data_received(encode_request(34, 1) + encode_request(34, 2))
    assert [c.opaque for c in commands(*transport.writes)] == [1, 2]
    assert transport.closing and not transport.aborted
    clock.advance(remoting.CLOSE_GRACE_S)
    assert transport.aborted


async def test_a_peer_that_reads_slowly_is_not_read_from_until_it_has_caught_up(make: Make, transport: Any) -> None:
    connection = make(on_request=echo)
    connection.pause_writing()
    assert not transport.reading
    connection.resume_writing()
    assert transport.reading


async def test_a_dialled_connection_goes_on_reading(make: Make, transport: Any) -> None:
    make(accepted=False).pause_writing()
    assert transport.reading


async def test_requests_wait_while_answers_pile_up(make: Make, transport: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remoting, "BATCH_BYTES_MAX", 1000)
    handled: list[int] = []

    def handle(connection: RemotingConnection, command: Command) -> bytes:
        handled.append(command.opaque)
        return encode_response(command.opaque, body=b"x" * 2000)

    connection = make(on_request=handle)
    transport.write = lambda data: (transport.writes.append(data), connection.pause_writing())
    connection.data_received(b"".join(encode_request(11, opaque) for opaque in range(3)))
    assert handled == [0] and not transport.reading
    connection.resume_writing()
    connection.resume_writing()
    assert handled == [0, 1, 2]
    connection.resume_writing()
    assert transport.reading
    assert [c.opaque for c in commands(*transport.writes)] == [0, 1, 2]


async def test_a_peer_that_reads_nothing_is_cut_off(
    make: Make, transport: Any, caplog: pytest.LogCaptureFixture
) -> None:
    connection = make(on_request=echo)
    connection.pause_writing()
    transport.waiting = remoting.OUTPUT_BYTES_MAX + 1
    connection.write(b"answer of a held pull")
    assert transport.aborted
    assert len(caplog.records) == 1 and "does not read" in caplog.text


async def test_a_slow_peer_lives_as_long_as_it_takes_something(make: Make, transport: Any, clock: Any) -> None:
    connection = make(on_request=echo, idle_s=120)
    connection.pause_writing()
    for left in (9_000_000, 8_000_000, 7_000_000):
        transport.waiting = left
        clock.advance(121)
        assert not transport.closing
    clock.advance(121)
    assert transport.closing


async def test_a_request_waits_until_the_peer_reads_again(make: Make, transport: Any, clock: Any) -> None:
    connection = make(accepted=False)
    connection.pause_writing()
    request = asyncio.ensure_future(connection.request(10, timeout_s=3))
    await asyncio.sleep(0)
    assert transport.writes == []
    connection.resume_writing()
    for _ in range(3):
        await asyncio.sleep(0)
    connection.data_received(encode_response(commands(*transport.writes)[0].opaque))
    assert (await request).code == 0
    connection.pause_writing()
    refused = asyncio.ensure_future(connection.request(10, timeout_s=3))
    await asyncio.sleep(0)
    clock.advance(3)
    with pytest.raises(RequestTimeoutError, match="does not read"):
        await refused


async def test_what_goes_wrong_where_an_answer_is_taken_ends_there(
    make: Make, transport: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def done(self) -> bool:
            return False

        def set_result(self, result: Command) -> None:
            raise ValueError("surprise")

        def set_exception(self, exception: BaseException) -> None:
            raise AssertionError

    connection = make(accepted=False)
    connection.send_request(105, timeout_s=3, receiver=Broken())
    other = connection.start_request(106, timeout_s=3)
    await asyncio.sleep(0)
    connection.data_received(b"".join(encode_response(c.opaque) for c in commands(*transport.writes)))
    assert (await other).code == 0 and len(caplog.records) == 1


async def test_quick_requests_of_one_turn_leave_in_one_write(make: Make, transport: Any) -> None:
    connection = make(accepted=False)
    for _ in range(3):
        connection.send_request(105, timeout_s=3, receiver=asyncio.get_running_loop().create_future())
    assert transport.writes == []
    await asyncio.sleep(0)
    assert len(transport.writes) == 1 and len(commands(*transport.writes)) == 3


async def test_queued_requests_leave_when_they_are_flushed(make: Make, transport: Any) -> None:
    connection = make(accepted=False)
    for _ in range(3):
        connection.send_request(105, timeout_s=3, receiver=asyncio.get_running_loop().create_future(), queued=True)
    await asyncio.sleep(0)
    assert transport.writes == []
    connection.flush()
    connection.flush()
    assert len(transport.writes) == 1 and len(commands(*transport.writes)) == 3
