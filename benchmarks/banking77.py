"""The table of BANKING77 in documents, always as `banking77.json` says.

    python benchmarks/banking77.py README.md           # renews it where the marks are
    python benchmarks/banking77.py --check README.md   # exit code 1 where it is stale

A document has the table between `<!-- banking77 -->` and `<!-- /banking77 -->`. The figures come
from `examples/banking77_intents.py`; the command is in the record.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_suffix(".json")
COLUMNS = {"accuracy_new": "new intents", "accuracy_seen": "known intents", "accuracy": "all"}
BLOCK = re.compile(r"^(<!-- banking77 -->\n)(.*?)(^<!-- /banking77 -->$)", re.MULTILINE | re.DOTALL)


def table(record: dict[str, Any]) -> str:
    """Methods by kinds of intents: mean accuracy in % and its interval."""
    lines = ["| | " + " | ".join(COLUMNS.values()) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for name, title in record["titles"].items():
        cells = [_cell(record["summary"][name][key]) for key in COLUMNS]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def block(record: dict[str, Any]) -> str:
    """The table with what must be known to read it."""
    return (
        f"{table(record)}\n\nAccuracy in %: mean over {record['draws']} draws of the 50 intents "
        f"that the classifier knows, and its 95 % interval; {record['texts_per_draw']:,} texts "
        f"for each draw, {record['trials']} trials for each method on known intents only. "
        f"Made by `{record['command']}`."
    )


def renewed(text: str, record: dict[str, Any]) -> str:
    """A document with its table made anew; one without the marks stays as it is."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{block(record)}\n\n{found[3]}", text)


def _cell(figure: dict[str, Any]) -> str:
    low, high = (f"{100 * bound:.1f}" for bound in figure["interval"])
    return f"{100 * figure['mean']:.1f} ({low} to {high})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    record, stale = json.loads(RECORD.read_text("utf-8")), []
    for path in options.documents:
        old = path.read_text("utf-8")
        new = renewed(old, record)
        if new != old:
            stale.append(str(path))
            if not options.check:
                path.write_text(new, "utf-8")
    if options.check and stale:
        sys.exit(f"stale: {', '.join(stale)}; run python benchmarks/banking77.py with them")


if __name__ == "__main__":
    main()
