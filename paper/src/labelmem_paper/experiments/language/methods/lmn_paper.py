"""LMN as the paper has it: h as the key, one combiner state for each of all words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from labelmem import Adapter, Combiner
from labelmem.search import Point
from labelmem_paper.experiments.language.lockstep import Lockstep
from labelmem_paper.experiments.language.method import TextMethod
from labelmem_paper.experiments.language.methods.lmn_fixed import LMNFixed
from labelmem_paper.methods.fit_text import side_by_side


class LMNPaper(LMNFixed):
    """Searched as LMN-fixed; then the combiner is trained from there.

    It is trained on the first ``words`` of the validation text, cut into streams of ``length``: a
    state for each of all words at each step is dear, so the whole text would take too long.
    """

    def finish(self, point: Point, work: Path) -> TextMethod:
        """Train the combiner, continuing from its checkpoint."""
        form: dict[str, Any] = dict(self.options.get("combiner", {}))
        adapter = Adapter(
            self.model,
            memory=self.memory(point),
            combiner=Combiner(kind="label", theta=point["theta"], seed=self.task.run.seed, **form),
        )
        training: dict[str, Any] = dict(self.task.config["combiner"])
        streams = self._streams(int(training.pop("words")), int(training.pop("length")))
        adapter.fit(
            streams,
            checkpoint=work / "combiner.safetensors",
            show=self.task.show,
            seed=self.task.run.seed,
            **training,
        )
        return Lockstep(adapter, self.task.opening)

    def _streams(self, words: int, length: int) -> list[tuple[Tensor, Tensor]]:
        text = self.task.valid[:words]
        x, y = side_by_side(text, max(2, len(text) // length), self.task.opening)
        return list(zip(x.cpu(), y.cpu(), strict=True))


CONTENDER = LMNPaper
