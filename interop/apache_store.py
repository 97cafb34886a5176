#!/usr/bin/env python3
"""Makes a store directory with Apache RocketMQ: topics, messages of every kind, cursors, a dead letter, pending delays.

    python3 interop/apache_store.py /tmp/made [--end kill]

Leaves the store in /tmp/made/store and what Apache's clients saw of it in /tmp/made/seen.json. Needs Java and Maven.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "bench")]

from apache.server import ApacheServer  # noqa: E402
from programs import JAVA5, Run  # noqa: E402

SEGMENT_BYTES = 1024 * 1024
"""Small, so that there are several files, with blank ends."""
CURSORS_STORED_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class MadeStore:
    """A store directory, and what belongs to it: the prefix of its topics, and what clients saw."""

    folder: Path
    run: str
    seen: dict[str, Any]


def make(folder: Path, run: str = "made", end: str = "stop") -> MadeStore:
    """Fill a store with Apache RocketMQ; `end` says how the broker ends: `stop` (SIGTERM) or `kill` (SIGKILL)."""
    settings = {"mappedFileSizeCommitLog": SEGMENT_BYTES, "waitTimeMillsInSendQueue": 5000}
    with ApacheServer(folder, settings=settings) as server:
        play(server.namesrv, run, "store-fill")
        seen = json.loads(play(server.namesrv, run, "store-dump"))
        wait_for_cursors(server.store_dir / "config" / "consumerOffset.json", since=time.time())
        play(server.namesrv, run, "store-pending")
        if end == "kill":
            server.kill()
        store = MadeStore(server.store_dir, run, seen)
    (folder / "seen.json").write_text(json.dumps(seen, indent=1))
    return store


def play(namesrv: str, run: str, step: str) -> str:
    """Let the Java program do one step; returns what it says. Raises RuntimeError when it fails."""
    played = Run(JAVA5, namesrv, run, [step]).finish()
    report = played.reports.get("special", {"ok": False, "detail": played.errors})
    if not report["ok"]:
        raise RuntimeError(f"{step}: {report['detail']}")
    return str(report["detail"])


def wait_for_cursors(file: Path, since: float) -> None:
    """Wait until the broker has written the cursors, which it does every five seconds."""
    deadline = time.monotonic() + CURSORS_STORED_TIMEOUT_S
    while not file.exists() or file.stat().st_mtime < since:
        if time.monotonic() > deadline:
            return  # nothing changed since it wrote them
        time.sleep(0.2)


def main() -> None:
    """Make one where the caller says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--end", choices=["stop", "kill"], default="stop")
    arguments = parser.parse_args()
    store = make(arguments.folder.absolute(), end=arguments.end)
    print(f"{store.folder}: topics {', '.join(store.seen['topics'])}")


if __name__ == "__main__":
    main()
