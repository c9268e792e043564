"""Inputs and recurrent states as trees: a tensor, or tuples, lists and dictionaries of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from labelmem.errors import InputError
from labelmem.fast import bounded

__all__ = ["as_tensors", "chosen", "leaves", "rebuild", "tree_map"]


T = TypeVar("T")


def tree_map(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply ``f`` to the leaves of trees of the same form.

    Examples
    --------
    >>> tree_map(lambda a, b: a + b, {"x": 1, "y": (2, 3)}, {"x": 10, "y": (20, 30)})
    {'x': 11, 'y': (22, 33)}
    """
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        return {k: tree_map(f, v, *(o[k] for o in others)) for k, v in tree.items()}
    if isinstance(tree, tuple | list):
        return _like(tree, [tree_map(f, *parts) for parts in zip(tree, *others, strict=True)])
    return f(tree, *others)


def leaves(tree: Any) -> Iterator[Tensor]:
    """The tensors of a tree, in an order that does not depend on how dictionaries were filled."""
    if isinstance(tree, Mapping):
        tree = [tree[key] for key in sorted(tree, key=str)]
    if isinstance(tree, tuple | list):
        for part in tree:
            yield from leaves(part)
    elif tree is not None:
        yield tree


def rebuild(like: Any, flat: Iterator[Tensor]) -> Any:
    """A tree of the form of ``like`` with the given leaves; the inverse of :func:`leaves`."""
    if like is None:
        return None
    if isinstance(like, Mapping):
        built = {key: rebuild(like[key], flat) for key in sorted(like, key=str)}
        return {key: built[key] for key in like}
    if isinstance(like, tuple | list):
        return _like(like, [rebuild(part, flat) for part in like])
    return next(flat)


def _like(old: Any, parts: list[Any]) -> Any:
    """Parts as the kind of sequence that ``old`` is; a named tuple takes them one by one."""
    return type(old)(*parts) if hasattr(old, "_fields") else type(old)(parts)


def chosen(mask: Tensor | None, new: T, old: T) -> T:
    """``new`` in the streams of the mask (first dimension), ``old`` in the others; trees too.

    Examples
    --------
    >>> chosen(torch.tensor([True, False]), torch.ones(2), torch.zeros(2))
    tensor([1., 0.])
    """
    if mask is None:
        return new

    def choose(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(mask.view(-1, *[1] * (a.ndim - 1)), a, b)

    mixed: T = tree_map(choose, new, old)
    return mixed


def as_tensors(x: Any, device: torch.device, dtype: torch.dtype, what: str) -> Any:
    """Copy an input to tensors on the device, refusing what is not a finite number.

    Floating point inputs get the model's ``dtype``; whole numbers stay whole. Tuples and
    dictionaries are trees; a list of numbers is one array.
    """
    if isinstance(x, Mapping):
        return {key: as_tensors(part, device, dtype, what) for key, part in x.items()}
    if isinstance(x, tuple):
        return _like(x, [as_tensors(part, device, dtype, what) for part in x])
    return None if x is None else _as_tensor(x, device, dtype, what)


def _as_tensor(x: Any, device: torch.device, dtype: torch.dtype, what: str) -> Tensor:
    try:
        # Always a copy: the caller may reuse its buffer before the label arrives.
        if not isinstance(x, Tensor):
            x = torch.from_numpy(np.array(x))
        tensor: Tensor = x.detach().to(device, copy=True)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{what} is a {type(x).__name__} that is not a tensor or array of numbers: {error}"
        ) from None
    if not tensor.is_floating_point():
        return tensor
    tensor = tensor.to(dtype)
    if tensor.is_cpu and tensor.dtype is torch.float32 and bounded(tensor):
        return tensor
    if not bool(torch.isfinite(tensor).all()):
        bad = int((~torch.isfinite(tensor)).sum())
        raise InputError(
            f"{what} of shape {tuple(tensor.shape)} has {bad} NaN or infinite values; "
            "every value must be finite. Nothing was changed"
        )
    return tensor
