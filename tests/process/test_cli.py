"""The command line against a real server, as a user or a script calls it."""

import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pocketmq.testing.process import ServerProcess

pytestmark = pytest.mark.process

TIMEOUT_S = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(None, work_dir=tmp_path_factory.mktemp("server")) as process:
        yield process


def command(server: ServerProcess, *words: str) -> list[str]:
    return [sys.executable, "-m", "pocketmq", *words, "--namesrv", server.namesrv]


def run(server: ServerProcess, *words: str, code: int = 0) -> str:
    """Run a command, check its exit code; returns what it printed on standard output."""
    done = subprocess.run(command(server, *words), capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def ask(server: ServerProcess, *words: str, code: int = 0) -> Any:
    return json.loads(run(server, *words, "--output", "json", code=code))


def lag(server: ServerProcess, group: str, topic: str) -> int:
    return int(ask(server, "offset", "show", group, topic)["lag"])


def test_a_topic_lives_and_dies(server: ServerProcess) -> None:
    run(server, "topic", "create", "short", "--queues", "2")
    assert [topic["topic"] for topic in ask(server, "topic", "list", "short")] == ["short"]
    run(server, "topic", "update", "short", "--queues", "3")
    assert len(ask(server, "topic", "show", "short")["queues"]) == 3
    run(server, "topic", "delete", "short", code=2)
    run(server, "topic", "delete", "short", "--yes")
    run(server, "topic", "show", "short", code=1)


def test_what_is_received_is_committed_before_the_command_ends(server: ServerProcess) -> None:
    for number in range(3):
        run(server, "send", "received", f"m{number}", "--key", f"k{number}")
    run(server, "receive", "received", "--group", "billing", "--count", "2")
    assert lag(server, "billing", "received") == 1
    assert len(run(server, "receive", "received", "--group", "billing", "--count", "1").splitlines()) == 1
    assert lag(server, "billing", "received") == 0
    run(server, "receive", "received", "--group", "billing", "--wait", "0.5", code=1)


def test_what_was_received_before_ctrl_c_is_committed(server: ServerProcess) -> None:
    run(server, "send", "interrupted", "hello")
    receiving = subprocess.Popen(
        command(server, "receive", "interrupted", "--group", "billing", "--count", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert receiving.stdout is not None
    assert select.select([receiving.stdout], [], [], TIMEOUT_S)[0]
    assert b"hello" in receiving.stdout.readline()
    receiving.send_signal(signal.SIGINT)
    _, errors = receiving.communicate(timeout=TIMEOUT_S)
    assert (receiving.returncode, errors) == (130, b"")
    assert lag(server, "billing", "interrupted") == 0


def test_a_message_is_found_by_id_key_and_place(server: ServerProcess) -> None:
    receipt = ask(server, "send", "found", "hello", "--key", "o-1", "--tag", "new")
    place = ["message", "at", "found", str(receipt["queue"]), str(receipt["offset"])]
    for found in (
        ask(server, "message", "show", receipt["message_id"]),
        ask(server, "message", "show", receipt["offset_message_id"]),
        ask(server, *place),
        ask(server, "message", "find", "--topic", "found", "--key", "o-1")[0],
    ):
        assert (found["message_id"], found["body"], found["tag"]) == (receipt["message_id"], "hello", "new")
    assert ask(server, "message", "find", "--topic", "found", "--key", "o-2", code=1) == []


def test_a_position_is_set_skipped_and_cloned(server: ServerProcess) -> None:
    for _ in range(2):
        run(server, "send", "moved", "hello")
    for group in ("one", "other"):
        run(server, "group", "create", group)
    run(server, "offset", "skip", "one", "moved", "--yes")
    assert lag(server, "one", "moved") == 0
    run(server, "offset", "clone", "one", "other", "moved", "--yes")
    assert lag(server, "other", "moved") == 0
    run(server, "offset", "reset", "one", "moved", "--to", "first", "--yes")
    assert lag(server, "one", "moved") == 2
    run(server, "group", "delete", "one", "--yes")
    run(server, "group", "show", "one", code=1)


def test_tail_shows_what_is_there_and_moves_nobody(server: ServerProcess) -> None:
    run(server, "send", "tailed", "hello")
    assert "hello" in run(server, "tail", "tailed", "--no-follow")
    assert "TOOLS_CONSUMER" not in ask(server, "topic", "show", "tailed")["groups"]


def test_the_cluster_is_fine(server: ServerProcess) -> None:
    (broker,) = ask(server, "cluster", "show")["brokers"]
    assert (broker["address"], broker["error"]) == (server.broker, None)


def test_a_reader_that_has_seen_enough_ends_it_quietly(server: ServerProcess) -> None:
    shown = subprocess.Popen(
        command(server, "topic", "list", "--system"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert shown.stdout is not None and shown.stderr is not None
    shown.stdout.close()
    assert shown.stderr.read() == b""
    assert shown.wait(TIMEOUT_S) in {0, 1}
    shown.stderr.close()


def test_a_command_whose_output_nobody_wants_does_its_work(server: ServerProcess) -> None:
    line = " ".join(shlex.quote(word) for word in command(server, "topic", "create", "unseen"))
    done = subprocess.run(["sh", "-c", f"{line} >&-"], stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    run(server, "topic", "show", "unseen")


def test_a_body_that_is_no_text_is_sent_as_it_is(server: ServerProcess) -> None:
    run(server, "send", "bytes", os.fsdecode(b"\xff\xfe\x01"))
    (shown,) = [
        json.loads(line) for line in run(server, "tail", "bytes", "--no-follow", "--output", "json").splitlines()
    ]
    assert shown["body_base64"] == "//4B", shown


def test_ctrl_c_while_a_server_starts_stops_it_in_good_order(tmp_path: Path) -> None:
    starting = ServerProcess(tmp_path / "data")
    starting.launch()
    try:
        while not (tmp_path / "data" / "lock").exists():
            assert starting.is_running
        os.kill(starting.pid, signal.SIGINT)
        assert starting.wait_end() == 0
        assert "Traceback" not in starting.output
    finally:
        starting.kill()


def test_a_server_that_never_answers_is_given_up_with_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        words = [sys.executable, "-m", "pocketmq", "topic", "list", "--namesrv", address]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert address in line
