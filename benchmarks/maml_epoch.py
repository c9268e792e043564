"""What an epoch of MAML's meta-training costs where a table has a dash for it.

    LABELMEM_DATA=... python benchmarks/maml_epoch.py --threads 2 --json results/maml_epoch.json

A part of the training streams is gone through once, with the windows and batches of Table 2, and
the time of a whole epoch follows from the number of labels. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from labelmem.baselines import method
from labelmem.data import load
from labelmem.experiments.table import load_table

# The streams, and the first steps of each, that are gone through.
PARTS: dict[str, tuple[int | None, int | None]] = {"geolife": (None, 64), "yoochoose": (1024, None)}


def measured(name: str) -> dict[str, Any]:
    (run,) = load_table("table2").runs("paper", [name], ["maml"], [0])
    data, (streams, steps) = load(name, seed=0), PARTS[name]
    whole = [y[: run.config.get("steps")] for y in data.arrays("train")]
    part = [y[:steps] for y in whole[:streams]]
    begin = np.array([data.labels])
    pairs = [(np.concatenate([begin, y[:-1]]), y) for y in part]
    given = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in pairs]
    cls = method("maml")
    made = cls(data.labels, cls.chosen_options(lr=0.3, seed=0), torch.device("cpu"))
    start = time.perf_counter()
    made.fit(given, seed=0, **run.config["options"]["training"] | {"epochs": 1})
    took, tokens = time.perf_counter() - start, sum(map(len, part))
    all_tokens = sum(map(len, whole))
    return {
        "dataset": name,
        "labels": data.labels,
        "streams": len(part),
        "tokens": tokens,
        "seconds": took,
        "whole": {
            "streams": len(whole),
            "tokens": all_tokens,
            "seconds": took * all_tokens / tokens,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows = [measured(name) for name in PARTS]
    for row in rows:
        minutes = row["whole"]["seconds"] / 60
        print(f"{row['dataset']}: {row['seconds']:.1f} s for {row['tokens']:,} labels,", end=" ")
        print(f"{minutes:.0f} minutes for all {row['whole']['tokens']:,}")
    if given.json:
        about = {"device": f"cpu, {given.threads} threads", "python": platform.python_version()}
        found = {**about, "torch": torch.__version__, "rows": rows}
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
