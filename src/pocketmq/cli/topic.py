"""`pocketmq topic`: list, show, create, update and delete topics."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from pocketmq.cli.connection import NamesrvOption
from pocketmq.cli.operating import (
    Attributes,
    Broker,
    Cluster,
    Removals,
    Yes,
    ask,
    confirm,
    name_value_pairs,
    progress_line,
    time_text,
)
from pocketmq.cli.output import Output, show, show_one, write_json

if TYPE_CHECKING:
    from pocketmq.admin import Admin, TopicDetails, TopicInfo

app = App(name="topic", help="List, show, create, change and delete topics.")

MessageType = Annotated[
    Literal["NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"] | None,
    Parameter(help="What kind of messages it takes, for clients that check that."),
]
Permission = Annotated[Literal["rw", "r", "w", "-"] | None, Parameter(help="What clients may do: read, write.")]


@app.command(name="list")
def list_(
    pattern: str | None = None,
    /,
    *,
    system: Annotated[bool, Parameter(negative=())] = False,
    cluster: Cluster = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """List topics.

    Parameters
    ----------
    pattern
        Only topics whose name holds this.
    system
        Also those of brokers and groups: retries, dead letters, TBW102 and so on.
    """

    async def question(admin: "Admin") -> "list[TopicInfo]":
        return await admin.topics.list(cluster=cluster, system=system, progress=progress_line("asking brokers"))

    found = [info for info in ask(namesrv, question) if not pattern or pattern.lower() in info.topic.lower()]
    if output == "json":
        write_json(found)
        return
    rows = [
        {
            "topic": info.topic,
            "kind": info.kind,
            "brokers": ", ".join(info.brokers) or "none reachable",
            "read_queues": info.read_queues,
            "write_queues": info.write_queues,
            "permission": info.permission,
            "order": "yes" if info.order else "",
            "type": info.message_type,
        }
        for info in found
    ]
    show(rows, output, empty="there are no topics" + ("" if system else "; --system shows those of the brokers, too"))


@app.command(name="show")
def show_(topic: str, /, *, namesrv: NamesrvOption = None, output: Output = "table") -> None:
    """Show a topic: where it is, its settings, its queues with their offsets, and who reads it.

    Parameters
    ----------
    topic
        Its name.
    """

    async def question(admin: "Admin") -> "TopicDetails":
        return await admin.topics.show(topic)

    _print(ask(namesrv, question), output)


@app.command
def create(
    topic: str,
    /,
    *,
    queues: int = 8,
    permission: Permission = None,
    order: Annotated[bool, Parameter(negative=())] = False,
    message_type: MessageType = None,
    attribute: Attributes = None,
    cluster: Cluster = None,
    broker: Broker = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Create a topic on all brokers, or some.

    Parameters
    ----------
    topic
        Its name: letters, digits and % | - _
    queues
        How many on each broker.
    order
        Keep its queues the same while a broker is away, for messages in strict order.
    """
    attributes = _attributes(attribute, message_type)

    async def question(admin: "Admin") -> "TopicDetails":
        return await admin.topics.create(
            topic,
            queues=queues,
            permission=permission or "rw",
            order=order,
            attributes=attributes,
            cluster=cluster,
            broker=broker,
        )

    _print(ask(namesrv, question), output)


@app.command
def update(
    topic: str,
    /,
    *,
    queues: int | None = None,
    read_queues: int | None = None,
    write_queues: int | None = None,
    permission: Permission = None,
    order: bool | None = None,
    message_type: MessageType = None,
    attribute: Attributes = None,
    remove_attribute: Removals = None,
    cluster: Cluster = None,
    broker: Broker = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Change a topic; what is not given stays as it is.

    To have fewer queues, lower --write-queues first, and --read-queues when those are drained.

    Parameters
    ----------
    topic
        Its name.
    queues
        How many on each broker, to read and to write.
    read_queues
        How many can be read.
    write_queues
        How many can be written.
    order
        Keep its queues the same while a broker is away, for messages in strict order.
    """
    attributes = _attributes(attribute, message_type)

    async def question(admin: "Admin") -> "TopicDetails":
        return await admin.topics.update(
            topic,
            queues=queues,
            read_queues=read_queues,
            write_queues=write_queues,
            permission=permission,
            order=order,
            attributes=attributes,
            remove_attributes=remove_attribute or (),
            cluster=cluster,
            broker=broker,
        )

    _print(ask(namesrv, question), output)


@app.command
def delete(
    topic: str,
    /,
    *,
    yes: Yes = False,
    cluster: Cluster = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Delete a topic with all of its messages. Asks first.

    Parameters
    ----------
    topic
        Its name.
    """

    async def look(admin: "Admin") -> "TopicDetails":
        return await admin.topics.show(topic)

    async def question(admin: "Admin") -> tuple[str, ...]:
        return await admin.topics.delete(topic, cluster=cluster)

    if not yes:
        details = ask(namesrv, look)
        where = f"cluster {cluster}" if cluster else ", ".join(each.broker for each in details.brokers)
        confirm(f"Delete the topic {topic} with {details.messages} messages from {where or 'all name servers'}?", yes)
    brokers = ask(namesrv, question)
    show_one({"deleted": topic, "brokers": ", ".join(brokers) if output == "table" else brokers}, output)


def _attributes(texts: list[str] | None, message_type: str | None) -> dict[str, str]:
    attributes = name_value_pairs(texts, "--attribute")
    if message_type is not None:
        attributes["message.type"] = message_type
    return attributes


def _print(details: "TopicDetails", output: Output) -> None:
    if output == "json":
        write_json(details)
        return
    from pocketmq.admin.topics import permission_text

    show_one(
        {
            "topic": details.topic,
            "kind": details.kind,
            "messages": details.messages,
            "in_per_second": details.in_per_second,
            "groups": ", ".join(details.groups) or "none",
        },
        output,
    )
    brokers: list[dict[str, Any]] = [
        {
            "broker": each.broker,
            "address": each.address,
            "cluster": each.cluster,
            "read_queues": each.config.read_queue_nums,
            "write_queues": each.config.write_queue_nums,
            "permission": permission_text(each.config.perm),
            "order": "yes" if each.config.order else "",
            "attributes": " ".join(f"{name}={value}" for name, value in sorted(each.config.attributes.items())),
        }
        for each in details.brokers
    ]
    queues: list[dict[str, Any]] = [
        {
            "broker": each.broker,
            "queue": each.queue,
            "first_offset": each.first_offset,
            "end_offset": each.end_offset,
            "messages": each.messages,
            "last_stored": time_text(each.last_stored_timestamp),
        }
        for each in details.queues
    ]
    print()
    show(brokers, output, empty="no broker that has it can be reached")
    print()
    show(queues, output, empty="it has no queues")
