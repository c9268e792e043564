"""What happened at every step of every user, for curves and comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from labelmem.evaluation import Watch
from labelmem.lmn import LMNStep
from labelmem.online import Recorded

__all__ = ["Trace"]

Array = npt.NDArray[np.float64]


class Trace:
    """Arrays (users, steps), nan where a user's stream is over; filled while a method runs.

    Parameters
    ----------
    sequences
        The streams that are going to be run.
    known
        How many labels the model knows.
    """

    def __init__(self, sequences: Sequence[Recorded], known: int) -> None:
        shape = (len(sequences), max(len(y) for _, y in sequences))
        self.known = known
        self.hit: Array = np.full(shape, np.nan)
        """1 where the most probable label was the true one, else 0."""
        self.new: Array = np.full(shape, np.nan)
        """1 where the true label is one that the model does not know, else 0."""
        self.label: Array = np.full(shape, np.nan)
        """The true label's number within its stream."""
        self.theta: Array = np.full(shape, np.nan)
        """The memory's weight for the predicted label."""
        self.cells: Array = np.full(shape, np.nan)
        """Cells in memory before the step."""

    def __call__(self, watch: Watch) -> None:
        """Take down one step; the ``watch`` of :func:`labelmem.evaluation.evaluate`."""
        rows = watch.mask.nonzero()[:, 0]
        users = [watch.order[row] for row in rows.tolist()]
        y = watch.y[rows]
        best = watch.probs[rows].argmax(dim=1)
        seen = watch.probs[rows].amax(dim=1) > 0
        self._put(self.hit, users, watch.t, (best == y) & seen)
        self._put(self.new, users, watch.t, y >= self.known)
        self._put(self.label, users, watch.t, y)
        step = watch.batch.last
        if isinstance(step, LMNStep) and step.theta is not None and step.read is not None:
            theta = step.theta[rows].gather(1, best[:, None])[:, 0]
            self._put(self.theta, users, watch.t, theta)
            self._put(self.cells, users, watch.t, (step.read.label[rows] >= 0).sum(dim=1))

    @staticmethod
    def _put(array: Array, users: list[int], t: int, values: Tensor) -> None:
        array[users, t] = values.double().cpu().numpy()
