"""The command itself: what it lists, what it explains, how it ends."""

from collections.abc import Iterator

import cyclopts
import pytest

from pocketmq.cli import main as cli
from pocketmq.cli.operating import Declined, confirm
from pocketmq.model.errors import ConnectError, PocketMQError, UsageError


def commands() -> Iterator[tuple[str, cyclopts.App]]:
    """Every command with the words that call it."""
    app = cyclopts.App(name="pocketmq")
    for group in cli._COMMANDS.values():
        for name, (target, _) in group.items():
            app.command(f"pocketmq.cli.{target}", name=name)
            command = app[name]
            children = [child for child in command if not child.startswith("-")]
            yield from ((f"{name} {child}", command[child]) for child in children)
            if not children:
                yield name, command


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_every_option_of_every_command_says_what_it_is(words: str, command: cyclopts.App) -> None:
    silent = [
        argument.name
        for argument in command.assemble_argument_collection(parse_docstring=True)
        if not (argument.parameter.help or "").strip()
    ]
    assert not silent


def test_help_lists_every_command_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for group in cli._COMMANDS.values():
        for name, (_, summary) in group.items():
            assert f" {name} " in shown
            assert summary.split()[0] in shown


def test_a_command_tells_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topic", "create", "--help"]) == 0
    assert "--message-type" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["topi"], 'did you mean "topic"'),
        (["topic", "lst"], 'did you mean "list"'),
        (["topic", "create"], "topic"),
        (["topic", "create", "a", "--quues", "3"], "did you mean --queues"),
        (["topic", "create", "a", "--queues", "x"], "--queues"),
        (["topic", "list", "--output", "xml"], '"table", "json"'),
        (["serve", "extra"], "pocketmq serve has no use for 'extra'"),
        (["topic", "create", "a b"], "the topic name 'a b'"),
        (["send", "orders", "x", "--count", "0"], "--count must be at least 1"),
        (["receive", "orders", "--group", "g", "--count", "-1"], "--count must be at least 0"),
        (["tail", "orders", "--last", "-1"], "--last must be at least 0"),
        (["group", "update", "billing"], "nothing to change"),
        (["offset", "reset", "g", "t", "--to", "yesterday", "-y"], "'yesterday' is not a time"),
        (["serve", "--ephemeral", "--data-dir", "x"], "give one of them"),
        (["serve", "--ephemeral", "--ready-file", "/nonexistent/folder/file"], "does not exist"),
        (["topic", "list", "--namesrv", "nonsense"], "expected host:port"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "127.0.0.1:1")
    assert cli.main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pocketmq: ")
    assert said.lower() in line.lower()


def test_settings_are_found_by_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "flushdisk"]) == 0
    assert "store.flush" in capsys.readouterr().out
    assert cli.main(["config", "nonsense"]) == 1


@pytest.mark.parametrize("words", [["topic", "list"], ["send", "orders", "x"], ["tail", "orders"]])
def test_a_server_that_is_not_there_is_named_with_what_to_do(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words, "--namesrv", "127.0.0.1:1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot connect to 127.0.0.1:1: Connection refused" in line
    assert "`pocketmq serve`" in line and "--namesrv" in line


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no"), 2, "pocketmq: no"),
        (PocketMQError("broken"), 1, "pocketmq: broken"),
        (ConnectError("away"), 1, "pocketmq: away; is it running?"),
        (FileNotFoundError(2, "No such file or directory", "a.toml"), 1, "pocketmq: a.toml: No such file or directory"),
        (ZeroDivisionError("x"), 1, "pocketmq: unexpected ZeroDivisionError: x (run it again with --debug"),
        (Declined(), 1, "pocketmq: nothing was changed"),
    ],
)
def test_errors_are_sentences_with_an_exit_code(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli._explain(error, debug=False) == code
    shown = capsys.readouterr().err
    assert shown.startswith(said)
    assert "Traceback" not in shown


def test_nothing_is_destroyed_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    confirm("Delete?", yes=True)
    monkeypatch.setattr("sys.stdin", Terminal(""))
    with pytest.raises(UsageError, match="add --yes"):
        confirm("Delete?", yes=False)
    for answer in ("", "n\n", "\n", "yess\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer, tty=True))
        with pytest.raises(Declined):
            confirm("Delete?", yes=False)
    for answer in ("y\n", "YES\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer, tty=True))
        confirm("Delete?", yes=False)


class Terminal:
    """Standard input with somebody at it, or nobody."""

    def __init__(self, text: str, *, tty: bool = False) -> None:
        self._text = text
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty

    def readline(self) -> str:
        return self._text
