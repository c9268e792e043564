"""Many users in lockstep on a CPU: plain torch over the kernels, with and without whole rows."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from torch import Tensor, nn

from labelmem import Adapter, Combiner, MemoryConfig, StreamBatch
from labelmem.models import GRUModel, HistoryModel

__all__ = ["many"]

WARM = 2  # steps of each turn that are not counted: caches were another engine's before
COUNTED = 4


class Forwards:
    """How long the model's latest forward took, where it is called: inside of a step."""

    def __init__(self, model: nn.Module) -> None:
        self.last = 0.0
        self._start = 0.0
        model.register_forward_pre_hook(self._begin)
        model.register_forward_hook(self._end)

    def _begin(self, *_: object) -> None:
        self._start = time.perf_counter()

    def _end(self, *_: object) -> None:
        self.last = time.perf_counter() - self._start


def labels_of(users: int, labels: int, cells: int, steps: int) -> Tensor:
    """(T, n) labels: each user meets ``cells`` of his own, then the same again."""
    generator = torch.Generator().manual_seed(0)
    own = torch.stack([torch.randperm(labels, generator=generator)[:cells] for _ in range(users)])
    again = torch.randint(cells, (users, steps), generator=generator)
    return torch.cat([own, own.gather(1, again)], 1).T.contiguous()


def step(batch: StreamBatch, x: Tensor, y: Tensor, rows: bool) -> None:
    """One step; without rows the prediction is asked what an evaluation asks."""
    if rows:
        batch.predict(x)
    else:
        batch.look(x).worth(y, top=5)
    batch.observe_ids(y)


def costs(
    model: nn.Module, users: int, labels: int, cells: int, turns: int
) -> dict[tuple[str, bool], tuple[float, float]]:
    """Microseconds of a step less the model's forward, and of all of it.

    By engine and by whether whole rows are asked for. All take turns, from the same states.
    """
    y = labels_of(users, labels, cells, turns * (WARM + COUNTED))
    combiner, memory = Combiner(kind="stream"), MemoryConfig(margin=50.0)  # every step writes
    made: dict[str, Any] = {
        engine: Adapter(model, combiner=combiner, memory=memory, engine=engine)
        for engine in ("reference", "numba")
    }
    first = made["numba"].streams(users)
    for t in range(cells):
        step(first, y[t - 1] if t else torch.full((users,), labels), y[t], rows=False)
    batches = {(name, rows): made[name].streams(users) for name in made for rows in (True, False)}
    for (name, _), batch in batches.items():
        batch._now = made[name].restore(first.tensors(), users)
    inside, times = Forwards(model), {key: [] for key in batches}
    for start in range(cells, len(y), WARM + COUNTED):
        for key, batch in batches.items():
            for t in range(start, start + WARM + COUNTED):
                begun = time.perf_counter()
                step(batch, y[t - 1], y[t], key[1])
                took = time.perf_counter() - begun
                if t >= start + WARM:
                    times[key].append((took - inside.last, took))
    return {
        key: tuple(1e6 * statistics.median(part) for part in zip(*each, strict=True))
        for key, each in times.items()
    }


def many(
    users: int = 256, labels: int = 10_000, cells: int = 100, threads: int = 2, turns: int = 4
) -> list[dict[str, object]]:
    """The reference over the kernels, for two models; wall clock on so many threads."""
    torch.set_num_threads(threads)
    rows: list[dict[str, object]] = []
    for name, model in (
        ("HistoryModel(64)", HistoryModel(labels, 64)),
        ("GRUModel(128)", GRUModel(labels, 128)),
    ):
        found = costs(model.eval(), users, labels, cells, turns)
        for whole in (True, False):
            told = "rows of all labels" if whole else "rank of the truth and the best five"
            for part, what in enumerate(("less the forward", "all of it")):
                rows.append(
                    {
                        "what": f"{users} users, {name}, {told}, {what}: reference",
                        "us": found["reference", whole][part],
                        "over": f"kernels, {threads} threads, {labels:,} labels",
                        "floor": found["numba", whole][part],
                    }
                )
    return rows
