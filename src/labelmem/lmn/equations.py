"""What a labeled memory network finds in a step, Eq. 1 to 5, and what it learns from it.

The equations themselves are in :mod:`labelmem.functional`, Eq. 4 is in the combiners. Where there
is a shorter way to the same result it is asked for first: :mod:`labelmem.lmn.ways`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from labelmem import functional as F
from labelmem.around import AroundModel
from labelmem.combiner import Combiner, CombinerStep, View
from labelmem.engines.triton import fused
from labelmem.errors import InputError, UnsupportedError
from labelmem.kernel import Kernel
from labelmem.keys import Key
from labelmem.lmn import ways
from labelmem.lmn.state import LMNState, LMNStep, Recurrent
from labelmem.logit_memory import LogitMemory, LogitState
from labelmem.memory import LabeledMemory, MemoryRead

__all__ = ["Equations"]


class Equations(AroundModel):
    """Model, memory, combiner and mixture: what a step finds, and what is learned from it."""

    combiner: Any
    key: Key | Callable[[Any, Tensor], Tensor] | None
    partition: bool
    _form: Any
    online: LogitMemory | None = None
    """The default form, where there is no combiner."""
    _kernel: Kernel | None = None
    """Lam and delta while they are trained."""

    def encode(
        self, x: Any, recurrent: Recurrent, streams: int
    ) -> tuple[Tensor, Tensor, Tensor | None, Recurrent]:
        """Inputs as h (n, d), memory key, logits and the next recurrent states."""
        h, logits, model = self.backbone.run(x, recurrent[0], streams)
        if not ways.softmax_checks(logits):
            self.backbone.check_finite(h, logits)
        if self.key is None:
            return h, h, logits, (model, None)
        if isinstance(self.key, Key):
            key, remembered = self.key(x, h, recurrent[1])
        else:
            key, remembered = self.key(x, h), None
        if key.ndim != 2 or len(key) != streams or not F.finite(key):
            raise InputError(
                f"the key came out with shape {tuple(key.shape)}, or NaN or infinite; expected "
                f"({streams}, d), every value finite"
            )
        return h, key, logits, (model, remembered)

    def combine(
        self,
        state: LMNState,
        h: Tensor,
        key: Tensor,
        logits: Tensor | None,
        width: int,
        x: Any = None,
        recurrent: Recurrent = (None, None),
    ) -> LMNStep:
        """Everything after the model: Eq. 1 to 5. Pure, and differentiable in the combiner.

        ``x`` and ``recurrent``, the inputs and the next states of model and key, are passed on.
        """
        self.check_form(state)
        if logits is None:  # few-shot: the memory alone
            read = self._read(state.memory, key)
            s = read.spread(read.score, width)
            return LMNStep(x, s, memory_probs=s, key=key, read=read, recurrent=recurrent)
        width = max(width, logits.shape[1])
        read = self._read(state.memory, key)  # Eq. 2, and Eq. 3 of the labels in memory
        if ways.compiles(self.combiner, read, logits):
            given = (h, logits, read, self.partition, width)
            told, combined = ways.combine_compiled(self.combiner, state.combiner, *given)
            P, theta, r, s = told
            return LMNStep(x, P, theta, r, s, h, key, read, combined, recurrent)
        r = self._model_score(logits, width)  # Eq. 1
        s = self._memory_score(read, width)  # Eq. 3
        theta, s, combined = self._weigh(state, View(h, r, s, read))  # Eq. 4
        P, highest = self._mix(r, s, theta)  # Eq. 5
        return LMNStep(x, P, theta, r, s, h, key, read, combined, recurrent, highest)

    def _model_score(self, logits: Tensor, width: int) -> Tensor:
        """Eq. 1, with zeros for the labels that are the streams' own."""
        if ways.scored_by_kernel(logits):
            return ways.model_score_many(logits, width)
        r, own = F.model_score(logits), width - logits.shape[1]
        return pad(r, (0, own)) if own else r

    def _read(self, memory: LabeledMemory, key: Tensor) -> MemoryRead:
        """Eq. 2 and 3, of the labels in memory."""
        return memory.read(key) if self._kernel is None else memory.read(key, *self._kernel())

    def _memory_score(self, read: MemoryRead, width: int) -> Tensor:
        """Eq. 3 of all labels; of none if the combiner has an s of its own."""
        if isinstance(self.combiner, Combiner) and self.combiner.gives_s:
            return read.score.new_empty(0, 0)
        return read.spread(read.score, width)

    def _weigh(self, state: LMNState, view: View) -> tuple[Tensor, Tensor, CombinerStep | None]:
        """Eq. 4: theta, and s as the combiner leaves it."""
        if not isinstance(self.combiner, Combiner):
            return view.r.new_full((1, 1), self.combiner).expand_as(view.r), view.s, None
        combined = self.combiner(state.combiner, view)
        return combined.theta, view.s if combined.s is None else combined.s, combined

    def _mix(self, r: Tensor, s: Tensor, theta: Tensor) -> tuple[Tensor, Tensor | None]:
        """Eq. 5; its two highest (n, 2) by a kernel."""
        learned = theta.requires_grad or s.requires_grad or r.requires_grad
        if not learned and fused(r, s, theta):
            return ways.mix_many(r, s, theta, self.partition)
        return F.mix(self.share_of_model(r, s), s, theta), None

    def share_of_model(self, r: Tensor, s: Tensor) -> Tensor:
        """What of r is mixed: all of it, or the labels outside of memory."""
        return F.outside(r, s) if self.partition else r

    def learn(self, state: LMNState, step: LMNStep, y: Tensor, mask: Tensor | None) -> None:
        """Move the combiner on (keeping its graph) and write where the margin says so."""
        self.check_form(state)
        assert step.key is not None
        observed = state.combiner
        if isinstance(self.combiner, Combiner) and observed is not None:
            assert step.combined is not None
            observed = self.combiner.observe(observed, step.combined, step.view(), y, mask)
        state.memory.write(step.key, y, step.probs, mask, step.highest)
        state.combiner = observed  # last: a write that is refused leaves the streams as they were

    def check_form(self, state: LMNState | LogitState) -> None:
        """Refuse a stream that began with another combiner."""
        if state.form != self._form:
            raise UnsupportedError(
                "this stream began with another combiner than the adapter has now; start a new "
                "stream, or give the adapter back the combiner it had"
            )
