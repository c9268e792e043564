"""Eq. 4 along a stretch of steps: all labels of all streams, each from its state before it.

Labels do not know of each other, so they are taken in blocks, each through all steps. Nothing is
kept for the gradient but the states before the stretch: the steps of a block are taken again when
it is asked for. Fused or compiled kernels do this where there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from labelmem.combiner import LabelCombiner
from labelmem.engines.triton import fused
from labelmem.fast import compiled

__all__ = ["thetas"]

_NUMBERS = {"cpu": 2**18}  # of the gates of a block: it should stay in the cache
_MANY = 2**24  # the same on other devices
_UNITS = 16  # the most of which a device holds all weights while it goes back

Ways = tuple[Callable[..., tuple[Tensor, Tensor]], Callable[..., tuple[Tensor, ...]]]
"""A kernel for the steps, and one for the gradients of ``shared`` and the weights."""


def thetas(
    combiner: LabelCombiner, mu: Tensor, r: Tensor, s: Tensor, shared: Tensor
) -> tuple[Tensor, Tensor]:
    """Theta (n, T, A) of every step, and the states (n, A, hidden) after the last.

    The gradient reaches ``shared`` and the weights, not the states and scores.

    Parameters
    ----------
    mu
        (n, A, hidden) states before the first step.
    r, s
        (n, T, A) scores of the labels one step before each step.
    shared
        (n, T, 3 hidden) what each step puts in for all labels.
    """
    ways = _ways(combiner, mu, shared)
    if ways is not None:
        given = [x.contiguous() for x in (mu, r, s, shared, *combiner.cell_weights())]
        theta, end = _Along.apply(ways, *given)  # type: ignore[no-untyped-call]
        return theta, end
    n, _, labels = r.shape
    size = max(1, _NUMBERS.get(mu.device.type, _MANY) // (3 * combiner.hidden * n))
    found = []
    for first in range(0, labels, size):
        part = slice(first, first + size)
        given = [mu[:, part], r[..., part], s[..., part], shared]
        found.append(
            checkpoint(_block, combiner, *given, use_reentrant=False, preserve_rng_state=False)
        )
    return torch.cat([theta for theta, _ in found], 2), torch.cat([end for _, end in found], 1)


def _ways(combiner: LabelCombiner, mu: Tensor, shared: Tensor) -> Ways | None:
    """The kernels for these tensors, if there are any."""
    if combiner.hidden <= _UNITS and fused(shared, mu):
        from labelmem.engines.triton import label_along as kernels_label_along
        from labelmem.engines.triton import label_along_gradient as kernels_label_along_gradient

        return kernels_label_along.label_steps, kernels_label_along_gradient.label_steps_gradient
    narrow = {mu.dtype, shared.dtype} == {torch.float32}
    if mu.device.type == "cpu" and compiled(narrow):
        from labelmem.engines.numba import label_along as compiled_label_along
        from labelmem.engines.numba import label_along_gradient as compiled_label_along_gradient

        return compiled_label_along.label_steps, compiled_label_along_gradient.label_steps_gradient
    return None


class _Along(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ways: Ways, *given: Tensor) -> tuple[Tensor, Tensor]:
        theta, end = ways[0](*given)
        ctx.back = ways[1]
        ctx.save_for_backward(*given)
        ctx.mark_non_differentiable(end)
        ctx.set_materialize_grads(False)
        return theta, end

    @staticmethod
    def backward(ctx: Any, by_theta: Tensor, _: None) -> Any:
        found = ctx.back(*ctx.saved_tensors, by_theta.contiguous())
        return None, None, None, None, *found


def _block(
    combiner: LabelCombiner, mu: Tensor, r: Tensor, s: Tensor, shared: Tensor
) -> tuple[Tensor, Tensor]:
    found = []
    for t in range(shared.shape[1]):
        mu, theta = combiner.cell(mu, r[:, t], s[:, t], shared[:, t])
        found.append(theta)
    return torch.stack(found, dim=1), mu.detach()
