"""How operator commands print: a table for people, JSON for programs."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

Output = Annotated[Literal["table", "json"], Parameter(help="For people or for programs.")]

PIPE_COLUMNS = 10_000
"""Where no terminal is, a row is a line, however long."""


def show(
    rows: Sequence[Mapping[str, Any]], output: Output, *, title: str | None = None, empty: str = "nothing found"
) -> None:
    """Print rows that share their columns. `output="json"` prints one JSON array."""
    if output == "json":
        write_json(rows)
        return
    if not rows:
        print(empty, file=sys.stderr)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in rows[0]:
        numeric = all(isinstance(row.get(column), int | float) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        # Text, since strings could hold what rich takes for markup.
        table.add_row(*(Text(plain(value)) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS).print(table)


def show_one(fields: Mapping[str, Any], output: Output) -> None:
    """Print the fields of one thing, a line each, or as one JSON object."""
    if output == "json":
        write_json(fields)
        return
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        print(f"{name.replace('_', ' '):<{width}}  {plain(value)}".rstrip())


def plain(value: Any) -> str:
    """A value as text on one line; what a terminal could take for a command is escaped."""
    text = "" if value is None else str(value)
    return text if text.isprintable() else repr(text)[1:-1]


def write_json(value: Any) -> None:
    """Print any plain value as JSON; bytes appear as text when they are UTF-8, else as base64."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode() + "\n")


def body_text(body: bytes, chars_max: int = 200, *, keep_lines: bool = False) -> str:
    """A body for people: as text when it is UTF-8, else as hex; cut at `chars_max`.

    What a terminal could take for a command is escaped; with `keep_lines` ends of lines and tabs are not.
    """
    try:
        text = body.decode()
        printable = text.replace("\n", "").replace("\t", "").isprintable() if keep_lines else text.isprintable()
        if not printable:
            text = repr(text)[1:-1]
    except UnicodeDecodeError:
        text = "0x" + body[:chars_max].hex()
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"
