"""Fuzz one decoder, or all: `python fuzz/run.py TARGET --seconds N --seed S` (TARGET `all` for every one in turn).

Prints the seed and, when a decoder raises what it must not, takes too long or wants too much memory, the input as hex;
exits 1 then. With `--atheris` the input is chosen by that engine, which knows what code it reaches, where installed.
"""

import argparse
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "tests")]

from fuzz_targets import TARGETS, Target  # noqa: E402
from mutation import inputs  # noqa: E402

MEMORY_BYTES_MAX = 2 * 1024**3
INPUT_SECONDS_MAX = 5


def check(target: Target, data: bytes) -> None:
    """Feed one input. Raises whatever the decoder raises beyond what it documents."""
    try:
        target.run(data)
    except target.allowed:
        pass


def fuzz(target: Target, random: Random, go_on: Callable[[int], bool]) -> int:
    """Feed inputs while `go_on(count)`; returns how many. Raises RuntimeError naming the input that failed."""
    count = 0
    for count, data in enumerate(inputs(target.seeds, random), start=1):
        try:
            check(target, data)
        except BaseException as error:
            raise RuntimeError(f"{target.name} failed with {error!r} on {data.hex()}") from error
        if not go_on(count):
            break
    return count


def _too_slow(signal_number: int, stack: FrameType | None) -> None:
    raise TimeoutError(f"one input took more than {INPUT_SECONDS_MAX} s")


def _run(target: Target, seconds: float, seed: int) -> None:
    deadline = time.monotonic() + seconds
    signal.signal(signal.SIGALRM, _too_slow)

    def go_on(count: int) -> bool:
        if count % 100 == 0:
            signal.alarm(INPUT_SECONDS_MAX)
        return time.monotonic() < deadline

    signal.alarm(INPUT_SECONDS_MAX)
    count = fuzz(target, Random(seed), go_on)
    signal.alarm(0)
    print(f"{target.name}: {count} inputs, seed {seed}: fine")


def _run_atheris(target: Target, arguments: list[str]) -> None:
    import atheris

    atheris.Setup([sys.argv[0], *arguments], lambda data: check(target, bytes(data)))
    atheris.Fuzz()


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=["all", *TARGETS])
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", action="store_true", help="choose inputs by coverage; other arguments go to it")
    options, rest = parser.parse_known_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    targets = list(TARGETS.values()) if options.target == "all" else [TARGETS[options.target]]
    if options.atheris:
        _run_atheris(targets[0], rest)
        return 0
    for target in targets:
        try:
            _run(target, options.seconds, options.seed)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
