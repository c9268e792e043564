"""Running a task: choose on validation users, then score every method once on the test users."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from labelmem.combiner import Combiner
from labelmem.demo.choosing import BATCH, chosen_adapters, chosen_baseline
from labelmem.demo.explained import Explained, explain_one
from labelmem.demo.task import Size, Task
from labelmem.demo.trace import Trace
from labelmem.evaluation import evaluate
from labelmem.metrics import MetricsResult
from labelmem.online import OnlineMethod

__all__ = ["TITLES", "MethodResult", "TaskResult", "run_task"]

TITLES = {
    "static": "not adapted",
    "counter": "per-user counter",
    "ncm": "nearest class mean",
    "sgd-head": "last-layer SGD",
    "lmn-fixed": "LMN-fixed",
    "lmn": "LMN",
}


@dataclass(frozen=True)
class MethodResult:
    """One method on the test users."""

    name: str
    settings: dict[str, Any]
    """What was chosen on the validation users."""
    result: MetricsResult
    us_per_step: float
    trace: Trace = field(repr=False)

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return TITLES[self.name]


@dataclass(frozen=True)
class TaskResult:
    """All methods on one task."""

    task: Task
    methods: tuple[MethodResult, ...]
    explained: Explained | None

    def __getitem__(self, name: str) -> MethodResult:
        return next(method for method in self.methods if method.name == name)


def run_task(task: Task, size: Size, seed: int, show: bool | None = None) -> TaskResult:
    """Compare the methods of a task; explain a prediction of LMN where inputs are pictures."""
    done = []
    for name in task.methods:
        if not name.startswith("lmn"):
            method, settings = chosen_baseline(name, task, size, show)
            done.append(_scored(method, settings, task, show))
            if hasattr(method, "close"):
                method.close()
    fixed, lmn = chosen_adapters(task, size, seed, show)
    memory = {name: getattr(fixed.memory, name) for name in ("lam", "delta", "margin")}
    done.append(_scored(fixed, {**memory, "theta": fixed.combiner}, task, show))
    assert isinstance(lmn.combiner, Combiner)
    done.append(_scored(lmn, {**memory, "hidden": lmn.combiner.hidden}, task, show))
    explained = explain_one(lmn, task, done[-1].trace) if task.pictures else None
    fixed.close()
    return TaskResult(task, tuple(done), explained)


def _scored(
    method: OnlineMethod[Any], settings: dict[str, Any], task: Task, show: bool | None
) -> MethodResult:
    trace = Trace(task.test, task.labels)
    evaluation = evaluate(method, task.test, BATCH, watch=trace, show=show)
    result = evaluation.result()
    return MethodResult(method.name, settings, result, evaluation.us_per_token, trace)
