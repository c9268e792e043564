"""LMN: a combiner that was trained in rehearsals decides how far to trust the memory."""

from __future__ import annotations

from pathlib import Path

from labelmem import Adapter, Combiner
from labelmem.online import Recorded
from labelmem.search import Point
from labelmem_paper.experiments.adapt.contender import AdaptContender
from labelmem_paper.experiments.adapt.frozen import FrozenTask


class LMN(AdaptContender):
    """The defaults of the paper's form, with a trained combiner; the memory begins empty.

    The combiner learns in some rehearsals and is judged in another one, whose heads it was not
    trained beside; then it is taken to the task.
    """

    def build(self, point: Point, frozen: FrozenTask) -> Adapter:
        """Untrained."""
        return Adapter(frozen.head(), combiner=Combiner(seed=self.task.run.seed))

    def finish(self, point: Point, work: Path) -> Adapter:
        """Train the combiner, continuing from its checkpoint."""
        learner = self.build(point, self.task.first_rehearsal)
        parts = [self.task.rehearsal(i) for i in range(1, 1 + self.task.config["rehearsals"])]
        learner.fit(
            [],
            validation=_recorded(self.task.first_rehearsal),
            others=[(part.head(), _recorded(part)) for part in parts],
            checkpoint=work / "combiner.safetensors",
            show=self.task.show,
            seed=self.task.run.seed,
            **self.task.config["combiner"],
        )
        return Adapter(self.task.frozen.head(), combiner=learner.combiner)


def _recorded(task: FrozenTask) -> list[Recorded]:
    return [(stream.h, stream.y) for stream in task.streams["rehearsal"]]


CONTENDER = LMN
