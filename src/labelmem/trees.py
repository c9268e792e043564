"""Inputs and recurrent states as trees: a tensor, or tuples, lists and dictionaries of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from labelmem.errors import InputError

__all__ = ["as_tensors", "leaves", "rebuild", "tree_map"]


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
        return type(tree)(tree_map(f, *parts) for parts in zip(tree, *others, strict=True))
    return f(tree, *others)


def leaves(tree: Any) -> Iterator[Tensor]:
    """The tensors of a tree, in order."""
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    if isinstance(tree, tuple | list):
        for part in tree:
            yield from leaves(part)
    elif tree is not None:
        yield tree


def rebuild(like: Any, flat: Iterator[Tensor]) -> Any:
    """A tree of the form of ``like`` with the given leaves; the inverse of :func:`leaves`."""
    return tree_map(lambda _: next(flat), like)


def as_tensors(x: Any, device: torch.device, dtype: torch.dtype, what: str) -> Any:
    """Copy an input to tensors on the device, refusing what is not a finite number.

    Floating point inputs get the model's ``dtype``; whole numbers stay whole.
    """

    def convert(leaf: Any) -> Tensor:
        try:
            # A copy: the caller may reuse its buffer before the label arrives.
            tensor = torch.as_tensor(leaf).detach().clone().to(device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{what} is a {type(leaf).__name__} that is not a tensor or array: {error}"
            ) from None
        if not tensor.is_floating_point():
            return tensor
        if not bool(torch.isfinite(tensor).all()):
            bad = int((~torch.isfinite(tensor)).sum())
            raise InputError(
                f"{what} of shape {tuple(tensor.shape)} has {bad} NaN or infinite values; "
                "every value must be finite. Nothing was changed"
            )
        return tensor.to(dtype)

    # A list of numbers is one array, not a tree of numbers.
    if isinstance(x, list):
        return convert(x)
    return tree_map(convert, x)
