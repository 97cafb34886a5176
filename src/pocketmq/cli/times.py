"""Times as people type them."""

import re
from datetime import datetime, timedelta

from pocketmq.model.errors import UsageError

_AGO = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_time(text: str, now: datetime) -> datetime:
    """`2026-01-31`, `2026-01-31T12:00[:00]` (local time, unless it names a zone), or `30m`: so long before `now`.

    Units are s, m, h and d. Raises UsageError.
    """
    found = _AGO.match(text.strip())
    if found:
        try:
            return now - timedelta(**{_UNITS[found[2]]: float(found[1])})
        except OverflowError:
            raise UsageError(f"{text} ago is before all time") from None
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time; write 2026-01-31T12:00, or how long ago, such as 30m, 2h or 1d"
        ) from None


def time_ms(text: str | None, default: int) -> int:
    """The same in ms since the epoch; `default` for None."""
    return default if text is None else round(parse_time(text, datetime.now()).timestamp() * 1000)
