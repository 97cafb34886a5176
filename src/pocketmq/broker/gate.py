"""Answers leave when what they claim is in the log, and not before.

Theory of operation. The requests that arrived in one read of a connection are a batch: each appends what it has to the
log, staged, and its answer is queued on the connection. At the end of the batch the log is written once and all answers
leave in one write of the socket. `admit` notes which of the queued answers depend on the log.

- The disk is full: nothing that was staged exists. The answers that depend on it are replaced by refusals (code 14).
- Synchronous flush: the answers that depend on the log are not queued but kept, and leave when one fsync covers the
  batch. When that takes too long they leave with code 10: stored, but perhaps not yet on the disk. When the fsync
  failed they leave with code 14: what the disk kept is not known.
"""

import logging
from typing import TYPE_CHECKING, Any

from pocketmq.broker.complaints import Complaints
from pocketmq.model.errors import PocketMQError, StoreFullError
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.frame import CommandReader

if TYPE_CHECKING:
    from pocketmq.broker.sending import Sending
    from pocketmq.log.log import Log
    from pocketmq.net.remoting import RemotingConnection

logger = logging.getLogger(__name__)


class AnswerGate:
    """Lets the answers of one batch through. There is one batch at a time: `data_received` is not re-entered."""

    def __init__(self, log: "Log", sending: "Sending", *, sync: bool) -> None:
        self._log = log
        self._sending = sending
        self._complaints = Complaints(log.clock, logger)
        self.sync = sync
        self.admitted: list[Command] = []
        """Requests of this batch whose answers depend on the log (asynchronous flush)."""
        self._kept: list[bytes] = []
        self._undone = 0
        """So many of the first `admitted` were undone by a write that failed before the end of the batch."""
        self._failure: PocketMQError | None = None

    def admit(self, command: Command, answer: bytes, *, wait: bool = True) -> bytes | None:
        """What to return from the handler of a request that appended to the log and is answered with `answer`.

        `wait` False: the sender does not want to wait for the disk.
        """
        self.admitted.append(command)
        if command.flag & 2:
            return None
        if self.sync and wait:
            self._kept.append(answer)
            return None
        return answer

    def on_undone(self, error: PocketMQError) -> None:
        """The log dropped what was staged (a journal entry had to be written in the middle of a batch)."""
        self._undone = len(self.admitted)
        self._failure = error
        self._sending.drop_staged()

    def end_batch(self, connection: "RemotingConnection") -> None:
        """Write the log, then let the answers go."""
        admitted = self.admitted
        if not admitted:
            return
        kept, self._kept = self._kept, []
        self.admitted = []
        try:
            self._sending.flush()
        except StoreFullError as error:
            self._undone = len(admitted)
            self._failure = error
        if self._undone:
            kept = self._refuse(connection, admitted[: self._undone], kept)
            self._undone, self._failure = 0, None
        if kept:
            self._answer_when_durable(connection, kept)

    def _refuse(self, connection: "RemotingConnection", undone: list[Command], kept: list[bytes]) -> list[bytes]:
        """Replace the answers of `undone` in the connection's output; returns what is left of `kept`."""
        remark = self._failure.message if self._failure is not None else "the store took nothing"
        self._complaints.warn("refused", f"{len(undone)} requests were refused: {remark}")
        refused = {command.opaque for command in undone}
        queued = _frames(connection.hold_output())
        connection.write_all([_refusal(frame, remark) if _opaque(frame) in refused else frame for frame in queued])
        connection.write_all([_refusal(frame, remark) for frame in kept if _opaque(frame) in refused])
        return [frame for frame in kept if _opaque(frame) not in refused]

    def _answer_when_durable(self, connection: "RemotingConnection", answers: list[bytes]) -> None:
        def answer(durable: bool) -> None:
            if durable:
                connection.write_all(answers)
            elif self._log.flusher.failed:
                remark = "the disk failed while the message was being stored; whether it was is not known"
                connection.write_all([_refusal(frame, remark) for frame in answers])
            else:
                connection.write_all([_flush_timed_out(frame) for frame in answers])

        self._log.when_durable(self._log.written_position, answer)


def _frames(buffers: list[Any]) -> list[bytes]:
    """Whole frames again, of output that may hold a frame in several parts."""
    data = b"".join(buffers)
    frames, offset = [], 0
    while offset < len(data):
        end = offset + 4 + int.from_bytes(data[offset : offset + 4], "big")
        frames.append(data[offset:end])
        offset = end
    return frames


def _opaque(frame: bytes) -> int:
    (answer,) = CommandReader().feed(frame)
    return answer.opaque


def _refusal(frame: bytes, remark: str) -> bytes:
    """Code 14 in place of an answer."""
    (answer,) = CommandReader().feed(frame)
    return encode_response(
        answer.opaque, ResponseCode.SERVICE_NOT_AVAILABLE, remark, serialize_type=answer.serialize_type
    )


def _flush_timed_out(frame: bytes) -> bytes:
    """The same answer with code 10: the message is stored, but the disk was too slow."""
    (answer,) = CommandReader().feed(frame)
    code = answer.code or int(ResponseCode.FLUSH_DISK_TIMEOUT)
    return encode_response(answer.opaque, code, answer.remark, answer.ext(), serialize_type=answer.serialize_type)
