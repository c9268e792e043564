"""The paper's equations as pure functions, in its order and numbering.

Everything works on ``n`` streams at once, each with up to ``K`` cells. A stream with fewer cells is
padded: ``alive`` (n, K) is False there and the padding takes part in nothing. ``group`` (n, K)
names, for every cell, the position of a leading cell of the same label, so that a label is a set of
positions and no quantity ever has labels × cells entries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from labelmem.trust import believed, recording

__all__ = [
    "block_cosine",
    "cosine",
    "finite",
    "kernel_score",
    "margin_loss",
    "memory_score",
    "merge",
    "mix",
    "model_score",
    "normalise",
    "outside",
    "read",
    "within_label_weights",
]


def model_score(logits: Tensor) -> Tensor:
    """Eq. 1: what the model itself believes, ``r = softmax(beta h)``.

    Parameters
    ----------
    logits
        (n, L) outputs of the model's last linear layer.
    """
    return torch.softmax(logits, dim=-1)


def finite(x: Tensor) -> bool:
    """Whether no value is NaN or infinite.

    Examples
    --------
    >>> finite(torch.tensor([3e38, 3e38])), finite(torch.tensor([1.0, -torch.inf, torch.inf]))
    (True, False)
    """
    # A finite sum has finite parts; an infinite one may be an overflow, so then all are looked at.
    if recording():
        return believed(lambda: x.detach().sum().abs() < math.inf)
    total = x.detach().sum()
    return math.isfinite(float(total)) or bool(torch.isfinite(x).all())


def normalise(x: Tensor) -> Tensor:
    """Scale vectors to length one; a zero vector stays zero, so that its cosines are zero."""
    norm = x.norm(dim=-1, keepdim=True)
    return x / torch.where(norm > 0, norm, torch.ones_like(norm))


def cosine(h: Tensor, v: Tensor) -> Tensor:
    """Cosine of each ``h`` (n, d) with its ``v`` (n, K, d), as (n, K); 0 when either is zero.

    Examples
    --------
    >>> cosine(torch.tensor([[1.0, 0.0]]), torch.tensor([[[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]]))
    tensor([[1., 0., 0.]])
    """
    norm = v.norm(dim=-1)
    dot = torch.einsum("nd,nkd->nk", normalise(h), v)
    return dot / torch.where(norm > 0, norm, torch.ones_like(norm))


def block_cosine(h: Tensor, v: Tensor, blocks: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Cosine of each block of ``h`` (n, d) with that of ``v`` (n, K, d), and its length in ``v``.

    Beyond the paper: where a key is made of parts, each may match for itself.

    Parameters
    ----------
    blocks
        The lengths of the B parts, which lie one after another.

    Returns
    -------
    cosine, size
        (n, K, B) both.

    Examples
    --------
    >>> h, v = torch.tensor([[1.0, 0.0, 2.0]]), torch.tensor([[[3.0, 4.0, 5.0]]])
    >>> block_cosine(h, v, (2, 1))
    (tensor([[[0.6000, 1.0000]]]), tensor([[[5., 5.]]]))
    """
    own = _columns(tuple(blocks), h.device, h.dtype)
    # h spread over B columns, a block in each: one pass over v gives the products of all.
    dot = torch.bmm(v, h[:, :, None] * own)
    size, length = (v * v @ own).sqrt(), (h * h @ own).sqrt()[:, None]
    both = size * length
    return dot / torch.where(both > 0, both, torch.ones_like(both)), size


@lru_cache(maxsize=64)
def _columns(blocks: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """(d, B) one where an entry belongs to a block. Made once: it would wait for the device."""
    with torch.inference_mode(False):
        numbers = [block for block, size in enumerate(blocks) for _ in range(size)]
        own = torch.nn.functional.one_hot(torch.tensor(numbers, dtype=torch.int64), len(blocks))
        return own.to(device, dtype)


def within_label_weights(cos: Tensor, lam: float | Tensor, group: Tensor, alive: Tensor) -> Tensor:
    """The weights of Eq. 2: a softmax of ``lam * cos`` among the cells of one label.

    Examples
    --------
    >>> cos = torch.tensor([[1.0, 1.0, 0.3]])
    >>> group, alive = torch.tensor([[0, 0, 2]]), torch.tensor([[True, True, True]])
    >>> within_label_weights(cos, 5.0, group, alive)
    tensor([[0.5000, 0.5000, 1.0000]])
    """
    x = (lam * cos).masked_fill(~alive, -torch.inf)
    top = torch.full_like(x, -torch.inf).scatter_reduce(1, group, x.detach(), "amax")
    e = torch.where(alive, torch.exp(x - top.gather(1, group)), torch.zeros_like(x))
    z = torch.zeros_like(e).scatter_add(1, group, e).gather(1, group)
    return torch.where(alive, e / torch.where(alive, z, torch.ones_like(z)), torch.zeros_like(e))


def read(v: Tensor, alpha: Tensor, w: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 2: each label's read vector M and weight, at the position of its first cell.

    Parameters
    ----------
    v, alpha
        (n, K, d) contents and (n, K) weights of the cells.
    w
        (n, K) from :func:`within_label_weights`.

    Returns
    -------
    M, alpha_y
        (n, K, d) and (n, K); only the positions that lead a group mean anything.
    """
    M = torch.zeros_like(v).scatter_add(1, group[..., None].expand_as(v), w[..., None] * v)
    return M, torch.zeros_like(alpha).scatter_add(1, group, w * alpha)


def memory_score(
    h: Tensor, M: Tensor, alpha: Tensor, leads: Tensor, lam: float | Tensor, delta: float | Tensor
) -> Tensor:
    """Eq. 3: the memory's belief ``s``, normalised over the labels that own cells.

    Parameters
    ----------
    leads
        (n, K) whether a position leads the group of its label: only those carry a score.

    Returns
    -------
    s
        (n, K), zero elsewhere and for a stream whose memory is empty.
    """
    return kernel_score(cosine(h, M), alpha, leads, lam, delta)


def kernel_score(
    cos: Tensor, alpha: Tensor, leads: Tensor, lam: float | Tensor, delta: float | Tensor
) -> Tensor:
    """Eq. 3 from the cosines (n, K) of h with each label's M."""
    # alpha**delta * exp(lam cos) in logarithms, so that no power over- or underflows.
    tiny = torch.finfo(alpha.dtype).tiny  # a weight that decayed to zero counts for next to nothing
    log_alpha = torch.log(torch.where(leads, alpha, torch.ones_like(alpha)).clamp(min=tiny))
    logits = (delta * log_alpha + lam * cos).masked_fill(~leads, -torch.inf)
    empty = ~leads.any(dim=1, keepdim=True)
    return torch.softmax(logits.masked_fill(empty, 0.0), dim=1) * leads


def mix(r: Tensor, s: Tensor, theta: float | Tensor) -> Tensor:
    """Eq. 5: ``P = (1 - theta_y) r_y + theta_y s_y``, renormalised; ``r`` while memory is empty.

    Examples
    --------
    >>> mix(torch.tensor([[0.8, 0.2]]), torch.tensor([[0.0, 1.0]]), 0.5)
    tensor([[0.4000, 0.6000]])
    >>> mix(torch.tensor([[0.8, 0.2]]), torch.tensor([[0.0, 0.0]]), torch.tensor([[0.9, 0.1]]))
    tensor([[0.8000, 0.2000]])
    """
    P = (1 - theta) * r + theta * s
    total = P.sum(dim=-1, keepdim=True)
    holds = (s > 0).any(dim=-1, keepdim=True) & (total > 0)
    return torch.where(holds, P / torch.where(holds, total, torch.ones_like(total)), r)


def outside(r: Tensor, s: Tensor) -> Tensor:
    """The model's belief about labels that are not in memory, renormalised.

    Beyond the paper: mixing this instead of r divides the labels between the two, and theta becomes
    the probability that the label is one the stream has shown before.

    Examples
    --------
    >>> outside(torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([[1.0, 0.0, 0.0]]))
    tensor([[0.0000, 0.6000, 0.4000]])
    """
    rest = torch.where(s > 0, torch.zeros_like(r), r)
    total = rest.sum(dim=-1, keepdim=True)
    return rest / torch.where(total > 0, total, torch.ones_like(total))


def margin_loss(P: Tensor, y: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """When to write: ``max(0, margin - (log P(y) - log P(best other)))`` and whether P was wrong.

    Parameters
    ----------
    P
        (n, W) mixed probabilities; W may be 0.
    y
        (n,) true labels; one at or above W has no column yet and so P(y) = 0.

    Returns
    -------
    loss, wrong
        (n,) nats, infinite where P(y) = 0; (n,) whether P(y) is strictly below another label's.

    Examples
    --------
    >>> loss, wrong = margin_loss(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([0, 1]), 1.0)
    >>> loss.tolist(), wrong.tolist()
    ([1.0, inf], [False, True])
    """
    n, width = P.shape
    # One more column of zeros stands for every label that P does not know.
    P = torch.cat([P, P.new_zeros(n, 1)], dim=1)
    column = y.clamp(max=width)[:, None]
    p_y = P.gather(1, column)[:, 0]
    best = P.scatter(1, column, 0.0).amax(dim=1)
    # Finite even where no other label has a probability, so that margin = inf always writes.
    lead = (torch.log(p_y) - torch.log(best)).clamp(max=torch.finfo(P.dtype).max)
    loss = (margin - lead).clamp(min=0)
    return torch.where(p_y > 0, loss, torch.full_like(loss, torch.inf)), p_y < best


def merge(v: Tensor, alpha: Tensor, h: Tensor, w: Tensor, decay: float) -> tuple[Tensor, Tensor]:
    """What to write: ``v + w h`` and ``decay * alpha + w`` for cells of the true label.

    Parameters
    ----------
    v, h
        (p, d) the cells' contents and, for each, the vector being written.
    alpha, w
        (p,) the cells' weights and their share of the write (Eq. 2).
    """
    return v + w[:, None] * h, decay * alpha + w
