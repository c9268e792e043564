"""What happened at every step of every user, for curves and comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelmem.evaluation import Watch
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

    def __call__(self, watch: Watch) -> None:
        """Record one step; the ``watch`` of :func:`labelmem.evaluation.evaluate`."""
        rows = watch.mask.nonzero()[:, 0]
        users = [watch.order[row] for row in rows.tolist()]
        y, top = watch.y[rows], watch.probs[rows].max(dim=1)
        hit = (top.indices == y) & (top.values > 0)
        for array, values in ((self.hit, hit), (self.new, y >= self.known), (self.label, y)):
            array[users, watch.t] = values.double().cpu().numpy()
