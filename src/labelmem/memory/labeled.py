"""The labeled memory: cells keyed by class label, written where the prediction was weak."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.config import MemoryConfig
from labelmem.memory.cells import FREE
from labelmem.memory.ways import ShortWays
from labelmem.reading import FADES, LabelPast, MemoryRead

__all__ = ["FADES", "LabelPast", "LabeledMemory", "MemoryRead"]


class LabeledMemory(ShortWays):
    """Cells (label, v, alpha, time of last write) of ``n`` streams, addressed by label.

    A read compares ``h`` with each label's own cells only; a write touches the true label's cells
    only, and only when the margin loss is not zero. So a rare label cannot be washed out by
    frequent ones. Labels are whole numbers here; names are the streams' business.

    Memory grows with the cells written, by an eighth at a time (one stream's first by a quarter),
    whatever the number of labels.

    Parameters
    ----------
    dim
        Length of the stored vectors; None takes that of the first one written.
    config
        How to read, write and forget.
    streams
        How many independent memories to hold side by side.
    blocks
        If given, reads also tell how each label came so far, with a cosine for each block of h:
        the blocks' lengths, one after another; ``()`` takes h as one block.
    fast
        Whether shorter ways with the same results are taken where there are: one stream on a CPU,
        and writes of many streams with one cell per label.

    Examples
    --------
    Few-shot: the memory alone is the classifier.

    >>> memory = LabeledMemory(dim=2, config=MemoryConfig(lam=5.0))
    >>> for h, y in [([1.0, 0.0], 3), ([0.0, 1.0], 8)]:
    ...     _ = memory.write(torch.tensor([h]), torch.tensor([y]))
    >>> memory.read(torch.tensor([[0.9, 0.1]])).scores(10).argmax().item()
    3

    References
    ----------
    Labeled Memory Networks (AAAI 2018), Eq. 2 and 3 and the write algorithm.
    """

    def __init__(
        self,
        dim: int | None = None,
        config: MemoryConfig | None = None,
        streams: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
        blocks: Sequence[int] | None = None,
        fast: bool = True,
    ) -> None:
        super().__init__(dim, config, streams, device, dtype, blocks)
        if fast:
            self._take_short_ways()

    def read(
        self, h: Tensor, lam: float | Tensor | None = None, delta: float | Tensor | None = None
    ) -> MemoryRead:
        """Score every label that owns cells against ``h`` (n, d): Eq. 2 and 3. Changes nothing.

        ``lam`` and ``delta`` replace the configured ones, e.g. with tensors that are being learned.
        """
        if lam is None and delta is None:
            told = self._read_swift(h)
            if told is not None:
                return told
        self._check(h)
        lam = self.config.lam if lam is None else lam
        delta = self.config.delta if delta is None else delta
        learned = isinstance(lam, Tensor) or isinstance(delta, Tensor)
        if self.dim and not learned and self._alone(h):
            told = self._read_one(h, float(lam), float(delta))
            if told is not None:
                return told
        if self._filled and not learned and self._fused(h):
            return self._read_many(h, float(lam), float(delta))
        k = self._filled
        v = self._contents(self.v[:, :k]) if self.dim else h.new_zeros(len(h), 0, h.shape[1])
        if any(isinstance(x, Tensor) and x.requires_grad for x in (h, lam, delta)):
            v = v.clone()  # a later write must not change what the gradient was taken of
        alpha = self.alpha[:, :k].clone()
        label, group = self.label[:, :k].clone(), self._groups(k)
        alive = label != FREE
        if self.config.cells_per_label == 1:  # M is the only cell, its weight is one
            weight, M, alpha_y, leads = alive.to(v.dtype), v, alpha, alive
        else:
            weight = F.within_label_weights(F.cosine(h, v), lam, group, alive)
            M, alpha_y = F.read(v, alpha, weight, group)
            leads = alive & (group == torch.arange(k, device=group.device))
        cosine = F.cosine(h, M)
        score = F.kernel_score(cosine, alpha_y, leads, lam, delta)
        age = self.time[:, None] - self.written[:, :k] + 1
        past = None if self.blocks is None else self._past(h, M, group, age)
        return MemoryRead(label, alpha, weight, score, group, alpha_y, cosine, age, past)

    def _past(self, h: Tensor, M: Tensor, group: Tensor, age: Tensor) -> LabelPast:
        """How each label came so far, with the cosines of the blocks of h."""
        cosine, size = F.block_cosine(h, M, self.blocks or (h.shape[1],))
        return LabelPast(*self._came(group, age), cosine, size)

    def write(
        self,
        h: Tensor,
        y: Tensor,
        P: Tensor | None = None,
        mask: Tensor | None = None,
        highest: Tensor | None = None,
    ) -> Tensor:
        """Learn that the label of ``h`` (n, d) was ``y`` (n,), after predicting ``P`` (n, W).

        Parameters
        ----------
        P
            The mixed prediction before the label was known; None means there was none, so that
            everything is written.
        mask
            (n,) which streams observed something; the others stay exactly as they are.
        highest
            (n, 2) the two highest of each row of P, where they are known.

        Returns
        -------
        written
            (n,) whether the stream wrote.
        """
        written = self._write_compiled(h, y, P) if mask is None else None
        if written is not None:
            return written
        with torch.no_grad():
            return self._write(h, y, P, mask, highest)

    def _write(
        self, h: Tensor, y: Tensor, P: Tensor | None, mask: Tensor | None, highest: Tensor | None
    ) -> Tensor:
        """The same for any number of streams, anywhere, after a close look."""
        self.check_write(h, y, P, mask)
        if self.dim is None:
            self.dim = h.shape[1]
            self.v = self.v.new_zeros(self.streams, 0, self._width(self.dim))
        grouped = self._let_go()
        seen = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
        if self._fused(h):
            return self._write_many(h, y, P, seen, highest)
        P = h.new_zeros(len(h), 0) if P is None else P
        self.time += seen.to(self.time.dtype)
        single = self.config.cells_per_label == 1 and self.fast
        if single and self.config.margin == math.inf:  # then P decides nothing
            writes = seen
        else:
            loss, wrong = F.margin_loss(P, y, self.config.margin)
            writes = seen & (loss > 0)
        if single:
            self._write_single(h.to(self.alpha.dtype), y, writes)
            return writes
        rows = writes.nonzero()[:, 0]
        if len(rows):
            self._write_rows(rows, h[rows].to(self.alpha.dtype), y[rows], wrong[rows])
            if grouped is not None:
                grouped.follow(self._cells(), self._filled, int(y))
        self._grouped = grouped
        return writes
