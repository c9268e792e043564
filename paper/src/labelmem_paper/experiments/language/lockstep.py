"""Any online method of the library on running text, word by word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labelmem import Adapter, Combiner
from labelmem_paper.experiments.language.answer import Answer
from labelmem_paper.experiments.language.laps import Laps
from labelmem_paper.experiments.language.pieces import AT_ONCE
from labelmem_paper.methods.fit_text import side_by_side

__all__ = ["Lockstep"]


@dataclass(frozen=True)
class Lockstep:
    """An adapter whose streams predict and observe one word after another."""

    adapter: Adapter
    opening: int
    """The input before the first word."""

    @property
    def modules(self) -> list[nn.Module]:
        """What holds its trained numbers."""
        combiner = self.adapter.combiner
        more = [combiner] if isinstance(combiner, Combiner) else []
        return [self.adapter.backbone.model, *more]

    @torch.no_grad()
    def read(self, text: Tensor, streams: int, laps: Laps | None = None) -> Iterator[Answer]:
        """Answers for a text (T,) in parallel streams, piece by piece."""
        laps = laps or Laps()
        x, y = side_by_side(text, streams, self.opening)
        batch = self.adapter.streams(streams)
        steps = max(1, AT_ONCE // streams)
        for start in range(0, x.shape[1], steps):
            seen = []
            with laps.part("model and memory"):
                for t in range(start, min(start + steps, x.shape[1])):
                    seen.append(batch.predict(x[:, t]))
                    batch.observe_ids(y[:, t])
            yield Answer(y[:, start : start + steps], torch.stack(seen, 1).log())
