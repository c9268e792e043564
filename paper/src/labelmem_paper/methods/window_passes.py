"""One pass over a window of training or validation: plainly, or recorded as a CUDA graph.

A network that learns while it reads takes hundreds of small operations per step, and a GPU waits
for each to be asked for. Recorded once, all of a window's are asked for at once. What comes out is
the same but for the draws of dropout.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from labelmem.fast import allowed
from labelmem.trees import tree_map
from labelmem_paper.methods.cuda_graph import recorded

__all__ = ["UNSCORED", "PaddedPass", "PlainPass", "RecordedPass"]
__all__ += ["WindowLearner", "WindowPass", "window_pass"]

UNSCORED = -1
"""In place of a label that the network does not know, and in the padding."""
_WARM_UP = 2
"""Runs before the recording."""


class WindowLearner(Protocol):
    """What can be trained this way: it says what a window costs, and where it leaves the state."""

    network: nn.Module
    """All that is trained."""

    @property
    def start_token(self) -> int:
        """What is fed where there is no label, or none that is known."""

    def begin(self, streams: int) -> Any:
        """State of streams that have seen nothing: a tree of tensors, streams first."""

    def window(self, tokens: Tensor, y: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Sum of -log P over the labels y (n, w) that are scored, and the state after them.

        ``tokens`` (n, w) are the labels one step before. Streams share nothing but the weights,
        and where y is ``UNSCORED`` nothing is learned.
        """


class WindowPass(Protocol):
    """Sum of the losses of a window and the state after it, both without gradients.

    Where it was made for training, the gradient of the mean over ``count`` labels lies in the
    network's ``grad`` afterwards.
    """

    def __call__(self, tokens: Tensor, y: Tensor, state: Any, count: int) -> tuple[Tensor, Any]:
        """Go over the labels y (n, w), with ``tokens`` one step before, from this state."""


def window_pass(learner: WindowLearner, streams: int, window: int, training: bool) -> WindowPass:
    """The quickest pass over windows of up to so many streams and steps on the learner's device."""
    device = next(learner.network.parameters()).device
    if device.type == "cuda" and allowed():
        return RecordedPass(learner, streams, window, training)
    return PlainPass(learner, training)


class PlainPass:
    """As it is written."""

    def __init__(self, learner: WindowLearner, training: bool) -> None:
        self.learner, self.training = learner, training

    def __call__(
        self, tokens: Tensor, y: Tensor, state: Any, count: int | Tensor
    ) -> tuple[Tensor, Any]:
        """See :class:`WindowPass`."""
        with torch.set_grad_enabled(self.training):
            total, state = self.learner.window(tokens, y, state)
            if self.training:
                self.learner.network.zero_grad()
                torch.autograd.backward(total / count)
        return total.detach(), tree_map(Tensor.detach, state)


class PaddedPass:
    """All windows brought to one shape: rows and steps that are missing are not scored.

    Only the last window of a batch has fewer steps; the state after it, which nobody needs, is the
    one after the missing steps.
    """

    def __init__(self, learner: WindowLearner, streams: int, window: int, training: bool) -> None:
        self.learner, self.plain = learner, PlainPass(learner, training)
        device = next(learner.network.parameters()).device
        self.tokens = torch.full((streams, window), learner.start_token, device=device)
        self.y = torch.full_like(self.tokens, UNSCORED)
        self.state = tree_map(torch.clone, learner.begin(streams))
        self.count = torch.ones((), device=device)

    def __call__(self, tokens: Tensor, y: Tensor, state: Any, count: int) -> tuple[Tensor, Any]:
        """See :class:`WindowPass`."""
        rows, steps = y.shape
        self.tokens.fill_(self.learner.start_token)[:rows, :steps] = tokens
        self.y.fill_(UNSCORED)[:rows, :steps] = y
        tree_map(lambda mine, given: mine[:rows].copy_(given), self.state, state)
        self.count.fill_(count)
        total, after = self.run()
        return total, tree_map(lambda leaf: leaf[:rows], after)

    def run(self) -> tuple[Tensor, Any]:
        """The pass over what was put in place."""
        return self.plain(self.tokens, self.y, self.state, self.count)


class RecordedPass(PaddedPass):
    """A padded pass, recorded when it is first needed and replayed from then on."""

    _graph: torch.cuda.CUDAGraph | None = None
    _result: tuple[Tensor, Any]
    _slopes: list[tuple[nn.Parameter, Tensor | None]]

    def run(self) -> tuple[Tensor, Any]:
        """Replay; the results are copied, since the next replay overwrites them."""
        if self._graph is None:
            self._record()
        assert self._graph is not None
        self._graph.replay()
        for weight, slope in self._slopes:
            weight.grad = slope
        total, after = self._result
        return total.clone(), after

    def _record(self) -> None:
        # Whatever runs here must leave the generators where they were: a training that goes on
        # after an interruption records anew.
        with torch.random.fork_rng(devices=[self.y.device]):
            self._graph, self._result = recorded(self._warm_up, super().run)
        self._slopes = [(p, p.grad) for p in self.learner.network.parameters()]

    def _warm_up(self) -> None:
        for _ in range(_WARM_UP):
            super().run()
        self.learner.network.zero_grad()
