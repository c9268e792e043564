"""Steps of many streams on a GPU: recorded once, then repeated with no Python in between.

A step of a few hundred streams is hundreds of small operations, and starting each from Python takes
longer than the work itself. A CUDA graph starts all of them at once. It always reads and writes the
same bytes, so a recording belongs to the tensors the state consisted of: where those have moved,
because a memory grew or a step was taken without the recording, a new one is made.

Nobody waits for the device, so that it always has work: what a step took on trust is looked at when
the next one begins. A step that was not fine has changed nothing until then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from labelmem.errors import InputError, LabelMemError
from labelmem.fast import alone
from labelmem.lockstep_trust import Awaited, on_trust
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
    check: Graph
    answers: Tensor
    """Whether the prediction was fine, no id is below 0, and no label is a stream's own."""
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

    The first step is taken plainly: it makes what is made only once. A step whose recording met
    something it took on trust and that was not so is taken plainly too, once that is known, and
    that tells what is wrong, if anything is.

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
        self._pending: _Recording | None = None
        self._awaited: Awaited | None = None
        self._width = 0
        self._ready = False

    @torch.no_grad()
    def advance(self, x: Any, width: int) -> Step:
        """What ``method.advance`` gives; all but ``probs`` is good until the next prediction."""
        self.settle()
        if self._open is not None and not bool(self._open.fine):  # its labels never came
            self._again(self._open)
        self._open = None
        if not self._ready or not alone(_ANY):
            return self.method.advance(self.state, x, width)
        wide = padded(width, len(self.method.known))
        self.places.make_room(wide)
        recording = self._recording(x, wide)
        for theirs, given in zip(leaves(recording.x), leaves(x), strict=True):
            theirs.copy_(given)
        recording.predict.replay()
        self._open, self._width = recording, width
        return _narrowed(recording.step, width)

    @torch.no_grad()
    def commit(self, step: Step, y: Tensor, mask: Tensor | None) -> bool:
        """What ``method.commit`` does with the step that :meth:`advance` gave last.

        Returns whether it was recorded; then :meth:`settle` tells later how it went.
        """
        if self._open is None or not _good(self._open, y, mask):
            self.method.commit(self.state, step, y, mask)
            self._open = None
            self.places.disturbed()
            self._ready = True
            return False
        recording, self._open = self._open, None
        recording.y.copy_(y)
        recording.mask.fill_(True) if mask is None else recording.mask.copy_(mask)
        recording.check.replay()
        # Asked for before the work that follows, so that the answers come while it is done.
        if self._awaited is None:
            self._awaited = Awaited(recording.answers)
        self._awaited.ask(recording.answers)
        recording.observe.replay()
        self.places.put(recording.after)
        self.places.wrote()
        self._pending = recording
        return True

    @torch.no_grad()
    def settle(self) -> Tensor | None:
        """See how the last commit went; its labels (n,), 0 if masked, if some stream's are new.

        Raises
        ------
        LabelMemError
            What was wrong with it. Nothing was learned of that step.
        """
        if self._pending is None or self._awaited is None:
            return None
        recording, self._pending = self._pending, None
        fine, whole, known = self._awaited.answers()
        if not whole:
            raise InputError(
                "the labels that were observed last have an id below 0; expected label ids from 0. "
                "Nothing was learned of them"
            )
        if not fine:
            step = self._again(recording)
            self.method.commit(self.state, step, recording.y, recording.mask)
            self.places.disturbed()
        return None if known else recording.y.where(recording.mask, 0)

    def _again(self, recording: _Recording) -> Step:
        """The prediction before, taken plainly since it was not fine; says what was wrong."""
        self._forget()
        try:
            step = self.method.advance(self.state, recording.x, self._width)
        except LabelMemError as error:
            error.add_note("This concerns the prediction before the latest call.")
            raise
        given = recording.step.probs[:, : self._width]
        if not torch.allclose(step.probs, given, rtol=0, atol=1e-4):
            raise InputError(
                "the prediction before was of inputs that its recording had made no room for, such "
                "as tokens beyond those that Key.prepare was told of; predict it once more"
            )
        return step

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

        def check(fine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            whole = (y >= 0).all()
            known = ((y < len(self.method.known)) | ~mask).all()
            # A step that was not fine must leave all streams as they are.
            return torch.stack([fine, whole, known]), y.clamp(min=0), mask & fine & whole

        def observe(step: Step, labels: Tensor, seen: Tensor) -> dict[str, Tensor]:
            with on_trust(ask=False):  # all of it is in the answers of the check
                self.method.commit(self.state, step, labels, seen)
            after = _settled(before, self.places.tensors())
            self.places.put(before)
            return after

        # Once for real: what is made at its first use cannot be made in a recording.
        kept = {name: t.clone() for name, t in before.items()}
        step, fine = predict()
        observe(step, *check(fine)[1:])
        for name, t in before.items():
            t.copy_(kept.pop(name))
        predicted, (step, fine) = self.captured(predict)
        checked, (answers, *learned) = self.captured(lambda: check(fine))
        observed, after = self.captured(lambda: observe(step, *learned))
        return _Recording(x, predicted, step, fine, y, mask, checked, answers, observed, after)

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
    """Whether labels and mask have the form that they should: a recording could not refuse them."""
    alike = y.shape == recording.y.shape and not y.is_floating_point()
    if mask is not None:
        alike = alike and mask.shape == recording.mask.shape and mask.dtype == torch.bool
    return alike


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
