"""What else keeps vectors with labels: a query and a write of each, against a read and a write.

The rivals only have to name their nearest neighbours; turning these into probabilities would come
on top. Packages that are not installed are left out and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from reads import DIM, memory_of
from timing import Work, take_turns

NEIGHBOURS = 10
Maker = Callable[[np.ndarray], Callable[[np.ndarray, int], object]]


def labelmem(v: np.ndarray) -> Callable[[np.ndarray, int], object]:
    memory = memory_of(len(v))
    memory.v[0].copy_(torch.from_numpy(v))
    memory.restore(dict(memory.tensors()))

    def step(h: np.ndarray, y: int) -> object:
        x = torch.from_numpy(h[None])
        memory.read(x)
        return memory.write(x, torch.tensor([y]))

    return step


def faiss_ivf(v: np.ndarray) -> Callable[[np.ndarray, int], object]:
    import faiss

    faiss.omp_set_num_threads(1)
    lists = max(1, int(len(v) ** 0.5))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(DIM), DIM, lists, faiss.METRIC_INNER_PRODUCT)
    index.train(v)
    index.add(v)
    index.nprobe = max(1, lists // 10)

    def step(h: np.ndarray, y: int) -> object:
        index.search(h[None], NEIGHBOURS)
        return index.add(h[None])

    return step


def hnsw(v: np.ndarray) -> Callable[[np.ndarray, int], object]:
    import hnswlib

    index = hnswlib.Index("cosine", DIM)
    index.init_index(max_elements=len(v) + 100_000, M=16, ef_construction=100)
    index.set_num_threads(1)
    index.add_items(v)
    index.set_ef(50)

    def step(h: np.ndarray, y: int) -> object:
        index.knn_query(h[None], k=NEIGHBOURS)
        return index.add_items(h[None])

    return step


def usearch(v: np.ndarray) -> Callable[[np.ndarray, int], object]:
    from usearch.index import Index

    index = Index(ndim=DIM, metric="cos", dtype="f32")
    index.add(np.arange(len(v)), v, threads=1)

    def step(h: np.ndarray, y: int) -> object:
        index.search(h, NEIGHBOURS, threads=1)
        return index.add(len(index), h, threads=1)

    return step


def river(v: np.ndarray) -> Callable[[np.ndarray, int], object]:
    from river import neighbors

    engine = neighbors.LazySearch(window_size=len(v))
    model = neighbors.KNNClassifier(n_neighbors=NEIGHBOURS, engine=engine)
    for y, row in enumerate(v):
        model.learn_one(dict(enumerate(row.tolist())), y)

    def step(h: np.ndarray, y: int) -> object:
        x = dict(enumerate(h.tolist()))
        model.predict_proba_one(x)
        return model.learn_one(x, y)

    return step


MAKERS: dict[str, Maker] = {
    "FAISS IVF": faiss_ivf,
    "hnswlib": hnsw,
    "usearch": usearch,
    "river's kNN": river,
}


def rivals(cells: int, rounds: int = 9) -> Iterator[dict[str, object]]:
    """A query and a write of each rival, over the memory's read and write."""
    generator = np.random.default_rng(0)
    v = generator.normal(size=(cells, DIM)).astype(np.float32)
    asked = generator.normal(size=(64, DIM)).astype(np.float32)
    made, missing = {"labelmem": labelmem(v)}, []
    for name, make in MAKERS.items():
        if name == "river's kNN" and cells > 1_000:
            continue  # a second and more for every step
        try:
            made[name] = make(v)
        except ImportError:
            missing.append(name)

    def turn(step: Callable[[np.ndarray, int], object]) -> Work:
        def work() -> None:
            for y, h in enumerate(asked[:8]):
                step(h, y)

        return work

    times = take_turns({name: turn(step) for name, step in made.items()}, 1, rounds)
    own = times.pop("labelmem") / 8
    for name, us in times.items():
        over = "read and write of the memory"
        yield {"what": f"{name}, {cells:,} vectors", "us": us / 8, "over": over, "floor": own}
    for name in missing:
        yield {"what": f"{name}: not installed", "us": None, "over": "", "floor": None}
