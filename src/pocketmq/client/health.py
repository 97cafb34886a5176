"""Which brokers failed just now, so that other messages go elsewhere for a moment. Pure: time is an argument."""

from collections.abc import Collection

AVOID_FIRST_S = 0.5
AVOID_MAX_S = 30.0


class BrokerHealth:
    """A broker is avoided after a failure, twice as long after each further one, until something succeeds there."""

    __slots__ = ("_failing",)

    def __init__(self) -> None:
        self._failing: dict[str, tuple[float, float]] = {}

    def failed(self, broker: str, now: float) -> None:
        """Something failed at `broker` at monotonic time `now`."""
        length, until = self._failing.get(broker, (0.0, 0.0))
        if now < until:
            return
        length = min(AVOID_MAX_S, max(AVOID_FIRST_S, length * 2))
        self._failing[broker] = (length, now + length)

    def succeeded(self, broker: str) -> None:
        """Something was stored at `broker`."""
        if self._failing:
            self._failing.pop(broker, None)

    @property
    def all_well(self) -> bool:
        """Whether no broker has failed lately: the usual case, and quicker to ask than `avoid`."""
        return not self._failing

    def avoid(self, now: float) -> Collection[str]:
        """The brokers to leave out at time `now`."""
        if not self._failing:
            return ()
        return [broker for broker, (_, until) in self._failing.items() if now < until]
