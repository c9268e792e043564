"""Records with figures nobody measured."""

from __future__ import annotations

import json
from collections.abc import Iterable
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


def keep(folder: Path, records: Iterable[Record], table: str = "table2") -> Path:
    """Write records as `labelmem reproduce` does; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)
    (folder / f"{table}.jsonl").write_text(text)
    return folder
