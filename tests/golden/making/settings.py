"""Settings of the adapters that were saved; the tests read them from the files."""

from __future__ import annotations

import math
from typing import Any

from labelmem import MemoryConfig
from labelmem.config import IndexConfig, IndexedMemoryConfig, NarrowMemoryConfig

_STREAM = {"kind": "stream", "hidden": 6, "rescorer": 8}

SETTINGS: dict[str, tuple[MemoryConfig, float | dict[str, Any]]] = {
    "fixed": (MemoryConfig(), 0.4),
    "own-labels": (MemoryConfig(lam=8.0), 0.6),
    "numbers": (MemoryConfig(delta=0.5, margin=math.inf), 0.5),
    "cells": (MemoryConfig(lam=6.0, cells_per_label=3, margin=2.0), 0.5),
    "oldest": (MemoryConfig(cells_per_label=2, capacity=7, margin=2.0), 0.7),
    "weight": (
        MemoryConfig(
            cells_per_label=2,
            capacity=7,
            evict="weight",
            write_lam=False,
            delta=0.5,
            decay=0.9,
            margin=3.0,
        ),
        0.7,
    ),
    "stream": (MemoryConfig(cells_per_label=2), _STREAM | {"sees_h": True}),
    "stream-late": (MemoryConfig(), _STREAM),
    "label": (MemoryConfig(cells_per_label=2, margin=2.0), {"kind": "label", "hidden": 5}),
    "label-active": (
        MemoryConfig(margin=2.0),
        {"kind": "label", "hidden": 5, "active_threshold": 0.05},
    ),
    "recurrent": (MemoryConfig(margin=2.0), {"kind": "label", "hidden": 5}),
    "recurrent-late": (MemoryConfig(margin=2.0), 0.5),
    "own-key": (MemoryConfig(lam=10.0), _STREAM | {"correct": False}),
    "few-shot": (MemoryConfig(lam=10.0, cells_per_label=4, margin=1.5), 0.5),
    "bits-16": (NarrowMemoryConfig(cells_per_label=2, margin=2.0), 0.5),
    "double": (MemoryConfig(cells_per_label=2, margin=2.0), 0.5),
    "index": (
        IndexedMemoryConfig(
            cells_per_label=None, margin=5.0, index=IndexConfig(lists=4, probes=4, least=10)
        ),
        0.6,
    ),
    "gru": (MemoryConfig(margin=2.0), {"kind": "label", "hidden": 5}),
    "lstm": (MemoryConfig(cells_per_label=2, margin=2.0), 0.5),
    "history": (MemoryConfig(margin=math.inf, capacity=10), _STREAM),
}
"""The memory, and theta or the options of a combiner, which is trained."""
PROBES = IndexedMemoryConfig(
    cells_per_label=None, margin=5.0, index=IndexConfig(lists=4, probes=1, least=10)
)
"""The index again, read in part."""
