"""The `pocketmq` command: what it offers, and how its errors look.

Commands are named here and loaded only when they are called, so that `pocketmq serve` does not pay for the others.
Exit codes: 0 fine, 1 failed, 2 bad usage.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pocketmq import __version__

if TYPE_CHECKING:
    import cyclopts

_CONNECT_ADVICE = "; is it running? (`pocketmq serve` starts a server, --namesrv HOST:PORT names another one)"
_EXTRA_ADVICE = "the command line needs the server extra: pip install 'pocketmq[server]'"

_COMMANDS = {
    "Start": {
        "quickstart": ("quickstart:quickstart", "See it work: start, send, consume, stop."),
        "serve": ("serve:serve", "Run name server, broker, gRPC endpoint and HTTP port in one process."),
        "namesrv": ("serve:namesrv", "Run a name server alone."),
        "broker": ("serve:broker", "Run a broker alone."),
        "config": ("config:config", "Print all settings of a server."),
    },
    "Messages": {
        "send": ("messages:send", "Send a message."),
        "receive": ("messages:receive", "Receive messages as a consumer of a group."),
        "tail": ("messages:tail", "Print the newest messages of a topic, and what comes."),
        "message": ("message:app", "Look messages up: by id, by key, by place; what became of them."),
    },
    "Operation": {
        "cluster": ("cluster:app", "Show brokers and name servers."),
        "topic": ("topic:app", "List, show, create, change and delete topics."),
        "group": ("group:app", "List, show, create, change and delete consumer groups."),
        "offset": ("offset:app", "Show and set positions of consumer groups."),
        "bench": ("bench:app", "Measure a server together with this client."),
    },
}
_NAMES = frozenset(name for commands in _COMMANDS.values() for name in commands)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    if debug:
        tokens.remove("--debug")
    _open_closed_streams()
    try:
        return _run(tokens, debug)
    except KeyboardInterrupt:
        return 130


def _open_closed_streams() -> None:
    """A shell may close what we print to (`>&-`): nobody wants to see it then, and that is no error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - open until the end


def _run(tokens: list[str], debug: bool) -> int:
    try:
        import cyclopts
    except ImportError:
        print(f"pocketmq: {_EXTRA_ADVICE}", file=sys.stderr)
        return 1
    app = cyclopts.App(
        name="pocketmq",
        help="A message broker that speaks RocketMQ's protocols. Every command takes --debug (tracebacks) and --help.",
        version=__version__,
        help_on_error=False,
        help_format="plaintext",
        result_action="return_value",
    )
    # What is said of a command here would hide what the command says of itself: only for the list of all.
    listing = not tokens or tokens[0] not in _NAMES
    for number, (title, commands) in enumerate(_COMMANDS.items()):
        group = cyclopts.Group(title, sort_key=number)
        for place, (name, (target, summary)) in enumerate(commands.items()):
            path = f"pocketmq.cli.{target}"
            if listing:
                app.command(path, name=name, help=summary, group=group, sort_key=place)
            else:
                app.command(path, name=name)
    try:
        result = app(tokens or ["--help"], exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        print(f"pocketmq: {_usage_mistake(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read has seen enough. Nothing more can be written, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return _explain(error, debug)
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _usage_mistake(error: "cyclopts.CycloptsError") -> str:
    """What is wrong with a command line, in one sentence."""
    command = " ".join(("pocketmq", *(error.command_chain or ())))
    tokens = getattr(error, "unused_tokens", None)
    if type(error).__name__ == "UnusedCliTokensError" and tokens:
        text = f"{command} has no use for {' '.join(tokens)!r}"
    else:
        text = " ".join(str(error).split())
        text = text if text.endswith("...") else text.removesuffix(".")
        text = text[:1].lower() + text[1:]
    return f"{text} (`{command} --help` shows what there is)"


def _explain(error: Exception, debug: bool) -> int:
    """Print the error as one sentence (a traceback with --debug) and choose the exit code."""
    from pocketmq.cli.operating import Declined
    from pocketmq.model.errors import ConnectError, PocketMQError, UsageError

    if isinstance(error, Declined):
        print("pocketmq: nothing was changed", file=sys.stderr)
        return 1
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, ImportError) and not debug:
        print(f"pocketmq: {error}; {_EXTRA_ADVICE}", file=sys.stderr)
        return 1
    if isinstance(error, PocketMQError):
        advice = _CONNECT_ADVICE if isinstance(error, ConnectError) else ""
        print(f"pocketmq: {error.message}{advice}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    if isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        print(f"pocketmq: {text}", file=sys.stderr)
        return 1
    print(
        f"pocketmq: unexpected {type(error).__name__}: {error} (run it again with --debug for the traceback)",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
