"""Running a task: choose on validation users, then score every method once on the test users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from labelmem.adapter import Adapter
from labelmem.baselines import make
from labelmem.combiner import Combiner
from labelmem.demo.task import Size, Task
from labelmem.evaluation import evaluate
from labelmem.explain import Explanation
from labelmem.metrics import MetricsResult, PositionBin
from labelmem.online import OnlineMethod
from labelmem.search import best_point
from labelmem.stream import Prediction

__all__ = ["GRIDS", "MethodResult", "TaskResult", "chosen_adapters", "chosen_baseline"]
__all__ += ["explain_one", "run_task"]

Method = OnlineMethod[Any]

GRIDS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "static": {},
    "ncm": {
        "temperature": (0.1, 0.3, 1.0, 3.0, 10.0),
        "prior": (1.0, 3.0, 10.0, 30.0),
        "metric": ("cosine", "euclidean"),
    },
    "counter": {
        "theta": (0.3, 0.5, 0.6, 0.7, 0.8, 0.9),
        "decay": (0.9, 0.95, 0.98, 0.99, 0.995, 1.0),
        "power": (0.5, 0.75, 1.0, 1.5),
    },
    "sgd-head": {"lr": (0.01, 0.03, 0.1, 0.3, 1.0), "init": ("imprint", "zero")},
}
"""What is tried for each baseline, from the middle on, besides the memory's own grid."""

BATCH = 128
"""Users side by side; it changes the speed, not the figures."""


@dataclass(frozen=True)
class MethodResult:
    """One method on the test users."""

    settings: dict[str, Any]
    """What was chosen on the validation users."""
    result: MetricsResult
    curve: list[PositionBin]
    """Accuracy along the streams."""
    us_per_step: float


@dataclass(frozen=True)
class Explained:
    """One prediction of LMN, and what stands behind it."""

    step: int
    """Which of the user's steps it is, counted from 1."""
    truth: Any
    prediction: Prediction
    explanation: Explanation
    picture: npt.ArrayLike
    """The input as rows and columns."""


@dataclass(frozen=True)
class TaskResult:
    """All methods on one task, by name."""

    task: Task
    methods: Mapping[str, MethodResult]
    explained: Explained | None


def run_task(task: Task, size: Size, seed: int) -> TaskResult:
    """Compare the methods of a task; explain a prediction of LMN where inputs are pictures."""
    chosen = [chosen_baseline(name, task, size) for name in task.baselines]
    fixed, lmn = chosen_adapters(task, size, seed)
    assert isinstance(lmn.combiner, Combiner)
    memory = {name: getattr(fixed.memory, name) for name in ("lam", "delta", "margin")}
    chosen.append((fixed, {**memory, "theta": fixed.combiner}))
    chosen.append((lmn, {**memory, "hidden": lmn.combiner.hidden}))
    done = {}
    for method, settings in chosen:
        scored = evaluate(method, task.test, BATCH)
        curve = scored.metrics.by_position(10)
        done[method.name] = MethodResult(settings, scored.result(), curve, scored.us_per_token)
    return TaskResult(task, done, explain_one(lmn, task) if task.pictures else None)


def chosen_baseline(name: str, task: Task, size: Size) -> tuple[Method, dict[str, Any]]:
    """A baseline, fitted on what the model was trained on, with its best settings."""
    method = make(name, task.model)
    if name in ("ncm", "counter"):
        method.fit(task.train)
    if not GRIDS[name]:
        return method, {}

    def loss(point: dict[str, Any]) -> float:
        done = evaluate(method.variant(**point), task.valid, BATCH, show=False)
        return done.result().metrics["log_perplexity"]

    start = {option: values[len(values) // 2] for option, values in GRIDS[name].items()}
    settings = best_point(f"{task.name}: choose {name}", loss, start, GRIDS[name], size.trials)
    return method.variant(**settings), settings


def chosen_adapters(task: Task, size: Size, seed: int) -> tuple[Adapter, Adapter]:
    """LMN-fixed with the best settings of its memory, and LMN, which starts from there."""
    fixed = Adapter(task.model, combiner=0.5, **task.adapter)
    fixed.tune(task.valid, trials=size.trials, batch_size=BATCH)
    assert not isinstance(fixed.combiner, Combiner)
    combiner = Combiner(theta=fixed.combiner, kind="stream", seed=seed, **task.combiner)
    lmn = fixed.variant(fixed.memory, combiner)
    options = {"epochs": size.combiner_epochs, "patience": 6, "batch_size": 56, "lr": 0.02}
    lmn.fit(task.valid, seed=seed, held_out=0.15, **options)
    return fixed, lmn


def explain_one(lmn: Adapter, task: Task) -> Explained:
    """The first new label that LMN gets right in the second half of a test user's stream.

    If there is none, the last step of the last user is taken, whatever happened there.
    """
    assert task.pictures is not None
    for inputs, labels in task.test:
        stream = lmn.stream()
        for t, (x, truth) in enumerate(zip(inputs, labels, strict=True)):
            p = stream.predict(x)
            picture = x.reshape(task.pictures).numpy()
            seen = Explained(t + 1, truth, p, stream.explain(p), picture)
            if t >= len(labels) // 2 and truth >= task.labels and p.label == truth:
                return seen
            stream.observe(truth)
    return seen
