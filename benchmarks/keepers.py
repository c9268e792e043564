"""Ways to keep vectors and to ask for the nearest, all with the same few calls.

An effort is what a keeper can be told to spend on a question: from the least to the most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from reads import DIM, memory_of

from labelmem import LabeledMemory, MemoryConfig
from labelmem.config import IndexConfig, IndexedMemoryConfig

NEIGHBOURS, LAM = 10, 20.0
PROBES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def unit(h: np.ndarray) -> np.ndarray:
    length = np.sqrt((h * h).sum(axis=-1, keepdims=True))
    return np.asarray(h / length)


class Keeper(Protocol):
    """Anything that keeps vectors; ids of vectors are the labels they belong to."""

    efforts: Sequence[Any]

    def spend(self, effort: Any) -> None:
        """Look so hard from now on."""

    def near(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ids and cosines of neighbours."""

    def add(self, y: int, h: np.ndarray) -> object:
        """Keep a new vector."""

    def move(self, y: int, h: np.ndarray) -> object:
        """Let a known one be another."""


class FaissIVF:
    def __init__(self, v: np.ndarray) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        lists = max(1, int(len(v) ** 0.5))
        coarse = faiss.IndexFlatIP(DIM)
        self.index = faiss.IndexIVFFlat(coarse, DIM, lists, faiss.METRIC_INNER_PRODUCT)
        self.index.cp.min_points_per_centroid = 1  # no warning where there are few
        self.index.train(unit(v))
        self.index.add(unit(v))
        self.index.make_direct_map()
        self.efforts = [p for p in PROBES if p < lists] + [lists]

    def spend(self, effort: int) -> None:
        self.index.nprobe = effort

    def near(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cosine, at = self.index.search(unit(h)[None], NEIGHBOURS)
        return at[0], cosine[0]

    def add(self, y: int, h: np.ndarray) -> object:
        return self.index.add(unit(h)[None])

    def move(self, y: int, h: np.ndarray) -> object:
        return self.index.update_vectors(np.array([y]), unit(h)[None])


class Hnsw:
    efforts = (10, 15, 20, 30, 50, 75, 100, 150, 200, 400, 800)

    def __init__(self, v: np.ndarray) -> None:
        import hnswlib

        self.index = hnswlib.Index("cosine", DIM)
        self.index.init_index(max_elements=len(v) + 100_000, M=16, ef_construction=100)
        self.index.set_num_threads(1)
        self.index.add_items(v, np.arange(len(v)))

    def spend(self, effort: int) -> None:
        self.index.set_ef(effort)

    def near(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at, away = self.index.knn_query(h[None], k=NEIGHBOURS)
        return at[0], 1 - away[0]

    def add(self, y: int, h: np.ndarray) -> object:
        return self.index.add_items(h[None], np.array([y]))

    move = add  # it takes an id that it knows as a change


class USearch:
    efforts = (16, 32, 64, 128, 256, 512)

    def __init__(self, v: np.ndarray) -> None:
        from usearch.index import Index

        self.index = Index(ndim=DIM, metric="cos", dtype="f32")
        self.index.add(np.arange(len(v)), v, threads=1)

    def spend(self, effort: int) -> None:
        self.index.expansion_search = effort

    def near(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = self.index.search(h, NEIGHBOURS, threads=1)
        return found.keys.astype(np.int64), 1 - found.distances

    def add(self, y: int, h: np.ndarray) -> object:
        return self.index.add(y, h, threads=1)

    def move(self, y: int, h: np.ndarray) -> object:
        self.index.remove(y)
        return self.index.add(y, h, threads=1)


class River:
    efforts = (None,)

    def __init__(self, v: np.ndarray) -> None:
        from river import neighbors

        engine = neighbors.LazySearch(window_size=len(v))
        self.model = neighbors.KNNClassifier(n_neighbors=NEIGHBOURS, engine=engine)
        for y, row in enumerate(v):
            self.model.learn_one(dict(enumerate(row.tolist())), y)

    def spend(self, effort: None) -> None:
        """It looks at everything."""

    def near(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        told = self.model.predict_proba_one(dict(enumerate(h.tolist())))
        return np.array(list(told), np.int64), np.array(list(told.values()))

    def add(self, y: int, h: np.ndarray) -> object:
        return self.model.learn_one(dict(enumerate(h.tolist())), y)

    move = add  # it never moves a vector


class Memory:
    """The memory, by its index or, where that is faster, exactly."""

    def __init__(self, v: np.ndarray) -> None:
        self.lists = max(1, int(len(v) ** 0.5))
        held = memory_of(len(v))
        held.v[0].copy_(torch.from_numpy(v))
        self.saved = dict(held.tensors())
        probes = [p for p in PROBES if p < self.lists]
        self.efforts = [*probes, None] if len(v) > 1_000 else [None]

    def spend(self, effort: int | None) -> None:
        options: dict[str, Any] = {"lam": LAM, "margin": 50.0}
        config = MemoryConfig(**options)
        if effort is not None:
            index = IndexConfig(self.lists, effort, least=self.lists)
            config = IndexedMemoryConfig(**options, index=index)
        if not hasattr(self, "memory") or effort is None:
            self.memory = LabeledMemory(DIM, config)
            self.memory.restore(self.saved)
            self.memory.read(self.saved["v"][:, 0])  # the index is made by the first read
        else:  # the same lists, of which others are looked at
            assert self.memory._index is not None and isinstance(config, IndexedMemoryConfig)
            self.memory._index.config = config.index

    def near(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        read = self.memory.read(torch.from_numpy(h[None]))
        best = read.score[0].topk(min(NEIGHBOURS, read.score.shape[1])).indices
        return read.label[0, best].numpy(), read.cosine[0, best].numpy()
