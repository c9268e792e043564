"""A network that goes along an episode, all its weights stepping after every label."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmem.fast import allowed
from labelmem_paper.experiments.few_shot.task import Shown, as_floats
from labelmem_paper.methods.cuda_graph import recorded

__all__ = ["AllWeights"]

_WARM_UP = 2
"""Steps before the recording."""


class AllWeights:
    """Answers to the steps of an episode, each given before a step of descent on its label.

    Thousands of steps follow on each other with one picture each, so a GPU would wait for every
    operation to be asked for. All that a step needs lies on the device, which step it is too; so
    it is recorded once as a CUDA graph, and repeated.

    Parameters
    ----------
    model
        Gives logits for pictures; its weights are changed. Its last part is the output layer.
    lr, head_lr
        Step sizes, that of the output layer apart.
    shown
        The episode, of N steps.
    """

    def __init__(self, model: nn.Sequential, lr: float, head_lr: float, shown: Shown) -> None:
        self.model, self.pictures = model, shown.pictures
        self.weights = list(model.parameters())
        heads = len(list(model[-1].parameters()))
        self.rates = [lr] * (len(self.weights) - heads) + [head_lr] * heads
        where = shown.pictures.device
        self.label = shown.episode.label.to(where)
        self.drawing = shown.episode.drawing.to(where)
        self.found = torch.empty_like(self.label)
        self.met = torch.zeros(len(shown.pictures), dtype=torch.bool, device=where)
        self.now = torch.zeros(1, dtype=torch.int64, device=where)

    def answers(self) -> Tensor:
        """Go through all steps: the label (N,) that seemed best of those met, -1 before any was."""
        steps = len(self.label)
        if self.now.is_cuda and allowed() and steps > _WARM_UP:
            self._replay(steps)
        else:
            for _ in range(steps):
                self.step()
        return self.found.cpu()

    def step(self) -> None:
        """Answer, then learn the label; never waits for the device."""
        y = self.label[self.now]
        logits = self.model(as_floats(self.pictures[y, self.drawing[self.now]]))
        # Labels that were never shown are no answers, but the step pushes them down too.
        best = logits.detach().masked_fill(~self.met, -torch.inf).argmax(dim=1)
        self.found.index_copy_(0, self.now, best.masked_fill(~self.met[best], -1))
        loss = nn.functional.cross_entropy(logits, y)
        slopes = torch.autograd.grad(loss, self.weights)
        with torch.no_grad():
            for weight, slope, rate in zip(self.weights, slopes, self.rates, strict=True):
                weight.sub_(slope, alpha=rate)
        self.met.index_fill_(0, y, True)
        self.now += 1

    def _replay(self, steps: int) -> None:
        """The first steps as they are written, then the recorded one again and again."""
        with torch.cuda.device(self.now.device):
            graph, _ = recorded(self._warm_up, self.step)
            for _ in range(steps - _WARM_UP):
                graph.replay()
            torch.cuda.synchronize()  # the graph must outlive its work

    def _warm_up(self) -> None:
        for _ in range(_WARM_UP):
            self.step()
