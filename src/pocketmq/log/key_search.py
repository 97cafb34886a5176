"""One key query over all of the log: what no index holds yet, what memory holds, then the runs, newest first."""

from pocketmq.log.index import Index
from pocketmq.log.key_index import KeyCollector, KeyQuery
from pocketmq.log.run_store import RunStore
from pocketmq.model.errors import StoreCorruptError


def search(query: KeyQuery, index: Index, runs: RunStore, end: int) -> None:
    """Run a query over the log up to `end`. Raises StoreCorruptError, retryable, when a run is damaged."""
    _search_uncollected(query, index.keys, end)
    blocks = index.keys.blocks
    for number in index.keys.find_blocks(query.key_hash):
        if query.full:
            return
        query.search_block(blocks[number], blocks[number + 1] if number + 1 < len(blocks) else end)
    for file in reversed(runs.files):
        if query.full:
            return
        if file.first_timestamp <= query.end_ms and file.last_timestamp >= query.begin_ms:
            run = runs.open(file)
            try:
                numbers = run.key_blocks(query.key_hash)
            except StoreCorruptError as error:
                raise runs.report(file, error) from error
            for number in numbers:
                query.search_block(
                    run.blocks[number], run.blocks[number + 1] if number + 1 < len(run.blocks) else file.end
                )


def _search_uncollected(query: KeyQuery, keys: KeyCollector, end: int) -> None:
    """Search the newest records, whose keys nobody collected yet, one segment after the other from the end."""
    start = keys.collected_position
    parts = []
    while start < end:
        segment = query.segments.find(start)
        if segment is None:
            break
        parts.append((start, min(end, segment.end)))
        start = segment.end
    for part in reversed(parts):
        if not query.full:
            query.search_block(*part)
