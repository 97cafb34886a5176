"""How operator commands print: a table for people, JSON for programs."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

Output = Annotated[Literal["table", "json"], Parameter(help="For people or for programs.")]

PIPE_COLUMNS = 10_000
"""Where no terminal is, a row is a line, however long."""
COLUMN_GAP = 2
FOLDED_COLUMNS_MIN = 24


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
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = {column: column.replace("_", " ") for column in rows[0]}
    texts = [{column: plain(row.get(column)) for column in names} for row in rows]
    widths = {column: max(cell_len(name), *(cell_len(row[column]) for row in texts)) for column, name in names.items()}
    last = list(names)[-1]
    # A terminal shows each row as a line, if need be with its last column folded; else each field as a line.
    console = Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS)
    needed = sum(widths.values()) + COLUMN_GAP * (len(widths) - 1)
    if needed > console.width and needed - widths[last] + FOLDED_COLUMNS_MIN > console.width:
        for number, row in enumerate(texts):
            if number:
                print()
            show_one(row, output)
        return
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column, name in names.items():
        numeric = all(isinstance(row.get(column), int | float) for row in rows)
        folding = {"overflow": "fold"} if column == last else {"no_wrap": True}
        table.add_column(name, justify="right" if numeric else "left", **folding)
    for row in texts:
        # Text, since strings could hold what rich takes for markup.
        table.add_row(*map(Text, row.values()))
    console.print(table)


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
