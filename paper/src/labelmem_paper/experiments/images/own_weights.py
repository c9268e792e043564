"""Many sequences at once in a feed-forward network, each with weights of its own.

``torch.func.vmap`` over the weights says the same of any network; but of convolutions it makes
grouped ones whose gradients, the second above all, are slow. Networks that are made of nothing but
the layers listed here need no vmap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from labelmem.models.feed_forward import ConvNet, Length
from labelmem_paper.experiments.images.own_convolution import own_convolution
from labelmem_paper.experiments.images.own_linear import own_linear

__all__ = ["Part", "Stepped", "known_parts", "respond"]

Part = tuple[str, nn.Module]
"""A layer, with its name in the network."""

_CHAINS = (nn.Sequential, ConvNet)
"""Networks that are their parts, one after another."""


@dataclass(frozen=True)
class Stepped:
    """Weights of linear layers after steps that are products of two vectors, kept as these.

    The layer of a sequence is ``start - Σ moves inputs'``; as numbers of its own it would have
    thousands of times as many.
    """

    start: Tensor
    """(o, k) what all sequences began with."""
    moves: Tensor
    """(n, steps, o)."""
    inputs: Tensor
    """(n, steps, k)."""

    @classmethod
    def none(cls, start: Tensor, sequences: int) -> Self:
        """Before the first step."""
        o, k = start.shape
        return cls(start, start.new_empty(sequences, 0, o), start.new_empty(sequences, 0, k))

    def times(self, x: Tensor) -> Tensor:
        """Outputs (n, o) for inputs x (n, k)."""
        near = torch.bmm(x[:, None], self.inputs.transpose(1, 2))
        return nn.functional.linear(x, self.start) - torch.bmm(near, self.moves)[:, 0]

    def after(self, move: Tensor, x: Tensor) -> Self:
        """One step further: ``move`` (n, o) times x (n, k) is taken off."""
        moves = torch.cat([self.moves, move[:, None]], dim=1)
        return type(self)(self.start, moves, torch.cat([self.inputs, x[:, None]], dim=1))


def known_parts(model: nn.Module, x: Any) -> list[Part] | None:
    """The layers of a network in their order, or None if :func:`respond` does not know them all.

    Parameters
    ----------
    x
        Inputs (n, …): what a layer does with a row depends on how many dimensions that has.

    Examples
    --------
    >>> body = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Flatten())
    >>> x = torch.ones(5, 1, 2, 2)
    >>> [name for name, _ in known_parts(nn.Sequential(body, nn.Linear(8, 3)), x)]
    ['0.0', '0.1', '0.2', '1']
    >>> known_parts(nn.Sequential(body, nn.Dropout(), nn.Linear(8, 3)), x) is None
    True
    """
    parts = _flat("", model)
    named = {name for name, _ in model.named_parameters()}
    # A layer that comes twice has its weights named once.
    own = {f"{name}.{key}" for name, part in parts for key, _ in part.named_parameters()}
    if own != named or not isinstance(x, Tensor) or any(_watched(part) for _, part in parts[:-1]):
        return None
    dimensions = x.ndim
    for _, part in parts:
        if not _is_known(part, dimensions):
            return None
        dimensions = 2 if isinstance(part, nn.Flatten) else dimensions
    return parts


def _flat(name: str, model: nn.Module) -> list[Part]:
    if type(model) not in _CHAINS:
        return [(name, model)]
    children = [(child, part) for child, part in model._modules.items() if part is not None]
    flat = [_flat(f"{name}.{child}" if name else child, part) for child, part in children]
    return [(name, model)] if _watched(model) else [part for parts in flat for part in parts]


def _watched(part: nn.Module) -> bool:
    """Whether hooks would have to be called, which may do anything."""
    return bool(part._forward_hooks or part._forward_pre_hooks)


def _is_known(part: nn.Module, dimensions: int) -> bool:
    if type(part) is nn.Conv2d:
        size = part.kernel_size[0]
        plain = part.stride == part.dilation == (1, 1) and part.groups == 1
        same = size % 2 == 1 and part.kernel_size == (size, size)
        same = same and part.padding in ("same", (size // 2, size // 2))
        return dimensions == 4 and plain and same and part.padding_mode == "zeros"
    if type(part) is nn.Linear:
        return dimensions == 2
    if type(part) is nn.MaxPool2d:
        return dimensions == 4 and not part.return_indices
    if type(part) is nn.Flatten:
        return (part.start_dim, part.end_dim) == (1, -1)
    return type(part) in (nn.ReLU, nn.Tanh, Length)


def respond(
    parts: Sequence[Part],
    weights: Mapping[str, Tensor | Stepped],
    x: Tensor,
    inputs: dict[str, Tensor] | None = None,
    half: bool = False,
) -> Tensor:
    """What the last of the ``parts`` gives for x (n, …), each row with its own weights.

    Parameters
    ----------
    weights
        (n, …) by parameter; those of linear layers may be :class:`Stepped`.
    inputs
        Where given, what enters the linear layers is noted here, by the name of the layer.
    half
        Whether convolutions compute in 16 bits.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
    >>> own = {"0.weight": torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]]])}
    >>> x = torch.ones(2, 2)
    >>> respond(known_parts(model, x), own, x)
    tensor([[1.],
            [2.]])
    """
    for name, part in parts:
        weight, bias = weights.get(f"{name}.weight"), weights.get(f"{name}.bias")
        if weight is None:
            x = part(x)
            continue
        if isinstance(weight, Stepped):
            found = weight.times(x)
        elif isinstance(part, nn.Conv2d):
            found = own_convolution(x, weight, half)
        else:
            found = own_linear(x, weight)
        if inputs is not None and isinstance(part, nn.Linear):
            inputs[name] = x
        if isinstance(bias, Tensor):
            found = found + bias.view(*bias.shape, *[1] * (found.ndim - 2))
        x = found
    return x
