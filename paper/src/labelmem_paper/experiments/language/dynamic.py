"""Dynamic evaluation: the model goes on learning while it is tested."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem_paper.experiments.language.answer import Answer
from labelmem_paper.experiments.language.laps import Laps
from labelmem_paper.experiments.language.pieces import AT_ONCE
from labelmem_paper.methods.fit_text import side_by_side
from labelmem_paper.methods.text_lstm import TextLSTM

__all__ = ["DynamicEvaluation", "mean_squares"]


class DynamicEvaluation:
    """A step on all weights after every few words, and a pull back to the trained ones.

    Weights whose gradients were large in training move less and are pulled back harder.

    Parameters
    ----------
    squares
        Mean squared gradient of each weight on the training text, from :func:`mean_squares`.
    lr
        Step size.
    pull
        How fast the weights return (the paper's lambda).
    segment
        Words between two steps.
    floor
        Added to the root mean squares, relative to their mean: a weight that hardly ever moved in
        training, such as the vector of a rare word, must not make huge steps.

    References
    ----------
    Krause, Kahembwe, Murray, Renals: Dynamic Evaluation of Neural Sequence Models (2018), Eq. 6-8.
    """

    def __init__(
        self,
        model: TextLSTM,
        squares: list[Tensor],
        opening: int,
        lr: float,
        pull: float,
        segment: int = 5,
        floor: float = 1.0,
    ) -> None:
        self.model, self.lr, self.segment, self.opening = model, lr, segment, opening
        rms = [one.sqrt() for one in squares]
        mean = sum(one.sum() for one in rms) / sum(one.numel() for one in rms)
        self.rms = [one + floor * mean for one in rms]
        # A pull above 1 would push beyond the trained weights.
        self.decay = [(pull * one / mean).clamp(max=1.0) for one in rms]

    @property
    def modules(self) -> list[nn.Module]:
        """What holds its trained numbers."""
        return [self.model]

    def read(self, text: Tensor, streams: int, laps: Laps | None = None) -> Iterator[Answer]:
        """Answers for a text (T,), many segments at a time; the model itself stays as it is."""
        if streams != 1:
            raise ConfigError(
                f"streams is {streams}; dynamic evaluation changes the weights for one text, so it "
                "reads one stream"
            )
        laps = laps or Laps()
        model = _learning(self.model)
        first = [weight.detach().clone() for weight in model.parameters()]
        x, y = side_by_side(text, 1, self.opening)
        state: tuple[Tensor, ...] = tuple(model.initial_state(1))
        seen: list[Tensor] = []
        for start in range(0, x.shape[1], self.segment):
            part = slice(start, start + self.segment)
            with laps.part("model"), torch.enable_grad():
                h, new = model.forward_sequence(x[:, part], state)
                log_r = torch.log_softmax(model.logits(h), dim=2)
                loss = -log_r.gather(2, y[:, part][..., None]).mean()
                state = tuple(one.detach() for one in new)
            with laps.part("memory"):
                self._learn(model, first, torch.autograd.grad(loss, list(model.parameters())))
            seen.append(log_r.detach())
            done = min(start + self.segment, x.shape[1])
            many = sum(one.shape[1] for one in seen)
            if many >= AT_ONCE or done == x.shape[1]:  # what was said before each step, together
                yield Answer(y[:, done - many : done], torch.cat(seen, dim=1))
                seen = []

    @torch.no_grad()
    def _learn(self, model: TextLSTM, first: list[Tensor], slopes: tuple[Tensor, ...]) -> None:
        """``w += decay (w0 - w) - lr slope / rms``, weight by weight."""
        for weight, origin, slope, rms, decay in zip(
            model.parameters(), first, slopes, self.rms, self.decay, strict=True
        ):
            weight.lerp_(origin, decay).addcdiv_(slope, rms, value=-self.lr)


def mean_squares(
    model: TextLSTM, text: Tensor, opening: int, batches: int, segment: int, streams: int
) -> list[Tensor]:
    """The mean squared gradient of each weight over some batches of the training text.

    Each batch is the mean loss of ``streams`` passages of ``segment`` words.
    """
    model = _learning(model)
    x, y = side_by_side(text, streams, opening)
    weights = list(model.parameters())
    squares = [torch.zeros_like(weight) for weight in weights]
    carried, count = None, 0
    for start in range(0, min(x.shape[1], batches * segment), segment):
        part = slice(start, start + segment)
        loss, carried = model.passage_loss(x[:, part], y[:, part], carried, half=False)
        for square, slope in zip(squares, torch.autograd.grad(loss, weights), strict=True):
            square += slope.square()
        count += 1
    return [square / count for square in squares]


def _learning(model: TextLSTM) -> TextLSTM:
    """A copy that can be differentiated but drops nothing."""
    model = copy.deepcopy(model).requires_grad_(True).eval()
    model.rnn.train()  # fused kernels have no gradient otherwise; it has no dropout of its own
    model.rnn.flatten_parameters()  # a copy's weights lie scattered, which these kernels dislike
    return model
