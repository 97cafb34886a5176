"""Where the log ends, and what to do with what lies behind.

The log ends at the first position where no valid record begins. What lies behind decides what that means.

- Nothing, or some of what was being written when the power went: the tail is torn. It is cut: everything behind the end
  becomes zeros, so that no stale record can ever be taken for a new one. If there were whole records in it, which can
  only be ones that were never durable, the bytes are kept in `cut/`.
- Otherwise something was damaged later, and what was acknowledged is lost. That is the case when the end lies before a
  position that is known to have been durable (a run or a stored view covers it), and when valid records follow that an
  unfinished write cannot have left: too far behind, or stored over so long a time that a flush must have come in
  between. It is an error, which names the position and the loss. With `store.accept_damage` the damaged part is left
  out instead, and reported.
"""

from pocketmq.log.rebuild import next_valid
from pocketmq.log.report import Damage, RecoveryReport
from pocketmq.log.scanner import ScanEnd, Stop, check_record
from pocketmq.log.segments import Segment, Segments, position_name
from pocketmq.model.errors import StoreCorruptError
from pocketmq.model.seams import Clock, Disk

TORN_MS_MAX = 60_000
"""Valid records behind a damaged place that were stored over a longer time prove that it was once durable."""

_TORN_LOOK_BYTES = 1024 * 1024
"""So much behind the end of the log is looked at for something that was cut off."""

HOW_TO_ACCEPT = (
    "Restore the file from a copy or a replica; or start with store.accept_damage=true to go on without what is lost"
)


class EndOfLog:
    """Judges what lies behind the last valid record of a log that is being opened."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        root: str,
        segments: Segments,
        report: RecoveryReport,
        *,
        torn_bytes_max: int,
        accept_damage: bool,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._cut_folder = f"{root}/cut"
        self._segments = segments
        self._report = report
        self._torn_bytes_max = torn_bytes_max
        self._accept_damage = accept_damage

    def set_stranded_aside(self, end: int) -> None:
        """Files behind a missing one: written, but not durable when the power went; or the missing one was lost."""
        stranded = self._segments.stranded
        if not stranded:
            return
        segments = [self._segments.read_stranded(start) for start in stranded]
        last = max(
            (segment.start for segment in segments if next_valid(segment, segment.start) is not None), default=end
        )
        if last - end > self._torn_bytes_max:
            raise StoreCorruptError(
                f"the log has no bytes between {end} and {stranded[0]}: {self._segments.folder}/"
                f"{position_name(end)} is missing or was cut, although later files hold messages. {HOW_TO_ACCEPT}"
            )
        for segment in segments:
            self._set_aside(segment)
        self._disk.sync_folder(self._segments.folder)
        self._segments.stranded = []

    def _set_aside(self, segment: Segment) -> None:
        """Take a file out of the log; it is kept in `cut/` when there are whole records in it."""
        useful = next_valid(segment, segment.start) is not None
        if segment.file is not None:
            segment.file.close()
        if useful:
            self._disk.make_folder(self._cut_folder)
            self._report.cut_file = f"{self._cut_folder}/{position_name(segment.start)}"
            self._disk.rename(segment.path, self._report.cut_file)
            self._disk.sync_folder(self._cut_folder)
        else:
            self._disk.remove(segment.path)

    async def judge(self, segment: Segment, end: ScanEnd, *, durable: int) -> int | None:
        """No valid record begins at `end`: cut the log there and return None, or return where it goes on.

        Everything before `durable` was once durable. Raises StoreCorruptError.
        """
        reason = end.reason or "zeros"
        following = await self._records_behind(segment, end.position)
        is_tail = end.position >= durable and (
            following is None
            or (
                following.last_position - end.position <= self._torn_bytes_max
                and following.last_timestamp - following.first_timestamp <= TORN_MS_MAX
            )
        )
        if is_tail or following is None:
            if end.position < durable:
                raise StoreCorruptError(missing(end.position, durable, "the stored views"))
            self._cut(segment, end, following, reason)
            return None
        damage = Damage(end.position, following.first_position, reason)
        message = (
            f"the log is damaged at position {damage.position} (byte {damage.position - segment.start} of "
            f"{segment.path}: {reason}), although {following.count} valid records follow from position {damage.end} "
            f"on. What is between, {damage.end - damage.position} bytes, cannot be read"
        )
        if not self._accept_damage:
            raise StoreCorruptError(f"{message}. {HOW_TO_ACCEPT}")
        self._report.damages.append(damage)
        self._report.notes.append(message)
        return damage.end

    def _cut(self, segment: Segment, end: ScanEnd, following: "_Following | None", reason: str) -> None:
        """End the log at `end`: zeros behind it, no later segments."""
        if following is not None:
            try:
                self._keep(segment, end.position, min(following.end, segment.end))
            except OSError as error:
                self._report.notes.append(f"the records behind the cut could not be kept: {error}")
            self._report.cut_records = following.count
        assert segment.file is not None
        offset = end.position - segment.start
        if following is not None or segment.read(offset, _TORN_LOOK_BYTES).strip(b"\0"):
            self._report.cut_position = end.position
            self._report.cut_reason = reason
        segment.file.clear_from(offset)
        self._disk.sync_now(segment.file)
        if self._segments[-1] is not segment:
            while self._segments[-1] is not segment:
                last = self._segments.find(self._segments[-1].start)
                assert last is not None
                self._set_aside(Segment(last.path, last.start, self._disk.open(last.path)))
                self._segments.remove(last)
            self._disk.sync_folder(self._segments.folder)

    def _keep(self, segment: Segment, start: int, end: int) -> None:
        """Keep the bytes `[start, end)` of a segment, which are cut, in a file of their own."""
        if start >= end:
            return
        assert segment.view is not None
        self._disk.make_folder(self._cut_folder)
        path = f"{self._cut_folder}/{position_name(start)}"
        self._disk.remove(path)
        file = self._disk.open(path, create_size=end - start)
        file.write_at(0, segment.view[start - segment.start : end - segment.start])
        self._disk.sync_now(file)
        file.close()
        self._disk.sync_folder(self._cut_folder)
        self._report.cut_file = path

    async def _records_behind(self, segment: Segment, position: int) -> "_Following | None":
        """The valid records behind a position where none begins, or None when there are none."""
        found: _Following | None = None
        current: Segment | None = segment
        while current is not None:
            at = next_valid(current, position)
            while at is not None:
                record = check_record(current, at)
                if isinstance(record, ScanEnd):
                    at = next_valid(current, at + 1) if record.stop is not Stop.SEGMENT_END else None
                    continue
                if found is None:
                    found = _Following(at)
                found.add(at, record.size, record.store_timestamp)
                at += record.size
                if found.count % 1000 == 0:
                    await self._clock.sleep(0)
            current = self._segments.after(current)
            if current is not None:
                current = self._segments.find(current.start)
                position = current.start if current is not None else position
        return found


class _Following:
    """Valid records behind a damaged place."""

    def __init__(self, position: int) -> None:
        self.first_position = self.last_position = position
        self.end = position
        self.count = 0
        self.first_timestamp = self.last_timestamp = 0

    def add(self, position: int, size: int, timestamp: int) -> None:
        self.last_position = position
        self.end = position + size
        self.count += 1
        self.first_timestamp = self.first_timestamp or timestamp
        self.last_timestamp = max(self.last_timestamp, timestamp)


def missing(end: int, position: int, what: str) -> str:
    return (
        f"the log ends at position {end}, but {what} cover it up to {position}: {position - end} bytes that were "
        f"durable are missing. Restore the files of commitlog/, or remove index/ and views/ to go on without them"
    )
