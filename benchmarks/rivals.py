"""What else keeps vectors with labels: a question and a write of each, at the same recall.

All see the same vectors, made like hidden states: the tanh of a dozen causes and some noise. For
each the least effort is taken that finds 95 % of the ten nearest neighbours. Two tasks:

neighbours
    Name ten neighbours; keep one more vector. The memory tells the probabilities of all labels it
    looks at all the same.
labels
    Tell the probabilities of labels, and learn the label of the vector: every other one is known
    and its vector moves, as it does in the memory. Rivals get a few lines of numpy for that.

Packages that are not installed are left out and named. River's kNN is exact, and slow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from keepers import LAM, NEIGHBOURS, FaissIVF, Hnsw, Keeper, Memory, River, USearch, unit
from reads import DIM
from timing import Work, take_turns

from labelmem import LabeledMemory

RECALL, CAUSES, NOISE = 0.95, 12, 0.1
STEPS, VECTORS = 32, 4096  # of a turn, and all that are given
Step = Callable[[Any, Any], object]


def states(count: int, seed: int) -> np.ndarray:
    """Vectors (count, DIM) as hidden states are: few causes, all entries between -1 and 1."""
    causes = np.random.default_rng(0).normal(size=(CAUSES, DIM)) / CAUSES**0.5
    generator = np.random.default_rng(1 + seed)
    noise = NOISE * generator.normal(size=(count, DIM))
    return np.tanh(generator.normal(size=(count, CAUSES)) @ causes + noise).astype(np.float32)


RIVALS: dict[str, Callable[[np.ndarray], Keeper]] = {
    "FAISS IVF": FaissIVF,
    "hnswlib": Hnsw,
    "usearch": USearch,
    "river's kNN": River,
}


def recall_of(keeper: Any, asked: np.ndarray, nearest: np.ndarray) -> float:
    """The share of the true ten nearest neighbours that is named, over all questions."""
    named = (np.isin(right, keeper.near(h)[0]) for h, right in zip(asked, nearest, strict=True))
    return float(np.mean([each.mean() for each in named]))


def settled(keeper: Any, asked: np.ndarray, nearest: np.ndarray) -> tuple[Any, float]:
    """The least effort with the recall that is asked for, or all of it."""
    for effort in keeper.efforts:
        keeper.spend(effort)
        recall = recall_of(keeper, asked, nearest)
        if recall >= RECALL:
            break
    return effort, recall


def rival_step(keeper: Keeper, v: np.ndarray, labels: bool) -> Step:
    """A question and a write; ``labels`` says which task."""
    kept = dict(enumerate(v)) if labels else {}

    def step(h: np.ndarray, y: int) -> object:
        _, cosine = keeper.near(h)
        if not labels:
            return keeper.add(y, h)
        score = np.exp(LAM * (cosine - cosine.max()))
        score /= score.sum()  # the probabilities of the labels named: each vector is one
        known = kept.get(y)
        kept[y] = h if known is None else known + h
        return keeper.add(y, h) if known is None else keeper.move(y, kept[y])

    return step


def memory_step(memory: LabeledMemory) -> Step:
    def told(h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        read = memory.read(h)
        return read.label, read.score

    def step(h: torch.Tensor, y: torch.Tensor) -> object:
        told(h)
        return memory.write(h, y)

    return step


def given(cells: int, labels: bool) -> list[tuple[np.ndarray, int]]:
    """New vectors and their labels, which are new; in the task of labels every other is known."""
    first = cells + labels * VECTORS  # what the other task has added is not met again
    ys = (t * 997 % cells if labels and t % 2 else first + t for t in range(VECTORS))
    return list(zip(states(VECTORS, seed=3), ys, strict=True))


def turns(step: Step, steps: Sequence[tuple[Any, Any]]) -> Work:
    """Some steps, each turn the next."""
    ahead = itertools.cycle(steps)

    def work() -> None:
        for h, y in itertools.islice(ahead, STEPS):
            step(h, y)

    return work


def rivals(cells: int, rounds: int = 7) -> Iterator[dict[str, object]]:
    """Time of each rival over the memory's, for both tasks."""
    v, asked = states(cells, seed=0), states(100, seed=2)
    cosine = unit(asked) @ unit(v).T
    nearest = np.argpartition(-cosine, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    memory, made, missing = Memory(v), {}, []
    for name, make in RIVALS.items():
        if make is River and cells > 1_000:
            continue  # a second and more for every step
        try:
            made[name] = make(v)
        except ImportError:
            missing.append(name)
    own_effort, own_recall = settled(memory, asked, nearest)
    told = {name: settled(keeper, asked, nearest) for name, keeper in made.items()}
    for task in ("neighbours", "labels"):
        labels = task == "labels"
        steps = given(cells, labels)
        # Each gets vectors and labels as it takes them.
        tensors = [(torch.from_numpy(h[None]), torch.tensor([y])) for h, y in steps]
        works = {name: turns(rival_step(made[name], v, labels), steps) for name in made}
        own = turns(memory_step(memory.memory), tensors)
        times = take_turns({"labelmem": own, **works}, 1, rounds)
        for name, (effort, recall) in told.items():
            yield {
                "what": f"{name}, {cells:,} vectors, {task}",
                "us": times[name] / STEPS,
                "over": "read and write of the memory",
                "floor": times["labelmem"] / STEPS,
                "effort": effort,
                "recall": recall,
                "effort_of_memory": own_effort,
                "recall_of_memory": own_recall,
            }
    for name in missing:
        yield {"what": f"{name}: not installed", "us": None, "over": "", "floor": None}
