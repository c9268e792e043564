"""The pointer sentinel LSTM (Merity 2016), a model of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem.search import Point
from labelmem_paper.experiments.language.answer import Answer, Recalled
from labelmem_paper.experiments.language.contender import LanguageContender
from labelmem_paper.experiments.language.laps import Laps
from labelmem_paper.experiments.language.pieces import pieces
from labelmem_paper.methods.pointer_lstm import Past, PointerLSTM


@dataclass(frozen=True)
class PointerMethod:
    """The mixture of output layer and pointer, word by word."""

    model: PointerLSTM
    opening: int

    @property
    def modules(self) -> list[nn.Module]:
        """What holds its trained numbers."""
        return [self.model]

    @torch.no_grad()
    def read(self, text: Tensor, streams: int, laps: Laps | None = None) -> Iterator[Answer]:
        """Answers for a text (T,) in parallel streams, piece by piece."""
        laps, past = laps or Laps(), None
        for piece in pieces(self.model, text, streams, self.opening, laps):
            with laps.part("memory"):
                recalled, past = self._recalled(piece.x, piece.h, past)
            yield Answer(piece.y, piece.log_r, recalled)

    def _recalled(self, x: Tensor, h: Tensor, past: Past | None) -> tuple[Recalled, Past]:
        gate, weights, words, past = self.model.point(x, h, past)
        s = weights / (1 - gate)[..., None].clamp(min=1e-12)
        # What is fed before a text that has no lines is no word: it can be pointed at in vain.
        s = torch.where(words < self.model.labels, s, torch.zeros_like(s))
        return Recalled(words.clamp(max=self.model.labels - 1), s, 1 - gate), past


class Pointer(LanguageContender):
    """Trained as the model of the run is, with a window of ``memory.capacity`` words."""

    @cached_property
    def model(self) -> PointerLSTM:
        """A model with a pointer; ``training`` may change its settings and how it is trained."""
        changes = self.options.get("training", {})
        model = self.task.model(kind="pointer", window=self.cells, **changes)
        if not isinstance(model, PointerLSTM):
            raise ConfigError(f"the model of a pointer row is a {type(model).__name__}")
        return model

    def build(self, point: Point) -> PointerMethod:
        """There is nothing to search."""
        return PointerMethod(self.model, self.task.opening)


CONTENDER = Pointer
