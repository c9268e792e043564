"""States of many streams side by side, taken apart into one piece of bytes for each, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_safetensors
from safetensors.torch import save as build_safetensors
from torch import Tensor

from labelmem.errors import CorruptFileError
from labelmem.logit_memory import LogitState
from labelmem.stepping import Stepping

__all__ = ["pack", "unpack"]

_USED = "memory.used"
_FREE = {"memory.label": -1}  # what stands in positions without a cell; 0 elsewhere


def pack(method: Stepping[Any], state: Any) -> list[bytes]:
    """Each stream's state as bytes, without the padding beside longer ones."""
    if isinstance(state, LogitState):
        return [_built(method.tensors(one)) for one in state.apart()]
    tensors = {name: tensor.cpu() for name, tensor in method.tensors(state).items()}
    used = tensors[_USED].tolist()
    return [
        _built(
            {
                name: tensor[i, :cells] if _has_cells(name, tensor) else tensor[i]
                for name, tensor in tensors.items()
            }
        )
        for i, cells in enumerate(used)
    ]


def unpack(method: Stepping[Any], packed: Sequence[bytes | None]) -> Any:
    """The state of as many streams; None stands for one that has seen nothing.

    Examples
    --------
    >>> from labelmem import Adapter
    >>> adapter = Adapter(torch.nn.Linear(2, 2), combiner=0.5)
    >>> two = adapter.initial_state(2)
    >>> step = adapter.advance(two, torch.ones(2, 2), width=2)
    >>> adapter.commit(two, step, torch.tensor([0, 1]), mask=torch.tensor([True, False]))
    >>> unpack(adapter, [*pack(adapter, two), None]).memory.used
    tensor([1, 0, 0])
    """
    rows = [None if piece is None else _parsed(piece) for piece in packed]
    known = [row for row in rows if row is not None]
    if not known:
        return method.initial_state(len(rows))
    blank_state = method.initial_state(1)
    if isinstance(blank_state, LogitState):
        return LogitState.joined(
            [blank_state if row is None else method.restore(row, 1) for row in rows]
        )
    empty = {name: tensor[0].cpu() for name, tensor in method.tensors(blank_state).items()}
    most = max(int(row[_USED]) for row in known)
    joined = {}
    for name, blank in empty.items():
        parts = [blank if row is None else row[name] for row in rows]
        if _has_cells(name, blank[None]):
            parts = [_padded(part, most, known[0][name], _FREE.get(name, 0)) for part in parts]
        joined[name] = torch.stack(parts)
    return method.restore(joined, len(rows))


def _has_cells(name: str, tensor: Tensor) -> bool:
    """Whether the second dimension of a tensor (streams, ...) counts cells."""
    return name.startswith("memory.") and tensor.ndim > 1


def _padded(cells: Tensor, most: int, like: Tensor, fill: int) -> Tensor:
    whole = like.new_full((most, *like.shape[1:]), fill)
    if len(cells):
        whole[: len(cells)] = cells
    return whole


def _built(tensors: dict[str, Tensor]) -> bytes:
    # Copies: safetensors refuses tensors that share memory.
    own = {name: tensor.cpu().contiguous().clone() for name, tensor in tensors.items()}
    return build_safetensors(own)


def _parsed(piece: bytes) -> dict[str, Tensor]:
    try:
        return parse_safetensors(piece)
    except SafetensorError as error:
        raise CorruptFileError(f"a user's state cannot be read: {error}") from error
