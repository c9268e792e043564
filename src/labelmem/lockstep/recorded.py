"""Steps of many streams on a GPU: recorded once, then repeated with no Python in between.

A step of a few hundred streams is hundreds of small operations, and starting each from Python takes
longer than the work itself. A CUDA graph starts all of them at once. It always reads and writes the
same bytes, so a recording belongs to the tensors the state consisted of: where those have moved,
because a memory grew or a step was taken without the recording, a new one is made.

Nobody waits for the device, so that it always has work: what a step took on trust is looked at when
the next one has begun. A step that was not fine has changed nothing until then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labelmem.errors import InputError, LabelMemError
from labelmem.fast import allowed
from labelmem.lockstep.recording import Graph, Recording, checked, narrowed, padded, settled
from labelmem.stepping import Places, Step, Stepping
from labelmem.trees import leaves, tree_map
from labelmem.trust import Awaited, on_trust

__all__ = ["RecordedLockstep"]

_KEPT = 4  # recordings; a label combiner takes turns between two


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
        self._recordings: list[Recording] = []
        self._pool: Any = None
        self._open: Recording | None = None
        self._pending: Recording | None = None
        self._begun: tuple[Any, Recording] | None = None
        self._latest: tuple[Any, Step] | None = None  # inputs and prediction
        self._width = 0
        self._ready = False
        self._usual = True  # nothing was special about the labels before

    @torch.no_grad()
    def begin(self, x: Any) -> None:
        """Begin to predict for ``x`` before it is known how the last commit went.

        Mostly it went well, and the device has no pause. Otherwise :meth:`advance`, which must come
        next, begins again. Inputs must stay as they are until the prediction after.
        """
        self._begun = None
        if self._pending is not None and self._usual and self._allowed():
            wide = padded(self._width, len(self.method.known))
            self.places.make_room(wide)
            recording = self._found(x, wide)
            if recording is not None:
                recording.predict.replay()
                self._begun = x, recording

    @torch.no_grad()
    def advance(self, x: Any, width: int) -> Step:
        """What ``method.advance`` gives; all but ``probs`` is good until the next prediction."""
        self.settle()
        begun, self._begun = self._begun, None
        if self._open is not None and not bool(self._open.fine.all()):  # its labels never came
            self._again()
        self._open = None
        if not self._ready or not self._allowed():
            return self.method.advance(self.state, x, width)
        if begun is not None and begun[0] is x and width == self._width:
            recording = begun[1]
        else:
            wide = padded(width, len(self.method.known))
            self.places.make_room(wide)
            recording = self._found(x, wide) or self._made(x, wide)
            recording.predict.replay()
        step = narrowed(recording.step, width)
        self._open, self._width, self._latest = recording, width, (x, step)
        return step

    @torch.no_grad()
    def commit(self, step: Step, y: Tensor, mask: Tensor | None) -> bool:
        """What ``method.commit`` does with the step that :meth:`advance` gave last.

        Returns whether it was recorded; then :meth:`settle` tells later how it went.
        """
        recording = self._open
        if recording is None or not recording.tell(y, mask):
            self.method.commit(self.state, step, y, mask)
            self._open = None
            self.places.disturbed()
            self._ready = True
            return False
        self._open = None
        recording.observe.replay()
        recording.answers.asked()
        if recording.moves:
            self.places.put(recording.after)
        self.places.wrote()
        self._pending = recording
        return True

    @torch.no_grad()
    def settle(self) -> Tensor | None:
        """See how the last commit went; its labels (n,), -1 if masked, if some stream's are new.

        Raises
        ------
        LabelMemError
            What was wrong with it. Nothing was learned of that step.
        """
        if self._pending is None:
            return None
        recording, self._pending = self._pending, None
        fine, whole, known = recording.answers.come()
        self._usual = fine and whole and known
        if not (fine and whole):
            self._begun = None
        if not whole:
            raise InputError(
                "the labels that were observed last have an id below 0; expected label ids from 0. "
                "Nothing was learned of them"
            )
        if not fine:
            step = self._again()
            self.method.commit(self.state, step, recording.y, recording.mask)
            self.places.disturbed()
        return None if known else recording.y.where(recording.mask, -1)

    @torch.no_grad()
    def certain(self, step: Step) -> Step:
        """The prediction that :meth:`advance` gave last, taken plainly if it was not fine."""
        fine = self._open is None or bool(self._open.fine.all())
        if not fine:
            step, self._open = self._again(), None
        return step

    def _again(self) -> Step:
        """The prediction before, taken plainly since it was not fine; says what was wrong."""
        assert self._latest is not None
        x, given = self._latest
        self._forget()
        try:
            step = self.method.advance(self.state, x, self._width)
        except LabelMemError as error:
            error.add_note("This concerns the prediction before the latest call.")
            raise
        if not torch.allclose(step.probs, given.probs, rtol=0, atol=1e-4):
            raise InputError(
                "the prediction before was of inputs that its recording had made no room for, such "
                "as tokens beyond those that Key.prepare was told of; predict it once more"
            )
        return step

    def _allowed(self) -> bool:
        return allowed() and self.places.usable()

    def _found(self, x: Any, width: int) -> Recording | None:
        """A recording that can be repeated for ``x``, which is put where it looks for it."""
        inputs, held = list(leaves(x)), list(self.places.tensors().values())
        for recording in self._recordings:
            if recording.fits(inputs, width, held):
                recording.take(inputs)
                return recording
        return None

    def _made(self, x: Any, width: int) -> Recording:
        """A new recording, for ``x``."""
        if len(self._recordings) >= _KEPT:
            self._forget()
        x = tree_map(torch.clone, x)
        y = torch.zeros(len(next(leaves(x))), dtype=torch.int64, device=self.method.device)
        mask = torch.ones_like(y, dtype=torch.bool)
        before, known = self.places.tensors(), len(self.method.known)
        awaited = Awaited(3, self.method.device)

        def predict() -> tuple[Step, Tensor]:
            with on_trust() as doubts:
                step = self.method.advance(self.state, x, width)
            if len(doubts) > 1:
                return step, torch.stack(doubts)
            return step, doubts[0].view(1) if doubts else torch.ones_like(mask[:1])

        def observe(step: Step, fine: Tensor) -> dict[str, Tensor]:
            answers, labels, seen = checked(fine, y, mask, known, width)
            with on_trust(ask=False):  # all of it is in the answers
                awaited.ask(answers)
                self.method.commit(self.state, step, labels, seen)
            after = settled(before, self.places.tensors())
            self.places.put(before)
            return after

        # Once for real: what is made at its first use cannot be made in a recording.
        kept = {name: t.clone() for name, t in before.items()}
        observe(*predict())
        for name, t in before.items():
            t.copy_(kept.pop(name))
        predicted, (step, fine) = self.captured(predict)
        observed, after = self.captured(lambda: observe(step, fine))
        own = (x, width, predicted, step, fine, y, mask, awaited, observed, before, after)
        self._recordings.append(Recording(*own))
        return self._recordings[-1]

    def _forget(self) -> None:
        if self._recordings and self.method.device.type == "cuda":
            torch.cuda.synchronize(self.method.device)  # one may still be at work
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
