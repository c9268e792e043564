"""Reads of a million cells in part: how much faster, and how often they say the same.

    LABELMEM_DATA=... OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/approximate.py
    (the same with) --lam 5 --questions 200 --lists 1000 --json results/approximate_lam5.json

A GRU of 128 units is trained on a third of text8's training part and run over the rest of it. The
first million hidden states are the cells, later ones ask. Every cell is a label of its own, and
P = s: where labels own several cells, reads are exact. Lam is the one with the lowest log-loss
where a cell's label is the word that came next, on other questions.

Writes ``results/approximate.json``. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

# Before numpy and torch are imported: their libraries read it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from hidden_states import DIM, Exact, States, hidden_states, tensors_of
from timing import take_turns

from labelmem import LabeledMemory, MemoryConfig
from labelmem.config import IndexedMemoryConfig
from labelmem.engines.numba.index import Cells
from labelmem.index.centres import centres_of
from labelmem.index.near import NearRead
from labelmem.index.pool import Pool
from labelmem.reading import MemoryRead

LAMS, THETAS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0), (0.1, 0.2, 0.3, 0.5)
NEIGHBOURS = 1000
Row = dict[str, Any]
Read = Callable[[np.ndarray], MemoryRead]


def chosen(
    exact: Exact, states: States, asked: np.ndarray, width: int, lams: Sequence[float]
) -> tuple[float, float]:
    """The lam and theta with the lowest log-loss of P."""
    loss = dict.fromkeys(itertools.product(lams, THETAS), 0.0)
    for at, lam in itertools.product(asked, lams):
        r = states.belief(at)[states.y[at]]
        s = exact.scores(states.h[at], lam, width)[states.y[at]]
        for theta in THETAS:
            loss[lam, theta] -= np.log((1 - theta) * r + theta * s)
    return min(loss, key=lambda point: loss[point])


def reader(lists: Pool, probes: int, tensors: dict[str, Any], lam: float) -> Read:
    """What an indexed memory does in a read."""
    time = int(tensors["time"])
    return lambda h: NearRead(time, *lists.read(h, probes, lam, 1.0))


def faiss_index(lists: Pool, v: np.ndarray) -> Any:
    """FAISS's own lists about the same centres, cells of length one; None if not installed."""
    try:
        import faiss
    except ImportError:
        return None
    faiss.omp_set_num_threads(1)
    coarse = faiss.IndexFlatIP(DIM)
    coarse.add(lists.centres)
    index = faiss.IndexIVFFlat(coarse, DIM, len(lists.centres), faiss.METRIC_INNER_PRODUCT)
    index.train(lists.centres)
    index.add(v / np.linalg.norm(v, axis=1, keepdims=True))
    return index


def faiss_reader(index: Any, probes: int, tensors: dict[str, Any], lam: float) -> Read:
    """The same scores over the nearest neighbours that FAISS names."""
    label, alpha, written = (tensors[name][0].numpy() for name in ("label", "alpha", "written"))
    time = int(tensors["time"])

    def read(h: np.ndarray) -> MemoryRead:
        index.nprobe = probes
        cosine, at = index.search((h / np.sqrt(h @ h))[None], NEIGHBOURS)
        near, cosine = at[0][at[0] >= 0], cosine[0][at[0] >= 0]
        score = lam * cosine + np.log(alpha[near])
        score = np.exp(score - score.max())
        told = np.stack([alpha[near], cosine, score / score.sum()])
        return NearRead(time, np.stack([near, label[near], written[near]]), told)

    return read


def agreement(
    reads: dict[str, Read],
    exact: Callable[[np.ndarray], np.ndarray],
    states: States,
    asked: np.ndarray,
    width: int,
) -> dict[str, Row]:
    """How far each way of reading is from the exact one, over all questions."""
    told: dict[str, list[tuple[float, ...]]] = {name: [] for name in reads}
    for at in asked:
        s = exact(states.h[at])
        for name, read in reads.items():
            seen = read(states.h[at])
            near = seen.scores(width)[0].numpy()
            gap = np.abs(near - s)
            same = near.argmax() == s.argmax()
            told[name].append((same, gap.max(), gap.sum() / 2, seen.label.shape[1]))
    rows = {}
    for name, each in told.items():
        same, gap, shift, cells = (np.array(x) for x in zip(*each, strict=True))
        rows[name] = {
            "cells": float(cells.mean()),
            "same_top_of_s": float(same.mean()),
            "same_top_of_P": float(same.mean()),
            "mean_gap_of_P": float(gap.mean()),
            "max_gap_of_P": float(gap.max()),
            "mean_total_variation": float(shift.mean()),
        }
    return rows


def timed(
    reads: dict[str, Read], questions: np.ndarray, calls: int, rounds: int
) -> dict[str, float]:
    """Microseconds of a read; every call asks something else, as a stream does."""

    def work(read: Read) -> Callable[[], object]:
        ask: Iterator[np.ndarray] = itertools.cycle(questions)
        return lambda: read(next(ask))

    return take_turns({name: work(read) for name, read in reads.items()}, calls, rounds)


def writes(tensors: dict[str, Any], states: States, asked: np.ndarray, faiss: Any) -> list[Row]:
    """A write into one item's cell, which moves it: alone, with an index, and FAISS's update."""
    cells, made = int(tensors["used"]), {}

    def steps() -> Iterator[tuple[np.ndarray, int]]:
        for turn, at in enumerate(itertools.cycle(asked)):
            yield states.h[at : at + 1], turn * 99_991 % cells

    def writer(index: bool) -> Callable[[], object]:
        config = IndexedMemoryConfig(margin=50.0) if index else MemoryConfig(margin=50.0)
        memory, step = LabeledMemory(DIM, config), steps()
        memory.restore(tensors)
        memory.read(torch.from_numpy(states.h[:1]))  # the index is made by the first read

        def write() -> object:
            h, item = next(step)
            return memory.write(torch.from_numpy(h), torch.tensor([item]))

        return write

    made = {"write, no index": writer(False), "write, index": writer(True)}
    if faiss is not None:
        faiss.make_direct_map()
        step = steps()

        def update() -> object:
            h, item = next(step)
            return faiss.update_vectors(np.array([item]), h / np.linalg.norm(h))

        made["FAISS's update alone"] = update
    return [{"what": what, "us": us} for what, us in take_turns(made, 20, 7).items()]


def measured(given: argparse.Namespace) -> dict[str, Any]:
    start = time.perf_counter()
    states = hidden_states(given.steps)
    cells = given.cells
    v, width = np.ascontiguousarray(states.h[:cells]), int(states.y.max()) + 1
    later = np.random.default_rng(0).permutation(np.arange(cells + 1_000, len(states.h)))
    asked, others = later[: given.questions], later[given.questions :][:40]
    questions = states.h[asked]
    words = Exact(v, states.y[:cells])
    exact = Exact(v, np.arange(cells))
    lam, theta = chosen(words, states, others, width, given.lam)
    held = tensors_of(v, np.arange(cells))
    print(f"states and settings: {time.perf_counter() - start:.0f} s", flush=True)
    made, builds = {}, []
    items = Cells(*(held[name][0].numpy() for name in Cells._fields))
    for count in given.lists:
        begun = time.thread_time()
        made[count] = Pool(items, cells, centres_of(v, count))
        builds.append({"lists": count, "seconds": time.thread_time() - begun})
    first = given.lists[0]
    faiss = faiss_index(made[first], v)
    reads = {
        f"{count} lists, {probes} probes": reader(made[count], probes, held, lam)
        for count in given.lists
        for probes in given.probes
    }
    if faiss is not None:
        for probes in given.probes:
            told = faiss_reader(faiss, probes, held, lam)
            reads[f"FAISS, {first} lists, {probes} probes"] = told

    def all_of(h: np.ndarray) -> np.ndarray:
        return exact.scores(h, lam, cells)

    agreed = agreement(reads, all_of, states, asked, cells)
    times = timed(reads, questions, 8, 7)
    memory = LabeledMemory(DIM, MemoryConfig(lam=lam))
    memory.restore(held)

    def whole(h: np.ndarray) -> MemoryRead:
        return memory.read(torch.from_numpy(h[None]))

    check = max(np.abs(whole(h).scores(cells)[0].numpy() - all_of(h)).max() for h in questions[:3])
    one_pass = {"one pass": lambda h: np.einsum("kd,d->k", v, h)}
    sorted_once = {"exact, sorted by label": lambda h: all_of(h)}
    floor = timed(one_pass | sorted_once, questions, 2, 5)  # type: ignore[arg-type]
    floor |= timed({"exact read": whole}, questions, 3, 5)
    points = []
    for name, us in times.items():
        over = {f"times_faster_than_{what}": each / us for what, each in floor.items()}
        points.append({"memory": "items", "what": name, "us": us, **over, **agreed[name]})
    found = {"memory": "items", "us": floor, "largest_difference_of_s": float(check)}
    return {
        "cells": cells, "questions": len(asked), "lam": lam, "theta": theta, "builds": builds,
        "exact": [found], "points": points, "writes": writes(held, states, asked, faiss),
        "seconds": time.perf_counter() - start,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--steps", type=int, default=330, help="batches the model is trained on")
    parser.add_argument("--lam", type=float, nargs="+", default=LAMS, help="what to choose from")
    parser.add_argument("--lists", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--probes", type=int, nargs="+", default=[1, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--json", type=Path, default=Path("results/approximate.json"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    document = measured(given)
    versions = {"torch": torch.__version__, "numpy": np.__version__}
    document |= {"load": os.getloadavg()[0], "python": platform.python_version(), **versions}
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(document, indent=2) + "\n")
    for point in document["points"]:
        told = (point["memory"], point["what"], point["us"], point["times_faster_than_exact read"])
        same = (point["same_top_of_s"], point["same_top_of_P"], point["mean_gap_of_P"])
        print("{:6} {:32} {:8.0f} us {:7.1f} x {:.3f} {:.3f} {:.4f}".format(*told, *same))


if __name__ == "__main__":
    main()
