"""Steps of many streams on a GPU: recorded once, then repeated with no Python in between.

A step of a few hundred streams is hundreds of small operations, and starting each from Python takes
longer than the work itself. A CUDA graph starts all of them at once. It always reads and writes the
same bytes, so a recording belongs to the tensors the state consisted of: where those have moved,
because a memory grew or a step was taken without the recording, a new one is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from labelmem.fast import alone
from labelmem.lockstep_trust import on_trust
from labelmem.stepping import Places, Step, Stepping
from labelmem.trees import leaves, tree_map

__all__ = ["Graph", "RecordedLockstep", "padded"]

_KEPT = 4  # recordings; a label combiner takes turns between two
_ANY = torch.zeros(1, 1)  # one stream on a CPU, to ask whether short ways are taken at all


class Graph(Protocol):
    """Recorded work."""

    def replay(self) -> None:
        """Do it again, on the same bytes."""


@dataclass(frozen=True)
class _Recording:
    """One step: of what it is made, and where it leaves what it finds."""

    x: Any
    predict: Graph
    step: Step
    fine: Tensor
    """Whether all that was taken on trust was so."""
    y: Tensor
    mask: Tensor
    observe: Graph
    after: dict[str, Tensor]
    """What the state consists of afterwards."""


def padded(width: int, known: int) -> int:
    """The number of label columns to record for: one recording should serve many new labels.

    Examples
    --------
    >>> padded(10, known=10), padded(11, known=10), padded(100, known=10)
    (10, 74, 138)
    """
    own = width - known
    return known if own <= 0 else known + max(64, 1 << (own - 1).bit_length())


class RecordedLockstep:
    """Predicts and observes by repeating a recorded step.

    The first step is taken plainly: it makes what is made only once. A step whose recording meets
    something it took on trust and that is not so is taken plainly too, and that tells what is
    wrong, if anything is.

    Parameters
    ----------
    method, state
        What is repeated, and the streams' state.
    places
        Where that state lies; ``method.places(state)`` gives it.
    """

    def __init__(self, method: Stepping[Any], state: Any, places: Places) -> None:
        self.method, self.state, self.places = method, state, places
        self._recordings: dict[Any, _Recording] = {}
        self._pool: Any = None
        self._open: _Recording | None = None
        self._ready = False

    @torch.no_grad()
    def advance(self, x: Any, width: int) -> Step:
        """What ``method.advance`` gives; all but ``probs`` is good until the next prediction."""
        self._open = None
        if not self._ready or not alone(_ANY):
            return self.method.advance(self.state, x, width)
        wide = padded(width, len(self.method.known))
        self.places.make_room(wide)
        recording = self._recording(x, wide)
        for theirs, given in zip(leaves(recording.x), leaves(x), strict=True):
            theirs.copy_(given)
        recording.predict.replay()
        step = _narrowed(recording.step, width)
        if not bool(recording.fine):
            self._forget()
            return self.method.advance(self.state, x, width)
        self._open = recording
        return step

    @torch.no_grad()
    def commit(self, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """What ``method.commit`` does with the step that :meth:`advance` gave last."""
        if self._open is None or not _good(self._open, y, mask):
            self.method.commit(self.state, step, y, mask)
            self.places.disturbed()
            self._ready = True
            return
        recording, self._open = self._open, None
        recording.y.copy_(y)
        recording.mask.fill_(True) if mask is None else recording.mask.copy_(mask)
        recording.observe.replay()
        self.places.put(recording.after)
        self.places.wrote()

    def _recording(self, x: Any, width: int) -> _Recording:
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves(x))
        lie = tuple((t.data_ptr(), t.shape) for t in self.places.tensors().values())
        key = (width, shapes, lie)
        if key not in self._recordings:
            if len(self._recordings) >= _KEPT:
                self._forget()
            self._recordings[key] = self._recorded(x, width)
        return self._recordings[key]

    def _recorded(self, x: Any, width: int) -> _Recording:
        x = tree_map(torch.clone, x)
        y = torch.zeros(len(next(leaves(x))), dtype=torch.int64, device=self.method.device)
        mask = torch.ones_like(y, dtype=torch.bool)
        before = self.places.tensors()

        def predict() -> tuple[Step, Tensor]:
            with on_trust() as doubts:
                step = self.method.advance(self.state, x, width)
            fine = torch.stack(doubts).all() if doubts else torch.ones_like(mask[0])
            return step, fine

        def observe(step: Step) -> dict[str, Tensor]:
            with on_trust():
                self.method.commit(self.state, step, y, mask)
            after = _settled(before, self.places.tensors())
            self.places.put(before)
            return after

        # Once for real: what is made at its first use cannot be made in a recording.
        kept = {name: t.clone() for name, t in before.items()}
        observe(predict()[0])
        for name, t in before.items():
            t.copy_(kept.pop(name))
        predicted, (step, fine) = self.captured(predict)
        observed, after = self.captured(lambda: observe(step))
        return _Recording(x, predicted, step, fine, y, mask, observed, after)

    def _forget(self) -> None:
        self._recordings.clear()
        self._pool = None  # torch wants a new one once no graph has the old

    def captured(self, work: Callable[[], Any]) -> tuple[Graph, Any]:
        """Record ``work``, without doing it, and give what it will leave its results in."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graph, device = torch.cuda.CUDAGraph(), self.method.device
        # As torch.cuda.graph does, but without giving all spare memory back to the driver first.
        apart = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.cuda.device(device), torch.cuda.stream(apart):
            torch.cuda.synchronize(device)
            graph.capture_begin(self._pool, capture_error_mode="thread_local")
            try:
                result = work()
            finally:
                graph.capture_end()
        return graph, result


def _good(recording: _Recording, y: Tensor, mask: Tensor | None) -> bool:
    """Whether labels and mask are what they should be: a recording could not refuse them."""
    alike = y.shape == recording.y.shape and not y.is_floating_point()
    if mask is not None:
        alike = alike and mask.shape == recording.mask.shape and mask.dtype == torch.bool
    return alike and bool((y >= 0).all())


def _settled(before: dict[str, Tensor], after: dict[str, Tensor]) -> dict[str, Tensor]:
    """Move what is new to where the state lies; tensors that changed places are left there."""
    places = {t.data_ptr() for t in before.values() if t.numel()}
    settled = {}
    for name, old in before.items():
        new = after[name]
        if new.data_ptr() in places or not new.numel():
            settled[name] = new
        else:
            settled[name] = old.copy_(new)
    return settled


def _narrowed(step: Step, width: int) -> Step:
    """The first columns; what is given away is copied, as the recording will write there again."""
    names = ("theta", "model_probs", "memory_probs")
    dense = {name: getattr(step, name) for name in names}
    cut = {name: None if t is None else t[:, :width] for name, t in dense.items()}
    return replace(step, probs=step.probs[:, :width].clone(), **cut)
