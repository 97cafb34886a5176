"""Steps about time, servers, machines, the network and the disk."""

from pocketmq.testing.scenario.acting import Play, Seen, step
from pocketmq.testing.scenario.script import Step
from pocketmq.testing.scenario.stage import BROKER, pause
from pocketmq.testing.scenario.values import duration, mark, size


@step("advance DURATION", options={"duration": duration})
async def advance(play: Play, call: Step) -> None:
    """Let time pass."""
    await pause(play.stage, call.options["duration"])


@step("remember MARK")
async def remember(play: Play, call: Step) -> None:
    """Name this moment, for `from=@name`, `to=@name` and `offset-at`."""
    play.moments[mark(call.arguments["MARK"])] = play.stage.clock.time_ms()
    await pause(play.stage, 0.01)


@step("start MACHINE", only_simulated=True)
async def start(play: Play, call: Step) -> None:
    """Start `broker` or `nameserver` again, with power."""
    await play.simulated.start(call.arguments["MACHINE"])


@step("stop MACHINE")
async def stop(play: Play, call: Step) -> None:
    """Stop a server, or close a client with its consumers, in good order."""
    name = call.arguments["MACHINE"]
    reader = play.readers.pop(name, None)
    if reader is not None and reader.task is not None:
        reader.task.cancel()
    await play.stage.close_client(name)


@step("restart MACHINE", only_simulated=True)
async def restart(play: Play, call: Step) -> None:
    """Stop a server in good order and start it again."""
    await play.simulated.stop(call.arguments["MACHINE"])
    await play.simulated.start(call.arguments["MACHINE"])


@step("kill MACHINE", only_simulated=True)
async def kill(play: Play, call: Step) -> None:
    """End a server or client as SIGKILL does: what it wrote is there, what it had in memory is not."""
    play.readers.pop(call.arguments["MACHINE"], None)
    play.simulated.kill(call.arguments["MACHINE"])


@step("power-off MACHINE", only_simulated=True)
async def power_off(play: Play, call: Step) -> None:
    """Take the power from a machine: what was not synced may be lost."""
    play.readers.pop(call.arguments["MACHINE"], None)
    play.simulated.power_off(call.arguments["MACHINE"])


@step("pause MACHINE", only_simulated=True)
async def pause_machine(play: Play, call: Step) -> None:
    """Let it stand still."""
    play.simulated.machine(call.arguments["MACHINE"]).pause()


@step("resume MACHINE", only_simulated=True)
async def resume(play: Play, call: Step) -> None:
    """Let it go on."""
    play.simulated.machine(call.arguments["MACHINE"]).resume()


@step("partition ONE OTHER", only_simulated=True)
async def partition(play: Play, call: Step) -> None:
    """Let nothing through between two machines."""
    one, other = (play.simulated.machine(call.arguments[name]).address for name in ("ONE", "OTHER"))
    play.simulated.network.partition([one], [other])


@step("heal", only_simulated=True)
async def heal(play: Play, call: Step) -> None:
    """End all partitions."""
    play.simulated.network.heal()


@step("break connections", only_simulated=True)
async def break_connections(play: Play, call: Step) -> None:
    """Break all connections; each can be made again at once."""
    play.simulated.network.break_connections()


@step("disk full", options={"room": size}, only_simulated=True)
async def disk_full(play: Play, call: Step) -> None:
    """Leave the broker's disk no room, or `room=` bytes of it."""
    disk = play.simulated.machine(BROKER).disk
    disk.capacity_bytes = disk.used_bytes + call.options.get("room", 0)


@step("disk free", only_simulated=True)
async def disk_free(play: Play, call: Step) -> None:
    """Give the broker's disk all the room it wants."""
    play.simulated.machine(BROKER).disk.capacity_bytes = None


@step("disk slow DURATION", options={"duration": duration}, only_simulated=True)
async def disk_slow(play: Play, call: Step) -> None:
    """Let each sync of the broker's disk take up to so long."""
    play.simulated.machine(BROKER).disk.sync_seconds_max = call.options["duration"]


@step("clock jump MACHINE DURATION", options={"duration": duration}, only_simulated=True)
async def clock_jump(play: Play, call: Step) -> None:
    """Set the wall clock of a machine forward by so much; no time passes."""
    machine = play.simulated.machine(call.arguments["MACHINE"])
    machine.clock.jump(round(1000 * call.options["duration"]))


@step("open transactions", seen="a number", only_simulated=True)
async def open_transactions(play: Play, call: Step) -> Seen:
    """How many transactions the broker holds that have not ended."""
    assert play.simulated.broker is not None
    return Seen([str(len(play.simulated.broker.transactions))])
