"""``python -m labelmem_paper.experiments``: the runner, without the command line's packages."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from labelmem_paper.experiments.executors import run_all
from labelmem_paper.experiments.table import load_table


def main() -> None:
    """Run cells of a table, as ``labelmem-paper reproduce`` does."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("table")
    parser.add_argument("--dataset", action="append")
    parser.add_argument("--method", action="append")
    parser.add_argument("--seed", action="append", type=int)
    parser.add_argument("--size", default="paper")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument(
        "--prepare",
        action="store_true",
        help="search and train but test nothing: prepare many runs side by side, then test them "
        "one after another on a quiet machine, so that their times can be compared",
    )
    given = parser.parse_args()
    runs = load_table(given.table).runs(given.size, given.dataset, given.method, given.seed)
    for run in runs:
        ((_, outcome),) = run_all([run], given.results, given.device, prepare=given.prepare)
        print(f"{outcome:<9} {run}", flush=True)


if __name__ == "__main__":
    main()
