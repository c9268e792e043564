"""Choosing what can be chosen, for every method, on validation users only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labelmem.adapter import Adapter
from labelmem.baselines import make
from labelmem.baselines.base import Baseline
from labelmem.combiner import Combiner
from labelmem.demo.task import Size, Task
from labelmem.evaluation import evaluate
from labelmem.search import best_point

__all__ = ["GRIDS", "chosen_adapters", "chosen_baseline"]

GRIDS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "static": {},
    "ncm": {
        "temperature": (0.1, 0.3, 1.0, 3.0, 10.0),
        "prior": (1.0, 3.0, 10.0, 30.0),
        "metric": ("cosine", "euclidean"),
    },
    "counter": {
        "theta": (0.3, 0.5, 0.6, 0.7, 0.8, 0.9),
        "decay": (0.9, 0.95, 0.98, 0.99, 1.0),
        "power": (0.5, 0.75, 1.0, 1.5),
    },
    "sgd-head": {"lr": (0.01, 0.03, 0.1, 0.3, 1.0), "init": ("imprint", "zero")},
}
"""What is tried for each baseline, besides the memory's own grid."""

_START: Mapping[str, Mapping[str, Any]] = {
    "static": {},
    "ncm": {"temperature": 1.0, "prior": 10.0, "metric": "euclidean"},
    "counter": {"theta": 0.7, "decay": 0.99, "power": 1.0},
    "sgd-head": {"lr": 0.1, "init": "zero"},
}

BATCH = 128
"""Users side by side; it changes the speed, not the figures."""


def chosen_baseline(
    name: str, task: Task, size: Size, show: bool | None = None
) -> tuple[Baseline[Any, Any], dict[str, Any]]:
    """A baseline, fitted on what the model was trained on, with its best settings."""
    method = make(name, task.model)
    if name in ("ncm", "counter"):
        method.fit(task.train)
    if not GRIDS[name]:
        return method, {}

    def loss(point: dict[str, Any]) -> float:
        done = evaluate(method.variant(**point), task.valid, BATCH, show=False)
        return done.result().metrics["log_perplexity"]

    title = f"{task.name}: choose {name}"
    settings = best_point(title, loss, dict(_START[name]), GRIDS[name], size.trials, show)
    return method.variant(**settings), settings


def chosen_adapters(
    task: Task, size: Size, seed: int, show: bool | None = None
) -> tuple[Adapter, Adapter]:
    """LMN-fixed with the best settings of its memory, and LMN, which starts from there."""
    fixed = Adapter(task.model, **task.memory_of)
    fixed.tune(task.valid, trials=size.trials, batch_size=BATCH, show=show)
    assert not isinstance(fixed.combiner, Combiner)
    combiner = Combiner(theta=fixed.combiner, seed=seed, **task.combiner)
    lmn = fixed.variant(fixed.memory, combiner)
    options = {"epochs": size.combiner_epochs, "patience": 6, "batch_size": 56, "lr": 0.02}
    lmn.fit(task.valid, seed=seed, held_out=0.15, show=show, **options)
    return fixed, lmn
