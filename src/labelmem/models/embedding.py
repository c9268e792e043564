"""One vector for each label and one for the start of a stream."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmem.engines.triton import FUSED_MOST, fused
from labelmem.fast import visible

__all__ = ["TokenEmbedding"]


class TokenEmbedding(nn.Module):
    """Looks up labels 0 .. L-1 in ``weight`` and token L, "nothing seen yet", in ``start``.

    The start is a parameter of its own, so that ``weight`` has one row for each label exactly and
    can be the very same parameter as the weight of an output layer.

    Parameters
    ----------
    labels
        Number of labels L.
    dim
        Length of a vector.
    scale
        Factor between a row of ``weight`` and the vector it stands for. Vectors start with entries
        of variance 1 whatever the scale; an output layer that shares the weight wants rows of
        length 1, which ``scale = dim ** 0.5`` gives.
    learn_start
        Whether the start has a vector to learn; if not, it stays zero.

    Examples
    --------
    >>> table = TokenEmbedding(labels=5, dim=3)
    >>> table(torch.tensor([0, 4, 5])).shape
    torch.Size([3, 3])
    >>> bool((table(torch.tensor([5]))[0] == table.start).all())
    True
    """

    start: Tensor

    def __init__(self, labels: int, dim: int, scale: float = 1.0, learn_start: bool = True) -> None:
        super().__init__()
        self.labels = labels
        self.scale = scale
        self.weight = nn.Parameter(torch.randn(labels, dim) / scale)
        if learn_start:
            self.start = nn.Parameter(torch.zeros(dim))
        else:
            self.register_buffer("start", torch.zeros(dim), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Vectors (..., dim) of tokens (...); a token beyond the start is an error of torch."""
        if self._fused(tokens):
            from labelmem.engines.triton.encode import token_vectors

            return token_vectors(tokens, self.weight, self.start, self.scale)
        at_start = tokens == self.labels
        vectors = nn.functional.embedding(tokens.masked_fill(at_start, 0), self.weight)
        return torch.where(at_start[..., None], self.start, self.scale * vectors)

    def _fused(self, tokens: Tensor) -> bool:
        """Whether vectors are looked up by a fused kernel, which makes NaN of what is no token."""
        plain = torch.is_grad_enabled() or not 0 < self.weight.shape[1] <= FUSED_MOST
        return not plain and fused(self.weight, self.start) and visible(tokens, self.weight)
