"""`make bench`: ratios of running times, all measured in one run on one thread.

Times on a busy computer mean little; ratios within one run mean more. Parts that are compared take
turns; of reads the fastest is told, of steps the mean. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Before numpy and torch are imported: their libraries read it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from drawing import drawn
from growth import growth
from many import many
from pages import pages
from reads import reads
from rich.console import Console
from rich.table import Table
from rivals import rivals
from step_parts import step_parts
from steps import steps

Row = dict[str, Any]


def imports(rounds: int = 5) -> list[Row]:
    """What importing all public names takes beyond importing torch."""
    script = "import time, torch; s = time.thread_time(); import labelmem; "
    script += "[getattr(labelmem, name) for name in labelmem.__all__]; "
    script += "print(time.thread_time() - s)"
    each = []
    for _ in range(rounds):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        each.append(float(done.stdout))
    found = 1e6 * sorted(each)[rounds // 2]
    return [{"what": "import of all names after torch", "us": found, "over": "0.2 s", "floor": 2e5}]


def apart(part: Callable[..., Iterable[Row]], *given: Any) -> list[Row]:
    """The rows of a part, measured in a process of its own.

    In one process for all, times depend on which parts came before.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_rows, part, *given).result()


def _rows(part: Callable[..., Iterable[Row]], *given: Any) -> list[Row]:
    torch.set_num_threads(1)
    return list(part(*given))


def all_reads(full: bool) -> Iterator[Row]:
    """Reads of memories of all sizes, with one cell per label and with several, and of 16 bits."""
    largest = [1_000_000] if full else []
    for cells in (500, 10_000, 100_000, *largest):
        yield from reads(cells, rounds=11 if cells < 1_000_000 else 5)
    for each in (4, 16, 100):
        for cells in (10_000, 100_000, *largest):
            yield from reads(cells, each=each, rounds=7 if cells < 1_000_000 else 3)
    for cells in (10_000, 100_000, *largest):
        yield from reads(cells, rounds=7 if cells < 1_000_000 else 3, narrow=True)


def measured(full: bool) -> list[Row]:
    """All rows; a row's ratio is its time over its floor."""
    rows = apart(all_reads, full) + apart(steps) + apart(many)
    for cells in (500, 10_000, *([100_000] if full else [])):
        rows += apart(rivals, cells)
    rows += imports()
    for row in rows:
        row["ratio"] = row["us"] / row["floor"] if row["floor"] else None
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="up to a million cells; takes minutes")
    parser.add_argument("--growth", type=Path, help="measure how a step grows, and draw it here")
    parser.add_argument("--json", type=Path, help="results/bench.json with --full, else nothing")
    given = parser.parse_args()
    target = given.json or (Path("results/bench.json") if given.full else None)
    torch.set_num_threads(1)
    rows = measured(given.full)
    table = Table("what", "microseconds", "ratio", "over")
    for row in rows:
        if row["us"] is None:
            table.add_row(row["what"], "", "", "")
        else:
            table.add_row(row["what"], f"{row['us']:,.0f}", f"{row['ratio']:.2f}", row["over"])
    Console().print(table)
    parts = apart(step_parts)
    print(pages(rows, parts))
    grown = growth() if given.growth else []
    if given.growth:
        given.growth.write_text(drawn(grown))
    versions = {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    load = os.getloadavg()[0]
    document = {
        "full": given.full,
        "load": load,
        "versions": versions,
        "rows": rows,
        "parts": parts,
        "growth": grown,
    }
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
