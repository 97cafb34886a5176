"""How operator commands print: a table for people, JSON for programs."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

Output = Literal["table", "json"]


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

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in rows[0]:
        numeric = all(isinstance(row.get(column), int | float) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    width = None if sys.stdout.isatty() else 200
    Console(width=width, soft_wrap=width is not None).print(table)


def show_one(fields: Mapping[str, Any], output: Output) -> None:
    """Print the fields of one thing, a line each, or as one JSON object."""
    if output == "json":
        write_json(fields)
        return
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        print(f"{name.replace('_', ' '):<{width}}  {'' if value is None else value}")


def write_json(value: Any) -> None:
    """Print any plain value as JSON; bytes appear as text when they are UTF-8, else as base64."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode() + "\n")


def body_text(body: bytes, chars_max: int = 200) -> str:
    """A body for people: as text when it is UTF-8, else as hex; cut at `chars_max`."""
    try:
        text = body.decode()
        if not text.isprintable():
            text = repr(text)[1:-1]
    except UnicodeDecodeError:
        text = "0x" + body[:chars_max].hex()
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"
