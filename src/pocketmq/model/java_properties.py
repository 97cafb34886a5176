"""Java's `.properties` text: `broker.conf`, `namesrv.conf` and the bodies that carry settings."""

import re

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*[ \t\f]*[=:][ \t\f]*|(?<!\\)(?:\\\\)*[ \t\f]+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def parse_properties(text: str) -> list[tuple[str, str, int]]:
    """(name, value, number of the line it begins in), in order. Nothing is refused: any line is a name and a value."""
    found: list[tuple[str, str, int]] = []
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        whole = line.lstrip(" \t\f")
        if not whole or whole[0] in "#!":
            continue
        while _continues(whole):
            _, more = next(lines, (0, ""))
            whole = whole[:-1] + more.lstrip(" \t\f")
        name, value = _split(whole)
        found.append((name, value, number))
    return found


def _continues(line: str) -> bool:
    """An odd number of backslashes at the end: the next line belongs to this one."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    match = _SEPARATOR.search(line)
    if match is None:
        return _unescape(line), ""
    # Backslashes that the pattern had to look at belong to the name.
    slashes = len(match[0]) - len(match[0].lstrip("\\"))
    return _unescape(line[: match.start() + slashes]), _unescape(line[match.end() :])


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) > 1 else _ESCAPES.get(m[1], m[1]), text)
