"""What a step and a user of the default form cost, counted: operations and bytes, not seconds.

    python benchmarks/default_form.py --json results/default_form.json
    python benchmarks/default_form.py --times

Every tensor operation of `predict` and `observe` is counted as torch carries it out in the plain
form: a product of matrices with its multiplications and additions, everything else with one
operation for each number it reads or writes; bytes are those of all numbers read and written. The
model is one linear layer, so that its forward is the head's.

`--times` tells how long a step takes, less the model's forward, over that forward: compiled and
plain streams take turns. Only these ratios mean anything.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported, which reads it once

import torch
from steps import TURN, Forwards, usual
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from labelmem import Adapter, MemoryConfig, Stream
from labelmem.fast import plainly

DIM, IN_MEMORY, WARM, COUNTED = 128, 100, 450, 10
LABELS = (10, 1_000, 100_000)


class Counter(TorchDispatchMode):
    """Counts what goes through torch while it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if _is_view(func):
            return out
        tensors = [x for x in tree_leaves((args, kwargs, out)) if isinstance(x, torch.Tensor)]
        self.bytes += sum(x.numel() * x.element_size() for x in tensors)
        count = flop_registry.get(func._overloadpacket)
        products = count(*args, **(kwargs or {}), out_val=out) if count else 0
        self.operations += products or sum(x.numel() for x in tensors)
        return out


def _is_view(func: Any) -> bool:
    """Whether an operation only looks at its input in another shape."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


def measure(labels: int, cells: int) -> dict[str, Any]:
    """Operations and bytes of a mean step, and of the head alone."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = torch.nn.Linear(DIM, labels)
    known = min(labels, IN_MEMORY // 2)
    centres = torch.randn(known + IN_MEMORY // 2, DIM, generator=generator)
    stream = Adapter(model, memory=MemoryConfig(capacity=cells)).stream()

    def step() -> None:
        kind = int(torch.randint(len(centres), (1,), generator=generator))
        stream.predict(centres[kind] + torch.randn(DIM, generator=generator))
        stream.observe(kind if kind < known else f"new {kind}")

    with plainly():
        for _ in range(WARM):
            step()
        with Counter() as counted:
            for _ in range(COUNTED):
                step()
    with Counter() as head, torch.no_grad():
        model(torch.randn(1, DIM))
    return {
        "labels": labels,
        "cells": cells,
        "labels in memory": len(centres),
        "operations": counted.operations // COUNTED,
        "bytes": counted.bytes // COUNTED,
        "saved": _size_of(stream),
        "head operations": head.operations,
        "head bytes": head.bytes,
    }


def timed(labels: int, dim: int, shown: int, trained: bool, steps: int = 200) -> dict[str, Any]:
    """The time of a step over the model's forward; every other label that is shown is new.

    A model that was ``trained`` is sure of the known labels; one that was not may take an input for
    any of its labels, so cells vote about many of them and the memory holds more.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, labels))
    centres, known = torch.randn(shown, dim), shown // 2
    if trained:
        with torch.no_grad():
            h = nn.functional.normalize(model[:2](centres[:known]), dim=1)
            model[2].weight[:known] = 4 * h
    inside, adapter = Forwards(model), Adapter(model)
    ways = {"compiled": nullcontext, "plain": plainly}
    streams = {name: adapter.stream() for name in ways}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    order = [*range(shown), *torch.randint(shown, (steps,)).tolist()]
    inputs = centres[order] + 0.5 * torch.randn(len(order), dim)
    for first in range(0, len(order), TURN):
        for name, stream in streams.items():
            with ways[name]():
                for t in range(first, min(first + TURN, len(order))):
                    start = time.thread_time()
                    stream.predict(inputs[t])
                    forward = inside.last
                    stream.observe(order[t] if order[t] < known else f"new {order[t]}")
                    times[name].append((forward, time.thread_time() - start - forward))
    memory = streams["plain"].tensors()
    found = {
        "labels": labels,
        "dim": dim,
        "trained": trained,
        "in memory": len(memory["user.0.slot_labels"]),
        "cells": len(memory["user.0.cells.key"]),
    }
    for name, each in times.items():
        forward, own = (usual(part) for part in zip(*each[shown:], strict=True))
        found |= {f"{name}, us": 1e6 * own, f"{name}, over the forward": own / forward}
    return found


def _size_of(stream: Stream) -> int:
    """Bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        stream.save(Path(folder) / "stream")
        return (Path(folder) / "stream").stat().st_size


def main() -> None:
    """Count, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--times", action="store_true", help="ratios of times instead of counts")
    options = parser.parse_args()
    if options.times:
        torch.set_num_threads(1)
        for which in (
            (10_000, 128, 500, True),
            (10_000, 128, 500, False),
            (1_000, 1_280, 100, True),
        ):
            print(json.dumps(timed(*which)))
        return
    rows = [measure(labels, cells) for cells in (50, 200) for labels in LABELS]
    print("| labels | cells | operations | head's | bytes | head's | file |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['labels']:,} | {row['cells']} | {row['operations'] / 1e6:.2f} M "
            f"| {row['head operations'] / 1e6:.2f} M | {row['bytes'] / 1e6:.2f} MB "
            f"| {row['head bytes'] / 1e6:.2f} MB | {row['saved'] / 1e6:.2f} MB |"
        )
    if options.json:
        about = {"dim": DIM, "labels in memory": IN_MEMORY, "steps": COUNTED}
        options.json.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
