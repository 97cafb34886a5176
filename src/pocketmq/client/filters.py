"""What a consumer wants of a topic: tags, or an SQL92 expression over properties."""

from typing import ClassVar

import msgspec

from pocketmq.model.config import Subscription
from pocketmq.model.errors import UsageError
from pocketmq.model.hashing import java_string_hash

ALL_EXPRESSION = "*"


class Tag(msgspec.Struct, frozen=True):
    """Messages with one of these tags: `Tag("new || paid")`. `Tag.ALL` takes everything, tagged or not."""

    ALL: ClassVar["Tag"]
    expression: str

    @property
    def kind(self) -> str:
        """How the protocol calls this kind of filter."""
        return "TAG"

    @property
    def tags(self) -> tuple[str, ...]:
        """The single tags; none means everything."""
        if self.expression.strip() in ("", ALL_EXPRESSION):
            return ()
        return tuple(tag for part in self.expression.split("||") if (tag := part.strip()))


Tag.ALL = Tag(ALL_EXPRESSION)


class Sql(msgspec.Struct, frozen=True):
    """Messages whose properties make an SQL92 expression true: `Sql("amount > 5 AND region = 'north'")`."""

    expression: str

    @property
    def kind(self) -> str:
        """How the protocol calls this kind of filter."""
        return "SQL92"

    @property
    def tags(self) -> tuple[str, ...]:
        """None: the broker alone decides."""
        return ()


Filter = Tag | Sql


def as_filter(value: Filter | str | None) -> Filter:
    """A filter from what a user may give: a filter, a tag expression, or None for everything. Raises UsageError."""
    if value is None:
        return Tag.ALL
    if isinstance(value, str):
        return Tag(value)
    if isinstance(value, (Tag, Sql)):
        if not value.expression.strip():
            raise UsageError("the filter is empty; Tag.ALL takes everything")
        return value
    raise UsageError(f"a filter is a Tag, an Sql or a string, not {type(value).__name__}")


def subscription(topic: str, wanted: Filter, version: int) -> Subscription:
    """The heartbeat's form of a filter; `version` is a time in milliseconds, newer ones replace older ones."""
    tags = list(wanted.tags)
    return Subscription(
        topic=topic,
        sub_string=" || ".join(tags) if tags else wanted.expression.strip(),
        tags_set=tags,
        code_set=[java_string_hash(tag) for tag in tags],
        sub_version=version,
        expression_type=wanted.kind,
    )
