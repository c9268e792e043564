"""What a label combiner remembers of one stream on a CPU, where most labels drift together.

The kernels are in :mod:`labelmem.compiled.label_drift`, which says why; who looks at the states
gets those of :class:`LabelState`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Self

import numpy as np
from torch import Tensor

from labelmem.combining import CombinerState, CombinerStep
from labelmem.fast import Array, array, tensor
from labelmem.label_combiner.state import LabelState

__all__ = ["DriftState", "DriftStep", "kernels", "settled"]

_MOST = 8.0
"""How far labels may come that began near the background, over what near means."""

Weights = Mapping[str, Array]
"""Those of the combiner, by name."""


@cache
def kernels() -> Any:
    """:mod:`labelmem.compiled.label_drift`, imported when the first stream takes a step."""
    return import_module("labelmem.compiled.label_drift")


@dataclass(frozen=True)
class DriftState(CombinerState):
    """Committed state of one stream over W labels."""

    limit: Array
    """(2,) what counted as near when states were last written down."""
    origin: Array
    """(hidden,) the background then."""
    base: Array
    """(hidden, W) the states of labels then."""
    seen: Array
    """(rows, W) r of the steps since, the first ``count`` of them; later states share the room."""
    count: int
    path: Array
    """(1 + hidden + rows, hidden) the background, and how all that is near it has moved."""
    far: Array
    """(F,) labels with states of their own."""
    far_mu: Array
    """(hidden, F)."""
    far_scores: Array
    """(2, F) their r and s one step ago."""
    s: Array
    """(W,) s one step ago."""
    missed: Array
    """(2,)."""

    @classmethod
    def begin(cls, weights: Weights, state: LabelState) -> Self:
        """From states of one stream that are written down, every label with a slot of its own."""
        mu = array(state.mu)[0].T
        base = np.ascontiguousarray(mu[:, 1:])
        r, s = (np.ascontiguousarray(array(x)[0, 1:]) for x in (state.r, state.s))
        missed = array(state.missed)[0]
        return cls._from(weights, mu[:, 0].copy(), base, r, s, np.flatnonzero(s), missed)

    @classmethod
    def _from(
        cls,
        weights: Weights,
        background: Array,
        base: Array,
        r: Array,
        s: Array,
        names: Array,
        missed: Array,
    ) -> Self:
        k, wide = base.shape
        rows = kernels().ROWS
        path, seen = np.empty((1 + k + rows, k), np.float32), np.empty((rows, wide), np.float32)
        kernels().start_path(background, path)
        limit = kernels().limits(weights["weight_mu"], weights["weight_scores"])
        far, far_mu = kernels().drift_apart(limit, background, base)
        given = (limit, r, s, names, background, base, seen, 0)
        far, far_mu, scores = kernels().remember(*given, path, far, far_mu)
        now = (path, far, far_mu, scores, s, missed)
        return cls(limit, background, base, seen, 1, *now)

    def holds(self, weights: Weights, width: int) -> bool:
        """Whether it knows so many labels, and what is near is so with these weights too."""
        given = (weights["weight_mu"], weights["weight_scores"], self.limit)
        return self.base.shape[1] >= width and not kernels().stricter(*given)

    def after(self, step: DriftStep, r: Array, s: Array, names: Array, y: int) -> DriftState:
        """What is remembered of a step once its label is known.

        Parameters
        ----------
        r, s
            (W,) scores of model and memory.
        names
            Labels with an s above 0, and maybe others.
        """
        missed = kernels().missed_by(r, s, y)
        more = self.base.shape[1] - len(r)
        if more:  # labels that joined since the prediction have no scores
            r, s = (np.pad(scores, (0, more)) for scores in (r, s))
        if self.count == len(self.seen) or step.reach > _MOST:
            background, base = step.path[0].copy(), self._states(step.path, step.far_mu, self.count)
            return self._from(step.weights, background, base, r, s, names, missed)
        kept = (self.origin, self.base, self.seen)
        given = (self.limit, r, s, names, *kept, self.count)
        far, far_mu, scores = kernels().remember(*given, step.path, self.far, step.far_mu)
        now = (step.path, far, far_mu, scores, s, missed)
        return DriftState(self.limit, *kept, self.count + 1, *now)

    def settled(self) -> LabelState:
        """The same with all states written down."""
        mu = self.states(self.path, self.far_mu, self.count - 1)
        r, s = (tensor(np.pad(x, (1, 0))) for x in (self.seen[self.count - 1], self.s))
        return LabelState(mu, r, s, tensor(self.missed))

    def states(self, path: Array, far_mu: Array, entered: int) -> Tensor:
        """(1, 1 + W, hidden) after as many r have ``entered`` on this path."""
        mu = self._states(path, far_mu, entered)
        return tensor(np.concatenate([path[:1].T, mu], axis=1).T)

    def _states(self, path: Array, far_mu: Array, entered: int) -> Array:
        mu = np.empty_like(self.base)
        given = (self.origin, self.base, self.seen[:entered], path, self.far, far_mu)
        kernels().drift_states(*given, mu)
        return mu

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved."""
        return self.settled().tensors()

    def detach(self) -> LabelState:  # type: ignore[override]
        """Nothing here has a gradient."""
        return self.settled()


class DriftStep(CombinerStep):
    """A step not yet committed, its states not written down."""

    weight: Array
    """(W,) theta."""
    weights: Weights
    drift: DriftState
    path: Array
    far_mu: Array
    reach: float
    """How far labels may have come that were near all the time, over what near means."""

    def __init__(
        self,
        weight: Array,
        weights: Weights,
        drift: DriftState,
        path: Array,
        far_mu: Array,
        reach: float,
    ) -> None:
        own = vars(self)  # what is frozen cannot be set otherwise
        own["weight"], own["weights"], own["drift"] = weight, weights, drift
        own["path"], own["far_mu"], own["reach"], own["s"] = path, far_mu, reach, None

    @cached_property
    def theta(self) -> Tensor:
        """The memory's weight for every label."""
        return tensor(self.weight)

    @cached_property
    def mu(self) -> Tensor:
        """The states that would become current, for who looks at them."""
        return self.drift.states(self.path, self.far_mu, self.drift.count)


def settled(state: CombinerState | None) -> LabelState:
    """A label combiner's state with all states written down."""
    if isinstance(state, DriftState):
        return state.settled()
    assert isinstance(state, LabelState)
    return state
