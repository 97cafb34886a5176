#!/usr/bin/env python3
"""Runs PocketMQ's main job and its checks from a clone, in a virtual environment of its own (`.venv`).

    python3 dev.py quickstart          start an embedded server, send, consume, show what happened
    python3 dev.py test [ARGS...]      all tests; ARGS go to pytest (--quick: unit and property tests only)
    python3 dev.py lint                ruff, mypy, import-linter, generated code up to date
    python3 dev.py run CMD [ARGS...]   any command inside the environment

Needs Python 3.11 or newer with pip, and nothing else. Tests with Java and Go clients are skipped with a message when
these tools are missing; `--require-interop` turns the skips into failures.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = Path(os.environ.get("POCKETMQ_VENV", ROOT / ".venv"))
BIN = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
QUICK_PATHS = ["tests/unit", "tests/property"]
TOOLS = {
    "java": "a JDK, 11 or newer (Debian: apt-get install default-jdk-headless)",
    "mvn": "Maven (Debian: apt-get install maven)",
    "go": "Go, 1.21 or newer (https://go.dev/dl, Debian: apt-get install golang)",
}


def main(arguments: list[str]) -> int:
    """Dispatch on the first argument; returns the exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever runs this may have an older one
        return complain(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}")
    command, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if command == "quickstart":
        prepare(groups=())
        return run([BIN / "pocketmq", "quickstart", *rest])
    if command == "test":
        prepare(groups=("test",))
        return test(rest)
    if command == "lint":
        prepare(groups=("test", "lint"))
        return lint()
    if command == "run" and rest:
        prepare(groups=("test", "lint"))
        return run([shutil.which(rest[0], path=str(BIN)) or rest[0], *rest[1:]])
    print(__doc__)
    return 0 if command in {"help", "-h", "--help"} else 2


def test(arguments: list[str]) -> int:
    """Run pytest: everything, or with --quick what needs no other process, or the paths that are given.

    Everything runs in two parts: what one process can do on its own, spread over the processors, then what starts
    processes and programs of other languages, one after the other.
    """
    quick = "--quick" in arguments
    arguments = [argument for argument in arguments if argument != "--quick"]
    if any((ROOT / argument.partition("::")[0]).exists() for argument in arguments):
        return pytest(arguments)
    workers = ["-n", str(min(4, os.cpu_count() or 1))]
    if quick:
        return pytest([*QUICK_PATHS, *workers, *arguments])
    for tool, advice in TOOLS.items():
        if shutil.which(tool) is None:
            print(f"note: {tool} was not found, so its interop tests are skipped; to run them install {advice}")
    alone = [argument for argument in arguments if argument != "--require-interop"]
    first = pytest([*QUICK_PATHS, "tests/crash", "tests/scenario", *workers, *alone])
    second = pytest(["tests/process", "interop", *arguments])
    return first or second


def pytest(arguments: list[str]) -> int:
    """Run pytest in the environment."""
    return run([BIN / "python", "-m", "pytest", *arguments])


def lint() -> int:
    """Run every static check; the exit code is that of the first that failed."""
    checks: list[list[str | Path]] = [
        [BIN / "ruff", "check", "."],
        [BIN / "ruff", "format", "--check", "."],
        [BIN / "mypy"],
        [BIN / "lint-imports"],
        [BIN / "python", "scripts/generate_sync.py", "--check"],
        [BIN / "python", "scripts/generate_settings_doc.py", "--check"],
    ]
    results = [run(check) for check in checks]
    return next((result for result in results if result), 0)


def prepare(groups: tuple[str, ...]) -> None:
    """Create the environment, or bring it up to date when pyproject.toml or what is asked of it changed."""
    import tomllib

    text = (ROOT / "pyproject.toml").read_bytes()
    project = tomllib.loads(text.decode())
    requirements = [item for group in groups for item in project["dependency-groups"][group] if isinstance(item, str)]
    stamp = ENVIRONMENT / f".pocketmq-{'-'.join(groups) or 'run'}"
    wanted = hashlib.sha256(text + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"preparing {ENVIRONMENT} (once; about a minute)", flush=True)
    if not (BIN / "python").exists():
        try:
            venv.create(ENVIRONMENT, with_pip=True)
        except subprocess.CalledProcessError:
            raise SystemExit(
                complain("a virtual environment could not be made; install Python's venv (Debian: python3-venv)")
            ) from None
    pip = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--editable", f"{ROOT}[all]", *requirements], check=False)
    if done.returncode:
        raise SystemExit(complain("pip could not install what is needed; its message above says why"))
    stamp.write_text(wanted)


def run(command: list[str | Path]) -> int:
    """Run a command in the repository's folder and return its exit code."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        return subprocess.run([str(part) for part in command], cwd=ROOT, env=environment, check=False).returncode
    except KeyboardInterrupt:
        return 130


def complain(message: str) -> int:
    """Print one sentence on stderr; returns exit code 1."""
    print(f"dev.py: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
