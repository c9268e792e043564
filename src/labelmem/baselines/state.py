"""States made of tensors, and the two operations every state of a lockstep needs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from labelmem.trees import leaves, rebuild

__all__ = ["TensorState", "wider"]

T = TypeVar("T")


@dataclass
class TensorState:
    """State of ``streams`` streams: every further field is a tree of tensors with streams first.

    Examples
    --------
    >>> @dataclass
    ... class Sums(TensorState):
    ...     total: Tensor
    >>> saved = Sums(2, torch.tensor([1.0, 2.0])).tensors()
    >>> Sums(2, torch.zeros(2)).restored(saved, torch.device("cpu")).total
    tensor([1., 2.])
    """

    streams: int

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, as they are saved."""
        return {
            f"{field.name}.{i}": leaf
            for field in fields(self)
            if field.name != "streams"
            for i, leaf in enumerate(leaves(getattr(self, field.name)))
        }

    def restored(self, tensors: dict[str, Tensor], device: torch.device) -> Self:
        """A state of this form with the content that :meth:`tensors` gave."""
        expected = self.tensors()
        if expected.keys() != tensors.keys():
            raise ValueError(f"expected {sorted(expected)}, found {sorted(tensors)}")
        for name, like in expected.items():
            saved = tensors[name]
            if saved.dtype != like.dtype or saved.ndim != like.ndim or len(saved) != self.streams:
                raise ValueError(f"{name} is {saved.dtype} of shape {tuple(saved.shape)}")
        parts: dict[str, Any] = {}
        for field in fields(self):
            if field.name != "streams":
                like = getattr(self, field.name)
                flat = (
                    tensors[f"{field.name}.{i}"].to(device, copy=True)
                    for i, _ in enumerate(leaves(like))
                )
                parts[field.name] = rebuild(like, flat)
        return replace(self, **parts)


def wider(x: Tensor, size: int, fill: float = 0, dim: int = 1) -> Tensor:
    """Extend a dimension to at least ``size`` with ``fill``.

    Examples
    --------
    >>> wider(torch.ones(2, 1), 3)
    tensor([[1., 0., 0.],
            [1., 0., 0.]])
    """
    more = size - x.shape[dim]
    if more <= 0:
        return x
    shape = list(x.shape)
    shape[dim] = more
    return torch.cat([x, x.new_full(shape, fill)], dim=dim)
