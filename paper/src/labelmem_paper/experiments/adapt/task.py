"""A frozen classifier, and every form of stream that its users may bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from labelmem.online import OnlineMethod
from labelmem.stopwatch import Stopwatch
from labelmem_paper.experiments.adapt.form_figures import form_figures
from labelmem_paper.experiments.adapt.frozen import FrozenTask, Stream
from labelmem_paper.experiments.adapt.meeting import meet
from labelmem_paper.experiments.adapt.origin import Origin, origin_of
from labelmem_paper.experiments.adapt.rehearsal import RehearsalOptions, rehearse
from labelmem_paper.experiments.adapt.tasks import TASKS
from labelmem_paper.experiments.figures import parameters
from labelmem_paper.experiments.records import Record
from labelmem_paper.experiments.run_task import RunTask

__all__ = ["TASK", "AdaptTask"]


@dataclass(frozen=True)
class AdaptTask(RunTask):
    """One of the tasks with one seed; a record has the figures of all its forms of stream.

    A table may cut every stream to its first ``cut`` steps and take only the first ``users`` of a
    form, to see that everything runs. Figures are named after form and figure: ``new.accuracy``.
    """

    @cached_property
    def data(self) -> Origin:
        """Where the examples come from."""
        return origin_of(self.run.dataset)

    @cached_property
    def frozen(self) -> FrozenTask:
        """The classifier, what it was trained on, and the streams."""
        made = TASKS[self.run.dataset](self.run.seed, self.work)
        return replace(made, streams={form: self._cut(of) for form, of in made.streams.items()})

    def _cut(self, streams: Sequence[Stream]) -> list[Stream]:
        users, steps = self.config.get("users"), self.config.get("cut")
        return [stream.part(0, steps) for stream in streams[:users]]

    def rehearsal(self, number: int) -> FrozenTask:
        """One of any number of rehearsals, each with a draw of its own."""
        options = RehearsalOptions(**self.config.get("rehearsal", {}))
        return rehearse(self.frozen, 1000 * (self.run.seed + 1) + number, options)

    @cached_property
    def first_rehearsal(self) -> FrozenTask:
        """That in which methods choose their options."""
        return self.rehearsal(0)

    def rehearsed(self, method: OnlineMethod[Any]) -> float:
        """The log-loss of a method that was made for the first rehearsal."""
        task = self.first_rehearsal
        met = meet(method, task, task.streams["rehearsal"])
        return float(np.concatenate([one.method.loss for one in met]).mean())

    def tested(self, ready: OnlineMethod[Any]) -> Record:
        """What a record keeps: the figures of all forms."""
        metrics: Record = {}
        interval: Record = {}
        seconds, steps = 0.0, 0
        for form, streams in self.frozen.streams.items():
            stopwatch = Stopwatch(ready.device)
            met = meet(ready, self.frozen, streams, stopwatch)
            figures, bounds = form_figures(met, self.frozen.labels)
            length, taken = sum(map(len, streams)), stopwatch.seconds()
            figures["ms"], bounds["ms"] = round(1e3 * taken / length, 4), None
            metrics |= {f"{form}.{name}": figure for name, figure in figures.items()}
            interval |= {f"{form}.{name}": bound for name, bound in bounds.items()}
            seconds, steps = seconds + taken, steps + length
        return {
            "metrics": metrics,
            "interval": interval,
            "streams": sum(map(len, self.frozen.streams.values())),
            "tokens": steps,
            "us_per_token": round(1e6 * seconds / steps, 2),
            "curve": [],
            "traces": [],
            "parameters": parameters(ready),
        }


TASK = AdaptTask
