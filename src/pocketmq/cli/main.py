"""The `pocketmq` command: what it offers, and how its errors look.

Commands are named here and loaded only when they are called, so that `pocketmq serve` does not pay for the others.
Exit codes: 0 fine, 1 failed, 2 bad usage.
"""

import sys
from collections.abc import Sequence

from pocketmq import __version__

_EXTRA_ADVICE = "the command line needs the server extra: pip install 'pocketmq[server]'"

_COMMANDS = {
    "quickstart": "pocketmq.cli.quickstart:quickstart",
    "serve": "pocketmq.cli.serve:serve",
    "namesrv": "pocketmq.cli.serve:namesrv",
    "broker": "pocketmq.cli.serve:broker",
    "send": "pocketmq.cli.messages:send",
    "receive": "pocketmq.cli.messages:receive",
    "tail": "pocketmq.cli.messages:tail",
    "topic": "pocketmq.cli.topic:app",
    "group": "pocketmq.cli.group:app",
    "message": "pocketmq.cli.message:app",
    "cluster": "pocketmq.cli.cluster:app",
    "bench": "pocketmq.cli.bench:app",
    "config": "pocketmq.cli.config:config",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    if debug:
        tokens.remove("--debug")
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
        result_action="return_value",
    )
    for name, target in _COMMANDS.items():
        app.command(target, name=name)
    try:
        result = app(tokens or ["--help"], exit_on_error=False, print_error=True)
    except cyclopts.CycloptsError:
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except Exception as error:
        return _explain(error, debug)
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _explain(error: Exception, debug: bool) -> int:
    """Print the error as one sentence (a traceback with --debug) and choose the exit code."""
    from pocketmq.model.errors import PocketMQError, UsageError

    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, ImportError) and not debug:
        print(f"pocketmq: {error}; {_EXTRA_ADVICE}", file=sys.stderr)
        return 1
    if isinstance(error, PocketMQError):
        print(f"pocketmq: {error.message}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    if isinstance(error, OSError):
        print(f"pocketmq: {error}", file=sys.stderr)
        return 1
    print(
        f"pocketmq: unexpected {type(error).__name__}: {error} (run it again with --debug for the traceback)",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
