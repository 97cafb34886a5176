"""`pocketmq cluster`: brokers and name servers."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from pocketmq.cli.connection import NamesrvOption
from pocketmq.cli.operating import ask, time_text
from pocketmq.cli.output import Output, show, show_one, write_json

if TYPE_CHECKING:
    from pocketmq.admin import Admin, BrokerStatus, ClusterStatus

app = App(name="cluster", help="Show brokers and name servers.")

MIB = 1 << 20


@app.command(name="show")
def show_(
    *,
    broker: Annotated[str | None, Parameter(help="All that this one says about itself.")] = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> int:
    """Show the name servers and all brokers that they know. Exit code 1 when one of them does not answer."""
    if broker is not None:
        show_one(ask(namesrv, lambda admin: _runtime(admin, broker)), output)
        return 0

    async def question(admin: "Admin") -> "ClusterStatus":
        return await admin.clusters.status()

    status = ask(namesrv, question)
    if output == "json":
        write_json(status)
    else:
        servers = [
            {"name_server": each.address, "brokers": each.brokers, "state": each.error or "fine"}
            for each in status.name_servers
        ]
        show(servers, output)
        print()
        show([_row(each) for each in status.brokers], output, empty="no broker is registered")
        for each in status.brokers:
            if each.error:
                print(f"\n{each.broker} ({each.address}): {each.error}")
    errors = [each.error for each in status.name_servers] + [each.error for each in status.brokers]
    return 1 if any(errors) else 0


async def _runtime(admin: "Admin", broker: str) -> dict[str, str]:
    return await admin.clusters.runtime(await admin.clusters.address_of(broker))


def _row(status: "BrokerStatus") -> dict[str, Any]:
    size = None
    if status.log_end_position is not None:
        size = (status.log_end_position - max(status.log_first_position or 0, 0)) // MIB
    state = "unreachable" if status.error else "fine" if status.writable else "read only"
    return {
        "cluster": status.cluster,
        "broker": status.broker,
        "id": status.broker_id,
        "address": status.address,
        "state": state,
        "version": status.version,
        "in/s": status.in_per_second,
        "out/s": status.out_per_second,
        "log_mib": size,
        "disk_%": status.disk_used_percent,
        "oldest_message": time_text(status.oldest_message_timestamp),
        "started": time_text(status.started_timestamp),
    }
