"""One pull request and what its answer means: the building block of consumers, and `client.pull`."""

from collections.abc import Callable
from enum import Enum
from typing import cast

import msgspec

from pocketmq.client._async.delivery import Delivery
from pocketmq.client._async.remoting import Remoting, read_header
from pocketmq.client.broker_errors import error_of, unexpected
from pocketmq.client.decoding import decode_deliveries
from pocketmq.client.filters import Filter
from pocketmq.model.errors import DecodeError
from pocketmq.model.message import MessageQueue, ReceivedMessage
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.pull import PullMessageResponseHeader

COMMIT_OFFSET = 1
SUSPEND = 2
SUBSCRIPTION = 4
LITE = 16

ANSWER_GRACE_S = 15.0
"""How much longer than it may hold a pull a broker may take to answer it."""


class PullStatus(Enum):
    """How a pull ended."""

    FOUND = "found"
    NOTHING_NEW = "nothing new"
    NOTHING_MATCHED = "nothing matched"
    OFFSET_MOVED = "offset moved"


class PullResult(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to one pull. The next one begins at `next_offset`, whatever the status."""

    status: PullStatus
    messages: list[Delivery]
    next_offset: int
    min_offset: int
    max_offset: int
    suggested_broker_id: int


_STATUS = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NOTHING_NEW,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NOTHING_MATCHED,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_MOVED,
}


class Puller:
    """Pulls from one queue for one group, with the parts of the request that stay the same made once.

    The subscription goes with every pull, so that a broker serves what this consumer wants even when other members of
    its group want something else, or when the broker was restarted and has no heartbeat yet.
    """

    __slots__ = ("_fields", "_lite", "_make", "_remoting", "_tags", "_what", "queue")

    def __init__(
        self,
        remoting: Remoting,
        queue: MessageQueue,
        group: str,
        wanted: Filter,
        version: int,
        *,
        lite: bool = False,
        make: type[ReceivedMessage] = Delivery,
    ) -> None:
        self.queue = queue
        self._lite = lite
        """Ask with the code of pull consumers, for which some brokers have workers of their own."""
        self._make = cast(type[Delivery], make)
        self._remoting = remoting
        self._tags = frozenset(wanted.tags)
        self._what = f"pull from {queue.topic}"
        self._fields = {
            "consumerGroup": group,
            "topic": queue.topic,
            "queueId": str(queue.queue_id),
            "subscription": wanted.expression,
            "subVersion": str(version),
            "expressionType": wanted.kind,
            "bname": queue.broker_name,
        }

    async def pull(
        self,
        address: str,
        offset: int,
        *,
        count_max: int = 32,
        wait_s: float = 0.0,
        commit: int | None = None,
        prepare: Callable[[Delivery], None] | None = None,
    ) -> PullResult:
        """Ask for messages from `offset` on; with `wait_s` the broker may hold the request that long when it has none.

        `commit` stores a position with it. Raises PocketMQError.
        """
        fields = {
            **self._fields,
            "queueOffset": str(offset),
            "maxMsgNums": str(count_max),
            "sysFlag": str(
                SUBSCRIPTION | (SUSPEND if wait_s > 0 else 0) | (COMMIT_OFFSET if commit is not None else 0)
            ),
            "commitOffset": "0" if commit is None else str(commit),
            "suspendTimeoutMillis": str(int(wait_s * 1000)),
        }
        timeout_s = wait_s + ANSWER_GRACE_S
        answer = await self._ask(address, fields, timeout_s)
        status = _STATUS.get(answer.code)  # type: ignore[call-overload]
        if status is None:
            raise error_of(answer, self._what, address)
        header = read_header(answer, PullMessageResponseHeader, self._what, address)
        messages: list[Delivery] = []
        if status is PullStatus.FOUND:
            try:
                messages = decode_deliveries(answer.body, self.queue.broker_name, self._tags, self._make)
            except DecodeError as error:
                raise unexpected(answer, self._what, address, error) from error
        return PullResult(
            status=status,
            messages=messages,
            next_offset=header.next_begin_offset,
            min_offset=header.min_offset,
            max_offset=header.max_offset,
            suggested_broker_id=header.suggest_which_broker_id,
        )

    async def _ask(self, address: str, fields: dict[str, str], timeout_s: float) -> Command:
        if self._lite:
            lite = {**fields, "sysFlag": str(int(fields["sysFlag"]) | LITE)}
            answer = await self._remoting.ask(address, RequestCode.LITE_PULL_MESSAGE, lite, timeout_s=timeout_s)
            if answer.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                return answer
            self._lite = False
        return await self._remoting.ask(address, RequestCode.PULL_MESSAGE, fields, timeout_s=timeout_s)
