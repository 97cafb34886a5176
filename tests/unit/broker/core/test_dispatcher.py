"""Requests that have no handler, and handlers that fail."""

import asyncio

import pytest

from pocketmq.broker.dispatcher import Dispatcher
from pocketmq.model.errors import PocketMQError
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command, encode_request, encode_response
from pocketmq.wire.frame import CommandReader


class FakeConnection:
    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.wrote = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.written.append(data)
        self.wrote.set()


def request(code: int, **options) -> Command:
    (command,) = CommandReader().feed(encode_request(code, 5, None, b"", **options))
    return command


def answer_of(data) -> Command:
    (command,) = CommandReader().feed(data)
    return command


def test_an_unknown_code_is_answered_with_3() -> None:
    answer = answer_of(Dispatcher().handle(FakeConnection(), request(999)))
    assert (answer.code, answer.opaque) == (3, 5)
    assert "999" in answer.remark


def test_an_error_of_ours_keeps_its_code_and_remark() -> None:
    def fail(connection, command) -> None:
        raise PocketMQError("nobody is there", code=17)

    dispatcher = Dispatcher()
    dispatcher.on(RequestCode.HEART_BEAT, fail)
    answer = answer_of(dispatcher.handle(FakeConnection(), request(34, serialize_type=1)))
    assert (answer.code, answer.remark, answer.serialize_type) == (17, "nobody is there", 1)


def test_a_mistake_of_ours_is_code_1_and_one_log_line(caplog) -> None:
    def fail(connection, command) -> None:
        raise KeyError("x")

    dispatcher = Dispatcher()
    dispatcher.on(RequestCode.HEART_BEAT, fail)
    answer = answer_of(dispatcher.handle(FakeConnection(), request(34)))
    assert answer.code == 1
    assert "KeyError" in answer.remark
    assert len(caplog.records) == 1


@pytest.mark.parametrize("code", [999, 34])
def test_a_oneway_request_is_never_answered(code: int) -> None:
    def fail(connection, command) -> None:
        raise PocketMQError("no")

    dispatcher = Dispatcher()
    dispatcher.on(RequestCode.HEART_BEAT, fail)
    assert dispatcher.handle(FakeConnection(), request(code, oneway=True)) is None


async def test_an_answer_that_takes_time_is_written_when_it_is_there() -> None:
    gate = asyncio.Event()

    async def slow(connection, command) -> bytes:
        await gate.wait()
        return encode_response(command.opaque)

    dispatcher = Dispatcher()
    dispatcher.on_async(RequestCode.HEART_BEAT, slow)
    connection = FakeConnection()
    assert dispatcher.handle(connection, request(34)) is None
    await asyncio.sleep(0)
    assert connection.written == []
    gate.set()
    await connection.wrote.wait()
    assert answer_of(connection.written[0]).code == 0


async def test_a_slow_handler_that_fails_is_answered_too() -> None:
    async def fail(connection, command) -> None:
        raise PocketMQError("too late", code=14)

    dispatcher = Dispatcher()
    dispatcher.on_async(RequestCode.HEART_BEAT, fail)
    connection = FakeConnection()
    dispatcher.handle(connection, request(34))
    dispatcher.handle(connection, request(34, oneway=True))
    await connection.wrote.wait()
    await asyncio.sleep(0)
    assert [answer_of(data).code for data in connection.written] == [14]


async def test_closing_ends_what_is_still_being_answered() -> None:
    started = asyncio.Event()

    async def forever(connection, command) -> None:
        started.set()
        await asyncio.Event().wait()

    dispatcher = Dispatcher()
    dispatcher.on_async(RequestCode.HEART_BEAT, forever)
    connection = FakeConnection()
    dispatcher.handle(connection, request(34))
    await started.wait()
    await dispatcher.close()
    assert connection.written == []


def test_the_codes_that_are_answered_can_be_listed() -> None:
    dispatcher = Dispatcher()
    dispatcher.on(RequestCode.UNREGISTER_CLIENT, lambda connection, command: None)
    dispatcher.on(RequestCode.HEART_BEAT, lambda connection, command: None)
    assert dispatcher.codes() == [34, 35]
