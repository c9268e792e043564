"""All that kernels need to know of an LMN to take the steps of one stream."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor

from labelmem.backbone import Hooks
from labelmem.engines.numba.combiner import cells_of, weights_of
from labelmem.engines.numba.encode import HistoryArrays, TokenArrays, encode
from labelmem.engines.numba.stream import remember, stream_step
from labelmem.keys import Key
from labelmem.lmn import LMN
from labelmem.stream_combiner import StreamCombiner

__all__ = ["Parts", "parts_of"]


class Parts:
    """Model, key and combiner as arrays over their bytes, and whether they still are there."""

    encode = staticmethod(encode)
    stream_step = staticmethod(stream_step)
    remember = staticmethod(remember)
    cells_of = staticmethod(cells_of)

    def __init__(
        self, method: LMN, combiner: StreamCombiner, model: HistoryArrays, key: TokenArrays
    ) -> None:
        self.model, self.key, self.weights = model, key, weights_of(combiner)
        self.combiner, self.dim = combiner, model.table.shape[1]
        self.labels, self.hidden = len(model.table), combiner.hidden
        self.sees_h, self.correct = combiner.sees_h, combiner.correct
        self._method, self._key = method, method.key
        self._whole = whole = method.backbone.model
        parts = (whole, *whole.children())
        self._hooks = [hooks for m in parts for hooks in (m._forward_hooks, m._forward_pre_hooks)]
        owners = (*parts, combiner, combiner.gru)
        kept = [held for m in owners for held in (m._parameters, m._buffers) if held]
        self._kept = cast(list[dict[str, Tensor | None]], kept)
        self._stamp = self._seen()

    def __reduce__(self) -> Any:
        """In copies the bytes lie elsewhere."""
        return parts_of, (self._method,)

    def length(self, before: int) -> int:
        """Of a key, with so many tokens before the present one."""
        key = self.key
        tokens = before + 2 if key.pair else before + 1
        width: int = tokens * key.directions.shape[1]
        return width + self.dim if key.share else width

    def current(self) -> bool:
        """Whether the method is as it was; training changes weights in place."""
        method = self._method
        return (
            method.key is self._key
            and method._combiner is self.combiner
            and method._kernel is None
            and not method.backbone.closed
            and self._stamp == self._seen()
        )

    def _seen(self) -> list[int]:
        """Where the weights lie, whether they are trained, and who wants to see the model run."""
        found = [x.data_ptr() for held in self._kept for x in held.values() if x is not None]
        return [*found, *map(len, self._hooks), self._whole.training, self.combiner.training]


def parts_of(method: LMN) -> Parts | None:
    """The parts of a method, if kernels can take all of its steps."""
    model, key, combiner = method.backbone.model, method.key, method.combiner
    if not isinstance(combiner, StreamCombiner) or combiner.training or not isinstance(key, Key):
        return None
    offered = getattr(model, "for_kernels", None)
    if offered is None or method.backbone.closed or Hooks(model.modules()).of_user():
        return None
    if method.backbone.head is not getattr(model, "head", None):
        return None
    if method._kernel is not None:
        return None
    seen: HistoryArrays | None = offered()
    if seen is None or combiner.theta_outer.dtype != method.dtype:
        return None
    tokens = key.for_kernels(len(seen.table) + 1)  # the labels, and the start of a stream
    return None if tokens is None else Parts(method, combiner, seen, tokens)
