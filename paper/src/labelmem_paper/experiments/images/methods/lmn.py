"""LMN: a combiner that was trained to recall labels, however often they came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelmem import Adapter
from labelmem.combiner import StreamCombiner
from labelmem.errors import ConfigError
from labelmem.search import Point
from labelmem_paper.experiments.images.fit_last import LastOptions, Part, fit_last
from labelmem_paper.experiments.images.methods.lmn_paper import LMNPaper
from labelmem_paper.experiments.images.recalls import draw_recalls
from labelmem_paper.experiments.images.world import Stream, World


class LMN(LMNPaper):
    """As in the paper, but for what the combiner learns from.

    What counts in the table is whether labels are recognised that came before, so it learns to do
    that; but not from sequences like those of the test, in which every label comes exactly twice.
    """

    def train(
        self, adapter: Adapter, point: Point, training: dict[str, Any], checkpoint: Path
    ) -> None:
        """On the last step of sequences in which nothing is won by counting."""
        combiner = adapter.combiner
        if not isinstance(combiner, StreamCombiner):
            raise ConfigError("the combiner must be of kind 'stream'")
        parts = [
            part
            for number, world in enumerate(self.worlds, start=1)
            for part in self._parts(combiner, point, world, number)
        ]
        valid = self._parts(combiner, point, self.task.valid, 0)
        options = LastOptions(seed=self.task.run.seed, **training)
        fit_last(combiner, parts, valid, options, checkpoint, self.task.show)

    def _parts(
        self, combiner: StreamCombiner, point: Point, world: World, number: int
    ) -> list[Part]:
        """Lessons of a world, in half of which strange labels have no output: both occur in use."""
        lessons = self.lessons(world, number)
        return [
            (self.with_combiner(combiner, point, world), lessons[::2]),
            (self.with_combiner(combiner, point, world.muted()), lessons[1::2]),
        ]

    def lessons(self, world: World, number: int) -> list[Stream]:
        """Sequences of two steps up to those of the test, of pictures new to a world's network."""
        config = self.task.config
        lengths = range(2, 2 * config["shown"] + 1)
        streams: list[Stream] = []
        for steps in lengths:
            drawn = draw_recalls(
                world.shown,
                ~world.known,
                share=config["new"] / self.task.labels,
                fresh=self.options.get("fresh", 0.0),
                count=-(-config["sequences"]["lessons"] // len(lengths)),
                steps=steps,
                seed=100_000 * (self.task.run.seed + 1) + 100 * number + steps,
            )
            streams += world.streams(self.sees, drawn)
        return streams


CONTENDER = LMN
