"""Builds and runs the programs that play scenarios with the Java and Go clients."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD_TIMEOUT_S = 600.0
PLAY_TIMEOUT_S = 400.0

ADVICE = {
    "java": "a JDK, 11 or newer (Debian: apt-get install default-jdk-headless)",
    "mvn": "Maven (Debian: apt-get install maven)",
    "go": "Go, 1.21 or newer (Debian: apt-get install golang)",
}


class MissingToolError(Exception):
    """A tool that a program needs is not installed."""


@dataclass(frozen=True)
class Program:
    """One program, compiled against one client.

    `scenarios` are those that it plays against a server that stays up; `parallel` is how many of them at a time.
    `options` are for the Java machine.
    """

    name: str
    client: str
    tools: tuple[str, ...]
    source: str
    target: str
    scenarios: tuple[str, ...]
    parallel: int
    options: tuple[str, ...] = ()

    def build(self) -> None:
        """Compile it unless that was done after the last change of its sources. Raises MissingToolError."""
        for tool in self.tools:
            if shutil.which(tool) is None:
                raise MissingToolError(f"{tool} was not found, so {self.client} is not tested; install {ADVICE[tool]}")
        sources = [
            path
            for path in (HERE / self.source).rglob("*")
            if path.is_file() and not {"target", "bin"} & set(path.relative_to(HERE).parts)
        ]
        target = HERE / self.target
        if target.exists() and target.stat().st_mtime >= max(path.stat().st_mtime for path in sources):
            return
        done = subprocess.run(
            self.build_command(),
            cwd=HERE / self.source,
            timeout=BUILD_TIMEOUT_S,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name} could not be built:\n{done.stdout[-4000:]}")

    def build_command(self) -> list[str]:
        """Run in `source`."""
        if self.source == "go":
            return ["go", "build", "-o", str(HERE / self.target), "."]
        return ["mvn", "-q", "-B", f"-P{Path(self.target).parent.name}", "package"]

    def command(self) -> list[str]:
        """The program without its arguments."""
        target = HERE / self.target
        if self.source == "go":
            return [str(target)]
        small = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *small, *self.options, "-cp", f"{target}:{target.parent}/lib/*", "pocketmq.interop.Main"]


_JAVA_SCENARIOS = (
    "sync",
    "async",
    "oneway",
    "batch",
    "selector",
    "compressed",
    "large",
    "keys",
    "delay",
    "push",
    "cursor",
    "tags",
    "broadcasting",
    "shared",
    "rebalance",
    "retry",
    "dead-letter",
    "dead-letter-at-once",
    "orderly",
    "orderly-dead-letter",
    "pull",
    "lite-pull",
    "lite-assign",
    "transaction",
    "transaction-check",
    "create-topic",
    "topic-admin",
    "group-admin",
)
_GO_SCENARIOS = (
    "sync",
    "async",
    "oneway",
    "batch",
    "selector",
    "compressed",
    "large",
    "delay",
    "push",
    "cursor",
    "tags",
    "broadcasting",
    "shared",
    "rebalance",
    "retry",
    "dead-letter",
    "orderly",
    "pull",
    "poll",
    "transaction",
    "transaction-check",
    "topic-admin",
)

JAVA4 = Program(
    "java4", "the Java client 4.9", ("java", "mvn"), "java", "java/target/client4/interop.jar", _JAVA_SCENARIOS, 4
)
JAVA5 = Program(
    "java5", "the Java client 5.5", ("java", "mvn"), "java", "java/target/client5/interop.jar", _JAVA_SCENARIOS, 4
)
JAVA5_BINARY = Program(
    "java5-binary",
    "the Java client 5.5 with binary headers",
    JAVA5.tools,
    JAVA5.source,
    JAVA5.target,
    _JAVA_SCENARIOS,
    4,
    options=("-Drocketmq.serialize.type=ROCKETMQ",),
)
GO = Program("go", "the Go client 2.1", ("go",), "go", "go/bin/interop", _GO_SCENARIOS, 8)
PROGRAMS = (JAVA4, JAVA5, JAVA5_BINARY, GO)
CLIENTS = (JAVA4, JAVA5, GO)
"""One program for each client."""


@dataclass
class Played:
    """What a run of a program printed: a report for each scenario, and the rest."""

    reports: dict[str, dict[str, object]] = field(default_factory=dict)
    errors: str = ""


class Run:
    """A program at work on some scenarios.

    Its reports are read as they come; `wait_for` blocks until a line is printed, `finish` until it ends.
    """

    def __init__(self, program: Program, name_server: str, run: str, scenarios: Iterable[str]) -> None:
        program.build()
        self.played = Played()
        self._home = Path(tempfile.mkdtemp(prefix="interop-"))
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        errors = (self._home / "errors").open("wb")
        options: Sequence[str] = ("--namesrv", name_server, "--run", run, "--parallel", str(program.parallel))
        self._process = subprocess.Popen(
            [*program.command(), *options, *scenarios],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "HOME": str(self._home), "JAVA_TOOL_OPTIONS": f"-Duser.home={self._home}"},
        )
        errors.close()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.strip())
                if line.startswith("{"):
                    report = json.loads(line)
                    self.played.reports[report["scenario"]] = report
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, line: str, timeout_s: float) -> bool:
        """Whether this line was printed; False when the program ended, or time was over, before."""
        with self._changed:
            self._changed.wait_for(lambda: line in self._lines or self._ended, timeout_s)
            return line in self._lines

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def finish(self, timeout_s: float = PLAY_TIMEOUT_S) -> Played:
        """Wait until it ends; end it when it takes too long."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.played.errors = f"the program did not end within {timeout_s} s and was killed. "
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join(10)
        self.played.errors += (self._home / "errors").read_text(errors="replace")[-4000:]
        shutil.rmtree(self._home, ignore_errors=True)
        return self.played
