#!/usr/bin/env python3
"""Measures PocketMQ beside Apache RocketMQ on this machine, in one run, and prints the ratios.

    python3 dev.py run python bench/compare.py                        all rows, about ten minutes
    python3 dev.py run python bench/compare.py --only single,batch    some of them
    ... --rounds 3 --json results.json --markdown results.md

Both brokers get the same load from the same programs, one after the other, never at the same time: the benchmark
classes that come with Apache RocketMQ, and `pocketmq bench` for latency and for the SDK. Both flush asynchronously. CPU
is the user and system time of the broker's process, divided by the messages that its queues really got. Needs Java and
Maven.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from measures import MEASURES, Figures  # noqa: E402
from subjects import SUBJECTS, Subject  # noqa: E402

Results = dict[tuple[str, str], dict[str, list[float]]]
"""(row, unit) -> subject -> what each round gave."""


def main() -> None:
    """Run what the command line asks for and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, help="how often everything is measured; medians are shown")
    parser.add_argument("--only", help=f"comma-separated: {', '.join(MEASURES)}")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of one measurement under load")
    parser.add_argument("--log-gb", type=float, default=2.0, help="size of the log of the restart measurement")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--markdown", type=Path, help="write the table there")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(MEASURES)
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        parser.error(f"there is no measure {unknown[0]!r}; choose from {', '.join(MEASURES)}")
    results: Results = {}
    for number in range(options.rounds):
        # Turn the order round each time, so that a machine that slows down favours nobody.
        for make in SUBJECTS if number % 2 == 0 else reversed(SUBJECTS):
            measure_subject(make, names, options, results)
    rows = table(results)
    print_table(rows)
    if options.json:
        options.json.write_text(
            json.dumps([{"row": row, "unit": unit, **values} for (row, unit), values in results.items()], indent=1)
        )
    if options.markdown:
        options.markdown.write_text(markdown(rows))


def measure_subject(
    make: Callable[[Path], Subject], names: list[str], options: argparse.Namespace, results: Results
) -> None:
    """All measures of one server, each with a fresh one where the measure asks for that."""
    for name in names:
        with tempfile.TemporaryDirectory(prefix="pocketmq-compare-") as folder:
            subject = make(Path(folder))
            print(f"# {subject.name}: {name}", file=sys.stderr, flush=True)
            figures: Figures = MEASURES[name](subject, options)
            for key, value in figures.items():
                results.setdefault(key, {}).setdefault(subject.name, []).append(value)
                print(f"    {key[0]}: {value:,.4g} {key[1]}", file=sys.stderr, flush=True)


def table(results: Results) -> list[tuple[str, str, str, str, str]]:
    """Rows of text: what, unit, Apache's median, ours, and the median of the ratios of the rounds."""
    rows = []
    for (row, unit), values in results.items():
        apache = statistics.median(values["Apache"]) if "Apache" in values else None
        ours = statistics.median(values["PocketMQ"]) if "PocketMQ" in values else None
        pairs = zip(values.get("PocketMQ", []), values.get("Apache", []), strict=False)
        ratios = [our_value / its_value for our_value, its_value in pairs if its_value]
        ratio = f"{statistics.median(ratios):.2f}" if ratios else ""
        rows.append((row, unit, _number(apache), _number(ours), ratio))
    return rows


def print_table(rows: list[tuple[str, str, str, str, str]]) -> None:
    """Print the rows in columns."""
    head = ("", "unit", "Apache 5.5", "PocketMQ", "ratio")
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(5)]
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        print("  ".join(cells + [row[column].rjust(widths[column]) for column in range(2, 5)]))


def markdown(rows: list[tuple[str, str, str, str, str]]) -> str:
    """The rows as a Markdown table."""
    lines = ["| | unit | Apache 5.5 | PocketMQ | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


if __name__ == "__main__":
    main()
