"""What a step and a user of the default form cost, counted: operations and bytes, not seconds.

    python benchmarks/default_form.py --json results/default_form.json

Every tensor operation of `predict` and `observe` is counted as torch carries it out: a product of
matrices with its multiplications and additions, everything else with one operation for each number
it reads or writes; bytes are those of all numbers read and written. The model is one linear layer,
so that its forward is the head's.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from labelmem import Adapter, MemoryConfig, Stream

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


def _size_of(stream: Stream) -> int:
    """Bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        stream.save(Path(folder) / "stream")
        return (Path(folder) / "stream").stat().st_size


def main() -> None:
    """Count, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
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
