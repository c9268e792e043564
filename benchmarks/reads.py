"""The exact read of one stream against one pass over the same bytes."""

from __future__ import annotations

import numpy as np
import torch
from timing import Work, take_turns

from labelmem import LabeledMemory, MemoryConfig
from labelmem.config import NarrowMemoryConfig
from labelmem.fast import plainly

DIM = 128


def memory_of(
    cells: int, each: int = 1, dim: int = DIM, kind: type[MemoryConfig] = MemoryConfig
) -> LabeledMemory:
    """A memory of random cells, ``each`` of them per label."""
    memory = LabeledMemory(dim, kind(cells_per_label=each, margin=50.0))
    lead = torch.arange(cells) // each * each
    memory.restore(
        {
            "v": torch.randn(1, cells, dim, generator=torch.Generator().manual_seed(0)),
            "alpha": torch.ones(1, cells),
            "label": (torch.arange(cells) // each)[None],
            "group": lead[None],
            "written": torch.arange(1, cells + 1, dtype=torch.int32)[None],
            "born": torch.arange(1, cells + 1, dtype=torch.int32)[None],
            "writes": torch.ones(1, cells, dtype=torch.int32),
            "rates": torch.zeros(1, cells, 0),
            "used": torch.tensor([cells]),
            "time": torch.tensor([cells], dtype=torch.int32),
        }
    )
    return memory


def one_pass(v: np.ndarray, h: np.ndarray) -> dict[str, Work]:
    """The ways to multiply all cells with h; the fastest is the floor."""
    torch_v, torch_h = torch.from_numpy(v), torch.from_numpy(h)
    ways: dict[str, Work] = {
        "numpy's matrix product": lambda: v @ h,
        "numpy, row by row": lambda: np.einsum("kd,d->k", v, h),
        "torch's matrix product": lambda: torch_v @ torch_h,
    }
    try:
        import faiss
    except ImportError:
        return ways
    faiss.omp_set_num_threads(1)
    # Row by row, not blocked: for one query that is the faster of the two by far.
    faiss.cvar.distance_compute_blas_threshold = max(
        faiss.cvar.distance_compute_blas_threshold, 128_000
    )
    index = faiss.IndexFlatIP(v.shape[1])
    index.add(v)
    query = h[None].copy()
    return ways | {"FAISS Flat": lambda: index.search(query, 1)}


def reads(
    cells: int, each: int = 1, rounds: int = 11, narrow: bool = False
) -> list[dict[str, object]]:
    """Time of a read, the specification's beside it, over the fastest pass over 32 bits."""
    wide = memory = memory_of(cells, each)
    if narrow:
        memory = memory_of(cells, each, kind=NarrowMemoryConfig)
    h = torch.randn(1, DIM, generator=torch.Generator().manual_seed(1))
    floors = one_pass(wide.v[0].numpy(), h[0].numpy())

    def plain() -> object:
        with plainly():
            return memory.read(h)

    calls = max(4, 300_000 // cells)  # a turn's first call finds the caches as others left them
    times = take_turns({**floors, "read": lambda: memory.read(h)}, calls, rounds)
    if cells <= 100_000 and not narrow:  # beyond, several gigabytes pass through the specification
        times |= take_turns({"specification": plain}, max(1, calls // 10), 3)
    best = min(floors, key=lambda name: times[name])
    what = f"read {cells:,} cells" + (f", {each} per label" if each > 1 else "")
    what += ", 16 bits" if narrow else ""
    return [
        {
            "what": what if name == "read" else f"{what}, {name}",
            "us": times[name],
            "over": f"one pass, {best}",
            "floor": times[best],
            "passes": {way: times[way] for way in floors},
        }
        for name in ("read", "specification")
        if name in times
    ]
