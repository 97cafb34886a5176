"""`pocketmq group`: list, show, create, update and delete consumer groups."""

from typing import TYPE_CHECKING, Annotated, Any

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
)
from pocketmq.cli.output import Output, show, show_one, write_json
from pocketmq.cli.positions import print_progress
from pocketmq.model.errors import UsageError

if TYPE_CHECKING:
    from pocketmq.admin import Admin, GroupDetails, GroupInfo
    from pocketmq.model.config import GroupConfig

app = App(name="group", help="List, show, create, change and delete consumer groups.")

Enabled = Annotated[bool | None, Parameter(help="Whether it may consume at all.")]
Broadcast = Annotated[bool | None, Parameter(help="Whether its consumers may each take all messages.")]
Orderly = Annotated[bool | None, Parameter(help="Whether brokers keep the order of a queue for it (POP, gRPC).")]
Attempts = Annotated[int | None, Parameter(help="Deliveries again before a message goes to the dead letters.")]
RetryQueues = Annotated[int | None, Parameter(help="Queues of its retry topic.")]
Timeout = Annotated[int | None, Parameter(help="Minutes that a message may take.")]


@app.command(name="list")
def list_(
    pattern: str | None = None,
    /,
    *,
    system: Annotated[bool, Parameter(negative=())] = False,
    lag: bool = True,
    cluster: Cluster = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """List consumer groups with the number of their members and what they have still to consume.

    Parameters
    ----------
    pattern
        Only groups whose name holds this.
    system
        Also those that exist without being created.
    lag
        --no-lag does not ask for members and lag, which is quicker for thousands of groups.
    """

    async def question(admin: "Admin") -> "list[GroupInfo]":
        progress = progress_line("asking for groups")
        return await admin.groups.list(cluster=cluster, system=system, details=lag, progress=progress)

    found = [info for info in ask(namesrv, question) if not pattern or pattern.lower() in info.group.lower()]
    if output == "json":
        write_json(found)
        return
    rows: list[dict[str, Any]] = [
        {
            "group": info.group,
            "brokers": ", ".join(info.brokers),
            "members": info.members,
            "lag": info.lag,
            "out_per_second": info.out_per_second,
        }
        for info in found
    ]
    show(rows, output, empty="there are no groups")


@app.command(name="show")
def show_(group: str, /, *, namesrv: NamesrvOption = None, output: Output = "table") -> None:
    """Show a group: its settings, its members and what they want, and how far it is behind in each queue.

    Parameters
    ----------
    group
        Its name.
    """

    async def question(admin: "Admin") -> "GroupDetails":
        return await admin.groups.show(group)

    _print(ask(namesrv, question), output)


@app.command
def create(
    group: str,
    /,
    *,
    enabled: Enabled = None,
    broadcast: Broadcast = None,
    orderly: Orderly = None,
    attempts: Attempts = None,
    retry_queues: RetryQueues = None,
    consume_timeout: Timeout = None,
    attribute: Attributes = None,
    cluster: Cluster = None,
    broker: Broker = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Create a consumer group on all brokers, or some.

    Parameters
    ----------
    group
        Its name: letters, digits and % | - _
    """
    settings = _settings(enabled, broadcast, orderly, attempts, retry_queues, consume_timeout)
    attributes = name_value_pairs(attribute, "--attribute")

    async def question(admin: "Admin") -> "dict[str, GroupConfig]":
        return await admin.groups.create(group, attributes=attributes, cluster=cluster, broker=broker, **settings)

    _print_settings(ask(namesrv, question), output)


@app.command
def update(
    group: str,
    /,
    *,
    enabled: Enabled = None,
    broadcast: Broadcast = None,
    orderly: Orderly = None,
    attempts: Attempts = None,
    retry_queues: RetryQueues = None,
    consume_timeout: Timeout = None,
    attribute: Attributes = None,
    remove_attribute: Removals = None,
    cluster: Cluster = None,
    broker: Broker = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Change a consumer group; what is not given stays as it is.

    Parameters
    ----------
    group
        Its name.
    """
    settings = _settings(enabled, broadcast, orderly, attempts, retry_queues, consume_timeout)
    attributes = name_value_pairs(attribute, "--attribute")
    if not settings and not attributes and not remove_attribute:
        raise UsageError("there is nothing to change; `pocketmq group update --help` lists what can be")

    async def question(admin: "Admin") -> "dict[str, GroupConfig]":
        return await admin.groups.update(
            group,
            attributes=attributes,
            remove_attributes=remove_attribute or (),
            cluster=cluster,
            broker=broker,
            **settings,
        )

    _print_settings(ask(namesrv, question), output)


@app.command
def delete(
    group: str,
    /,
    *,
    keep_positions: Annotated[bool, Parameter(negative=())] = False,
    dead_letters: Annotated[bool, Parameter(negative=())] = False,
    force: Annotated[bool, Parameter(negative=())] = False,
    yes: Yes = False,
    cluster: Cluster = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Delete a consumer group, its positions and its retry topic. Asks first.

    Parameters
    ----------
    group
        Its name.
    keep_positions
        A group of this name that is created later goes on where this one was.
    dead_letters
        Delete also the messages that it gave up on (the topic %DLQ% and its name).
    force
        Even while consumers are connected; they may create it again.
    """
    confirm(f"Delete the group {group}{' and its dead letters' if dead_letters else ''}?", yes)

    async def question(admin: "Admin") -> tuple[str, ...]:
        return await admin.groups.delete(
            group, positions=not keep_positions, dead_letters=dead_letters, force=force, cluster=cluster
        )

    brokers = ask(namesrv, question)
    show_one({"deleted": group, "brokers": ", ".join(brokers) if output == "table" else brokers}, output)


def _settings(
    enabled: bool | None,
    broadcast: bool | None,
    orderly: bool | None,
    attempts: int | None,
    retry_queues: int | None,
    consume_timeout: int | None,
) -> dict[str, Any]:
    settings = {
        "consume_enable": enabled,
        "consume_broadcast_enable": broadcast,
        "consume_message_orderly": orderly,
        "retry_max_times": attempts,
        "retry_queue_nums": retry_queues,
        "consume_timeout_minute": consume_timeout,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _row(broker: str, config: "GroupConfig") -> dict[str, Any]:
    return {
        "broker": broker,
        "enabled": "yes" if config.consume_enable else "no",
        "broadcast": "yes" if config.consume_broadcast_enable else "no",
        "orderly": "yes" if config.consume_message_orderly else "no",
        "attempts": config.retry_max_times,
        "retry_queues": config.retry_queue_nums,
        "consume_timeout": f"{config.consume_timeout_minute} min",
        "attributes": " ".join(f"{name}={value}" for name, value in sorted(config.attributes.items())),
    }


def _print_settings(configs: "dict[str, GroupConfig]", output: Output) -> None:
    if output == "json":
        write_json(configs)
    else:
        show([_row(broker, config) for broker, config in configs.items()], output)


def _print(details: "GroupDetails", output: Output) -> None:
    if output == "json":
        write_json(details)
        return
    membership = details.membership
    show_one(
        {
            "group": details.group,
            "members": len(membership.members),
            "model": (membership.message_model or "").lower(),
            "begins_at": (membership.consume_from_where or "").removeprefix("CONSUME_FROM_").replace("_", " ").lower(),
            "subscriptions": ", ".join(_wanted(each) for each in membership.subscriptions),
            "lag": details.progress.lag,
            "out_per_second": details.progress.out_per_second,
        },
        output,
    )
    print()
    show([_row(each.broker, each.config) for each in details.brokers], output)
    print()
    members: list[dict[str, Any]] = [
        {
            "client_id": member.client_id,
            "address": member.address,
            "language": member.language,
            "version": member.version,
            "queues": "?" if member.queues is None else len(member.queues),
            "subscriptions": "?"
            if member.subscriptions is None
            else ", ".join(_wanted(each) for each in member.subscriptions),
        }
        for member in membership.members
    ]
    show(members, output, empty="no consumer is connected")
    print()
    print_progress(details.progress, output, empty="it has no positions yet")


def _wanted(subscription: Any) -> str:
    return f"{subscription.topic}: {subscription.expression}"
