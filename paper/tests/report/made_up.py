"""Records with figures nobody measured."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def made_up(
    method: str = "lmn", seed: int = 0, loss: float = 6.0, mrr: float = 0.25, **changes: Any
) -> Record:
    """One run of Table 2 on Foursquare NYC; ``changes`` replaces fields."""
    return {
        "table": "table2",
        "dataset": "fsq-nyc",
        "method": method,
        "seed": seed,
        "size": "paper",
        "config": {"trials": 24, "options": {}},
        "metrics": {"log_perplexity": loss, "mrr": mrr},
        "interval": {
            "log_perplexity": [loss - 0.1, loss + 0.2],
            "mrr": [mrr - 0.01, mrr + 0.02],
        },
        "streams": 40,
        "tokens": 1500,
        "us_per_token": 120.0,
        "curve": [
            {"start": start, "stop": stop, "tokens": 40 * (stop - start), "loss": loss + 1 / stop}
            for start, stop in ((0, 1), (1, 2), (2, 4), (4, 16))
        ],
        "data": {"subset": False},
        "device": "cpu, 2 threads",
        "versions": {"labelmem": "0.1.0"},
        "commit": "0123456789ab",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 60.0,
    } | changes


def with_cells(cells: int, **changes: Any) -> Record:
    """The same with a memory of a given size."""
    return made_up(config={"trials": 24, "options": {"memory": {"capacity": cells}}}, **changes)


METHODS = (
    "unigram", "counter", "session-knn", "ncm", "slda", "knn", "sgd-head", "sgd-all", "static",
    "lstm", "rei", "maml", "dntm", "neural-cache", "lmn-fixed", "lmn-paper", "lmn",
)  # fmt: skip
DATASETS = ("fsq-nyc", "fsq-tokyo", "brightkite", "geolife", "yoochoose")
VARIANTS = ("no-key", "no-rescorer", "no-partition", "always-write")


def many(seeds: int = 3, variants: bool = False) -> list[Record]:
    """All of Table 2, and some variants of LMN if asked for, with curves that fall differently."""
    draw = random.Random(0)
    runs = []
    rows = [(name, {}) for name in METHODS]
    if variants:
        rows += [(name, {"is": "lmn"}) for name in VARIANTS]
    for (place, (method, options)), dataset in product(enumerate(rows), DATASETS):
        level, gain = 9.0 - 0.17 * place, draw.uniform(0.05, 0.45)
        for seed in range(seeds):
            loss = level + draw.uniform(-0.05, 0.05)
            runs.append(
                made_up(
                    method, seed, loss, 0.02 + 0.012 * place,
                    dataset=dataset, parameters=1000 * place, us_per_token=3.0 * 1.5**place,
                    config={"trials": 24, "options": options},
                    data={"subset": dataset != "fsq-nyc"}, curve=_falling(loss, gain, draw),
                )
            )  # fmt: skip
    return runs


def _falling(loss: float, gain: float, draw: random.Random) -> list[dict[str, float]]:
    edges = [0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
    return [
        {"start": a, "stop": b, "tokens": 40 * (b - a),
         "loss": loss + gain * (3 - math.log(b)) + draw.uniform(-0.1, 0.1)}
        for a, b in pairwise(edges)
    ]  # fmt: skip


def keep(folder: Path, records: Iterable[Record], table: str = "table2") -> Path:
    """Write records as `labelmem-paper reproduce` does; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)
    (folder / f"{table}.jsonl").write_text(text)
    return folder
