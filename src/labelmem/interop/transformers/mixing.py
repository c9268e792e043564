"""The memory inside ``generate``: a logits processor that never writes."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor

from labelmem.combiner import Combiner, CombinerState, View
from labelmem.errors import InputError, UnsupportedError
from labelmem.interop.transformers.head import HeadAdapter, HeadInput
from labelmem.lmn import LMNState, LMNStep

__all__ = ["MemoryProcessor"]


@dataclass(frozen=True)
class _Asked:
    """A step that was asked for: the tokens before it, and all that its successors need."""

    ids: Tensor
    step: LMNStep
    combiner: CombinerState | None


class MemoryProcessor(LogitsProcessor):
    """Replaces the model's logits by the log-probabilities of model and memory together.

    What is generated is a guess, so the memory is only read. A combiner's state does move on with
    the guesses, since its theta depends on how the latest tokens were predicted. It goes with them:
    a row takes up the state of the row that its tokens come from, whichever place a beam search put
    that at, and all of it is dropped in the end.

    Rows whose memory is empty or has no weight pass as they came, bit for bit. Tokens that other
    processors have forbidden stay forbidden.

    Made by :meth:`TextStreams.mixing`, for one call of ``generate``.

    Parameters
    ----------
    adapter
        What mixes.
    state
        Of n streams; rows of the logits are n groups of equal size.
    seen
        Where the h of each pass of the model comes from.
    in_order
        Whether a pass computes just the logits that are asked for, one position after another.
    assisted
        Whether ``generate`` also puts the processor to the logits of an assistant. They pass as
        they came: the assistant has no memory, what it proposes is checked by the model.
    """

    def __init__(
        self,
        adapter: HeadAdapter,
        state: LMNState,
        seen: HeadInput,
        in_order: bool,
        assisted: bool = False,
    ) -> None:
        if assisted and not in_order:
            raise UnsupportedError(
                "the model does not take logits_to_keep, so that assisted generation is not "
                "supported with a memory; leave the assistant out"
            )
        self._assisted = assisted
        self.adapter, self._seen, self._in_order = adapter, seen, in_order
        self._begun, self._streams = state, state.memory.streams
        self._rows: LMNState = state
        self._asked: dict[int, _Asked] = {}  # by length; guesses of one pass may be taken back

    @torch.no_grad()
    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores (rows, V) for the token after each row of ``input_ids``."""
        if self._assisted and not self._seen.waiting:
            return scores
        first_of_pass = self._seen.used == 0
        h = self._seen.next(self._in_order)
        self._make_rows(len(scores))
        length = input_ids.shape[1]
        if first_of_pass:  # what came before its parent can no longer be taken back
            self._asked = {k: asked for k, asked in self._asked.items() if k == length - 1}
        rows = self._rows
        state = LMNState(rows.memory, self._followed(input_ids), rows.recurrent, rows.form)
        step = self.adapter.combine(state, h, h, scores, scores.shape[1])
        assert step.theta is not None and step.memory_probs is not None
        if state.combiner is not None:
            self._asked[length] = _Asked(input_ids.clone(), step, state.combiner)
        says = (step.theta * step.memory_probs > 0).any(dim=1, keepdim=True)
        mixed = step.probs.log().to(scores.dtype).masked_fill(scores == -torch.inf, -torch.inf)
        return torch.where(says, mixed, scores)

    def _make_rows(self, rows: int) -> None:
        """As many copies of each stream as there are rows for it."""
        if rows == self._rows.memory.streams:
            return
        each, rest = divmod(rows, self._streams)
        if rest or not each:
            raise InputError(
                f"generate runs {rows} rows for {self._streams} streams; expected as many prompts "
                "as there are streams"
            )
        saved = self.adapter.tensors(self._begun)
        copies = {name: tensor.repeat_interleave(each, dim=0) for name, tensor in saved.items()}
        self._rows = self.adapter.restore(copies, rows)

    def _followed(self, ids: Tensor) -> CombinerState | None:
        """The combiner's state once the last token of each row counts as observed."""
        combiner = self.adapter.combiner
        before = self._asked.get(ids.shape[1] - 1)
        if not isinstance(combiner, Combiner) or before is None or before.combiner is None:
            return self._rows.combiner
        parents = self._parents(before.ids, ids[:, :-1])
        step, state = _taken(before.step, parents), _taken(before.combiner, parents)
        view = View(step.h, step.model_probs, step.memory_probs, step.read)
        return combiner.observe(state, step.combined, view, ids[:, -1], None)

    def _parents(self, before: Tensor, now: Tensor) -> Tensor:
        """For each row the row it goes on from: the one of its stream with the same tokens."""
        rows, length = now.shape
        groups = (self._streams, rows // self._streams, length)
        same = (now.view(groups)[:, :, None] == before.view(groups)[:, None]).all(dim=-1)
        place = same.to(torch.int8).argmax(dim=-1)
        return (place + torch.arange(self._streams, device=now.device)[:, None] * groups[1]).view(
            -1
        )


def _taken(x: Any, rows: Tensor) -> Any:
    """The given rows of all tensors in a dataclass, and in those inside it."""
    if isinstance(x, Tensor):
        return x[rows]
    if is_dataclass(x) and not isinstance(x, type):
        return replace(x, **{f.name: _taken(getattr(x, f.name), rows) for f in fields(x)})
    return x
