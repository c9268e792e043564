"""Texts in whatever form people have them, as rows of token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from labelmem.errors import ConfigError, InputError

__all__ = ["as_rows", "padded"]


def as_rows(text: Any, tokenizer: Any, begins: Sequence[bool], vocabulary: int) -> list[Tensor]:
    """One row of token ids (on the CPU) for each of n streams.

    Parameters
    ----------
    text
        n strings; n sequences of ids; a tensor (n, T); or what a tokenizer returns, a mapping with
        ``input_ids`` and maybe ``attention_mask``, padded on either side.
    begins
        Whether each stream is at the beginning of a text: only there the tokenizer may add its
        special tokens, as it does at the beginning of any text.
    vocabulary
        Ids are below this number.

    Examples
    --------
    >>> batch = {"input_ids": [[0, 5], [7, 8]], "attention_mask": [[0, 1], [1, 1]]}
    >>> as_rows(batch, None, begins=[True, True], vocabulary=9)
    [tensor([5]), tensor([7, 8])]
    """
    mask = None
    if isinstance(text, Mapping):
        if "input_ids" not in text:
            raise InputError(f"got a mapping with {sorted(text)}; expected input_ids in it")
        text, mask = text["input_ids"], text.get("attention_mask")
    if isinstance(text, str) or not hasattr(text, "__len__") or len(text) != len(begins):
        seen = f"{len(text)} of" if hasattr(text, "__len__") and not isinstance(text, str) else "a"
        raise InputError(
            f"got {seen} {type(text).__name__}; expected {len(begins)} texts, one per stream"
        )
    rows = [
        _ids(part, tokenizer, first, vocabulary) for part, first in zip(text, begins, strict=True)
    ]
    if mask is None:
        return rows
    kept = [torch.as_tensor(part, dtype=torch.bool, device="cpu") for part in mask]
    if [len(part) for part in kept] != [len(row) for row in rows]:
        raise InputError("attention_mask and input_ids have different shapes")
    return [row[part] for row, part in zip(rows, kept, strict=True)]


def _ids(text: Any, tokenizer: Any, first: bool, vocabulary: int) -> Tensor:
    if isinstance(text, str):
        if tokenizer is None:
            raise ConfigError("got a text but no tokenizer; give one, or give token ids")
        text = tokenizer(text, add_special_tokens=first)["input_ids"]
    try:
        ids = torch.as_tensor(text, device="cpu") if len(text) else torch.zeros(0).long()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"a {type(text).__name__} cannot be read as token ids, expected whole numbers: {error}"
        ) from None
    if ids.ndim != 1 or ids.is_floating_point() or ids.dtype == torch.bool:
        raise InputError(
            f"token ids have shape {tuple(ids.shape)} and type {ids.dtype}; expected one row of "
            "whole numbers for each stream"
        )
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocabulary:
        raise InputError(
            f"token ids lie in {int(ids.min())}..{int(ids.max())}; expected 0..{vocabulary - 1}"
        )
    return ids.long()


def padded(rows: Sequence[Tensor], width: int, pad: int) -> tuple[Tensor, Tensor]:
    """Rows as one tensor (n, width), padded on the left, and which entries are real.

    Examples
    --------
    >>> padded([torch.tensor([5]), torch.tensor([7, 8])], width=2, pad=0)
    (tensor([[0, 5], [7, 8]]), tensor([[False, True], [ True, True]]))
    """
    ids = torch.full((len(rows), width), pad, dtype=torch.int64)
    real = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, row in enumerate(rows):
        start = width - len(row)
        ids[i, start:], real[i, start:] = row, True
    return ids, real
