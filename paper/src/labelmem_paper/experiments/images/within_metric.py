"""A measure of likeness that makes little of how drawings of one character differ."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem.errors import ConfigError

__all__ = ["Metric", "within_metric"]


@dataclass(frozen=True)
class Metric:
    """A shift and a linear map; cosines are to be taken after them."""

    mean: Tensor
    """(d,)."""
    map: Tensor
    """(d, k)."""

    def __call__(self, x: Tensor) -> Tensor:
        """Vectors (…, d) as (…, k)."""
        return (x - self.mean) @ self.map


def within_metric(x: Tensor, character: Tensor, size: int, shrinkage: float) -> Metric:
    """The metric of vectors x (n, d) whose characters (n,) are known.

    The ``size`` directions in which the vectors spread most are kept, and scaled such that drawings
    of the same character spread alike in all of them. There are few drawings of many characters, so
    that the spread is mixed with a round one, by the share ``shrinkage``.

    Examples
    --------
    >>> x = torch.tensor([[0.0, -5.0], [0.0, 5.0], [2.0, -5.0], [2.0, 5.0]])
    >>> metric = within_metric(x, torch.tensor([0, 0, 1, 1]), size=2, shrinkage=0.01)
    >>> cos = torch.nn.functional.cosine_similarity
    >>> bool(cos(x[0], x[2], dim=0) > 0.9), bool(cos(metric(x[0]), metric(x[2]), dim=0) < 0)
    (True, True)
    """
    if size < 1 or not 0 < shrinkage <= 1:
        raise ConfigError(
            f"size is {size}, shrinkage is {shrinkage}; expected a whole number from 1 and a share "
            "in (0, 1]"
        )
    kind, x = x.dtype, x.double()  # many directions carry nothing, which single precision muddles
    mean = x.mean(dim=0)
    centred = x - mean
    # Ascending eigenvalues: the last directions carry most.
    directions = torch.linalg.eigh(centred.T @ centred / len(x)).eigenvectors
    directions = directions[:, -min(size, x.shape[1]) :]
    seen = centred @ directions
    own = seen - _means(seen, character)[character]
    within = own.T @ own / len(own)
    unit = torch.eye(len(within), dtype=x.dtype, device=x.device)
    round_one = unit * within.diagonal().mean().clamp(min=1e-12)
    mixed = (1 - shrinkage) * within + shrinkage * round_one
    scale = torch.linalg.solve_triangular(torch.linalg.cholesky(mixed), unit, upper=False)
    return Metric(mean.to(kind), (directions @ scale.T).to(kind))


def _means(x: Tensor, character: Tensor) -> Tensor:
    """The mean (characters, d) of each character's vectors."""
    characters = int(character.max()) + 1
    total = x.new_zeros(characters, x.shape[1]).index_add(0, character, x)
    count = torch.bincount(character, minlength=characters).clamp(min=1)
    return total / count[:, None]
