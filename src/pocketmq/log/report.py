"""What the start of a log tells: how far it has come, and what it found."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Progress:
    """How far the start has come."""

    phase: str
    done_bytes: int
    total_bytes: int


@dataclass(slots=True)
class Damage:
    """A part of the log, `[position, end)`, that holds no valid records although valid ones follow."""

    position: int
    end: int
    reason: str


@dataclass(slots=True)
class RecoveryReport:
    """What was found at the start."""

    scanned_bytes: int = 0
    scanned_records: int = 0
    rebuilt_bytes: int = 0
    """Log read to make runs again that were missing or damaged."""
    cut_position: int | None = None
    """Where a torn tail was cut; None when the log ended cleanly."""
    cut_reason: str = ""
    cut_records: int = 0
    """Whole records behind the cut: they are no longer in the log."""
    cut_file: str | None = None
    """Where they are kept."""
    damages: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
