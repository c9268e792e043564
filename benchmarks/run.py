"""`make bench`: ratios of running times, all measured in one run on one thread.

Times on a busy computer mean little; ratios within one run mean more. Each time is the best of
several rounds. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from labelmem import Adapter, Combiner, LabeledMemory, MemoryConfig
from labelmem.baselines import make
from labelmem.models import GRUModel

Row = dict[str, object]


def best_of(work: Callable[[], object], calls: int, rounds: int = 5) -> float:
    """Microseconds per call: the fastest round's mean."""
    work()
    means = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        means.append((time.perf_counter() - start) / calls)
    return 1e6 * min(means)


def read_against_one_pass(cells: int, dim: int = 128) -> Row:
    """An exact read of ``cells`` cells, one per label, against one matrix-vector product."""
    memory = LabeledMemory(dim, MemoryConfig())
    generator = torch.Generator().manual_seed(0)
    memory.restore(
        {
            "v": torch.randn(1, cells, dim, generator=generator),
            "alpha": torch.ones(1, cells),
            "label": torch.arange(cells)[None],
            "group": torch.arange(cells)[None],
            "written": torch.zeros(1, cells, dtype=torch.int32),
            "born": torch.zeros(1, cells, dtype=torch.int32),
            "used": torch.tensor([cells]),
            "time": torch.tensor([cells], dtype=torch.int32),
        }
    )
    h = torch.randn(1, dim, generator=generator)
    v = memory.v[0].contiguous()
    calls = max(3, 200_000 // cells)
    read = best_of(lambda: memory.read(h), calls)
    floor = best_of(lambda: v @ h[0], calls)
    return {"what": f"read {cells:,} cells / one pass over them", "us": read, "ratio": read / floor}


def steps(labels: int, dim: int = 128, warm: int = 300, measured: int = 100) -> list[Row]:
    """A whole step of each method, without the model's forward, against that forward."""
    model = GRUModel(labels, dim).eval()
    tokens = torch.randint(0, labels, (warm + measured,)).tolist()
    state, token = model.initial_state(1), torch.tensor([0])
    with torch.no_grad():
        forward = best_of(lambda: torch.softmax(model(token, state)[0], -1), 50)
    memory = MemoryConfig(margin=50.0)  # every step writes: the costliest case
    methods = {
        "LMN-fixed": Adapter(model, memory=memory),
        "LMN, label combiner of 16": Adapter(model, memory=memory, combiner=Combiner(hidden=16)),
        "LMN, stream combiner of 16": Adapter(
            model, memory=memory, combiner=Combiner(kind="stream", hidden=16)
        ),
        "SGD on the last layer": make("sgd-head", model),
        "SGD on all weights": make("sgd-all", model),
    }
    rows: list[Row] = [{"what": f"model's forward, {labels:,} labels", "us": forward, "ratio": 1.0}]
    for name, method in methods.items():
        stream = method.stream()
        for label in tokens[:warm]:
            stream.predict(label)
            stream.observe(label)
        times = []
        for label in tokens[warm:]:
            start = time.perf_counter()
            stream.predict(label)
            stream.observe(label)
            times.append(1e6 * (time.perf_counter() - start))
        own = statistics.median(times) - forward
        rows.append({"what": f"{name}: step / model's forward", "us": own, "ratio": own / forward})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="larger sizes; takes minutes")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = [read_against_one_pass(cells) for cells in ([1_000, 10_000, 100_000])]
    if given.full:
        rows.append(read_against_one_pass(1_000_000))
    rows += steps(labels=10_000)
    table = Table("what", "microseconds", "ratio")
    for row in rows:
        table.add_row(str(row["what"]), f"{row['us']:,.0f}", f"{row['ratio']:.2f}")
    Console().print(table)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
