"""The pointer sentinel mixture: a language model that may point back at one of its last words."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem.models.sizes import check_sizes
from labelmem_paper.methods.text_lstm import TextLSTM

__all__ = ["PointerLSTM"]

GATE = 0.9
"""Weight of the output layer before anything is learned."""

Past = tuple[Tensor, Tensor]
"""The last states (n, K, dim) and the words (n, K) that they had just read."""


class PointerLSTM(TextLSTM):
    """A text LSTM with a pointer over a window, trained together.

    The state after a word stands for that word. A query made of the present state is compared with
    the states in the window and with a sentinel; what the sentinel gets is the weight of the usual
    output layer, and the rest goes to the words in the window.

    Scores are scaled, which the paper does without. The inner products of large states move so far
    in a step of the size that suits the LSTM that the sentinel soon takes all, and a pointer
    without weight learns nothing any more. A bias of the sentinel is not in the paper, either: it
    leaves most of the weight to the output layer at the beginning.

    Parameters
    ----------
    window
        How many words back the pointer reaches, the latest included.
    scale
        Factor of the inner products; ``dim ** -0.25`` if None.
    options
        Of :class:`TextLSTM`.

    References
    ----------
    Merity, Xiong, Bradbury, Socher: Pointer Sentinel Mixture Models (2016), Eq. 1 to 7.

    Examples
    --------
    >>> model = PointerLSTM(labels=10, window=3, dim=8).eval()
    >>> x = torch.tensor([[1, 3, 4, 3]])
    >>> h, _ = model.forward_sequence(x)
    >>> gate, weights, words, _ = model.point(x, h, None)
    >>> gate.shape, words[0, -1].tolist()
    (torch.Size([1, 4]), [1, 3, 4, 3])
    >>> bool(torch.allclose(gate + weights.sum(2), torch.ones(1, 4)))
    True
    >>> weights[0, -1, 0].item()  # four words back
    0.0
    """

    def __init__(
        self,
        labels: int,
        window: int = 100,
        dim: int = 1024,
        scale: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(labels, dim, **options)
        check_sizes(window=window)
        if scale is not None and not scale > 0:
            raise ConfigError(f"scale is {scale}; it must be above 0")
        self.window = window
        # In small trials the usual dim ** -0.5 was as safe, but pointing was learned more slowly.
        self.scale = dim**-0.25 if scale is None else scale
        self.query = nn.Linear(dim, dim)
        self.sentinel = nn.Parameter(torch.zeros(dim))
        self.sentinel_bias = nn.Parameter(torch.tensor([math.log(window * GATE / (1 - GATE))]))

    def point(self, x: Tensor, h: Tensor, past: Past | None) -> tuple[Tensor, Tensor, Tensor, Past]:
        """Where to point after each of the words x (n, T) with states h (n, T, dim).

        Returns
        -------
        gate
            (n, T) weight of the output layer.
        weights, words
            (n, T, K) of the window's words, and these words.
        past
            What the next passage may point at.
        """
        score, sentinel, words, past = self._scores(x, h, past)
        both = torch.softmax(torch.cat([score, sentinel], dim=2), dim=2)
        return both[..., -1], both[..., :-1], words[:, None].expand_as(score), past

    def passage_loss(self, x: Tensor, y: Tensor, carried: Any, half: bool) -> tuple[Tensor, Any]:
        """Mean nats of the words y (n, T) under the mixture."""
        state, past = (self.initial_state(len(x)), None) if carried is None else carried
        # Two states that lost different values hardly look alike, whatever words they stand for.
        h, state = self.whole_sequence(x, state)
        score, sentinel, words, past = self._scores(x, h, past)
        logits = self.logits(self.thinned(h), half)
        nats = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
        # All ways to the right word over all ways, in logarithms: none is ever rounded to 0.
        right = score.masked_fill(words[:, None] != y[..., None], -torch.inf)
        ways = torch.cat([right, sentinel - nats.view_as(y)[..., None]], dim=2)
        everything = torch.cat([score, sentinel], dim=2)
        loss = (torch.logsumexp(everything, dim=2) - torch.logsumexp(ways, dim=2)).mean()
        return loss, (tuple(part.detach() for part in state), past)

    def _scores(
        self, x: Tensor, h: Tensor, past: Past | None
    ) -> tuple[Tensor, Tensor, Tensor, Past]:
        """Of the words so far (n, T, K), of the sentinel (n, T, 1); words (n, K); what is kept."""
        if past is None:
            past = h[:, :0], x[:, :0]
        states, words = torch.cat([past[0], h], dim=1), torch.cat([past[1], x], dim=1)
        query = self.scale * torch.tanh(self.query(h))
        own = past[1].shape[1] + torch.arange(x.shape[1], device=x.device)[:, None]
        place = torch.arange(words.shape[1], device=x.device)
        seen = (place <= own) & (place > own - self.window)
        score = (query @ states.mT).masked_fill(~seen, -torch.inf)
        sentinel = (query @ self.sentinel + self.sentinel_bias)[..., None]
        kept = states[:, -self.window :].detach(), words[:, -self.window :]
        return score, sentinel, words, kept
