"""Methods on running text as contenders."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

from labelmem.errors import ConfigError
from labelmem.search import Point
from labelmem_paper.experiments.contender import TaskContender
from labelmem_paper.experiments.language.method import TextMethod
from labelmem_paper.experiments.language.task import LanguageTask
from labelmem_paper.methods.text_lstm import TextLSTM

__all__ = ["LanguageContender"]


class LanguageContender(TaskContender[LanguageTask, TextMethod]):
    """A method on running text, searched on the validation text."""

    @abstractmethod
    def build(self, point: Point) -> TextMethod:
        """The method with these hyper-parameters."""

    @cached_property
    def model(self) -> TextLSTM:
        """The trained model of the run."""
        return self.task.model()

    @property
    def cells(self) -> int:
        """The size of the memory, which the table must name."""
        memory: dict[str, Any] = self.options.get("memory", {})
        if "capacity" not in memory:
            raise ConfigError(
                f"{type(self).__name__} has options {self.options}; expected memory.capacity"
            )
        return int(memory["capacity"])

    def loss(self, point: Point) -> float:
        """Nats per word of the validation text."""
        return self.task.validation_loss(self.build(point))

    def finish(self, point: Point, work: Path) -> TextMethod:
        """As it was searched, where nothing is trained beside."""
        return self.build(point)
