"""Any baseline of the package as a contender."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from labelmem.baselines import make, method
from labelmem.baselines.base import Baseline
from labelmem.baselines.label_method import LabelMethod
from labelmem.errors import UnsupportedError
from labelmem.models import SequenceModel
from labelmem.search import Point
from labelmem_paper.experiments.sequences.contender import Contender

__all__ = ["BaselineContender"]


class BaselineContender(Contender):
    """A baseline, fitted once; a trial only changes its options."""

    name: ClassVar[str]

    def model_changes(self) -> Mapping[str, Any]:
        """What its model has other than the model of the run."""
        return {}

    @cached_property
    def fitted(self) -> Baseline[Any, Any]:
        """Around the trained model where it needs one, with its defaults."""
        task, cls = self.task, method(self.name)
        made: Baseline[Any, Any]
        if issubclass(cls, LabelMethod):
            made = cls(task.labels, cls.Options(**self.options), task.device)
        else:
            made = make(self.name, self._model(), **self.options)
        try:
            made.fit(task.train)
        except UnsupportedError:  # it learns online only
            return made
        return made

    def _model(self) -> SequenceModel:
        return self.task.model({**self.task.config["model"], **self.model_changes()})

    def build(self, point: Point) -> Baseline[Any, Any]:
        """The fitted method with the options of ``point``."""
        return self.fitted.variant(**point)
