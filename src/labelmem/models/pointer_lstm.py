"""The pointer sentinel mixture: a language model that may point back at one of its last words."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from labelmem.metrics import FLOOR
from labelmem.models.sizes import check_sizes
from labelmem.models.text_lstm import TextLSTM

__all__ = ["PointerLSTM"]

Past = tuple[Tensor, Tensor]
"""The last states (n, K, dim) and the words (n, K) that they had just read."""


class PointerLSTM(TextLSTM):
    """A text LSTM with a pointer over a window, trained together.

    The state after a word stands for that word. A query made of the present state is compared with
    the states in the window and with a sentinel; what the sentinel gets is the weight of the usual
    output layer, and the rest goes to the words in the window.

    Parameters
    ----------
    window
        How many words back the pointer reaches, the latest included.
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

    def __init__(self, labels: int, window: int = 100, dim: int = 1024, **options: Any) -> None:
        super().__init__(labels, dim, **options)
        check_sizes(window=window)
        self.window = window
        self.query = nn.Linear(dim, dim)
        self.sentinel = nn.Parameter(torch.zeros(dim))

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
        if past is None:
            past = h[:, :0], x[:, :0]
        states, words = torch.cat([past[0], h], dim=1), torch.cat([past[1], x], dim=1)
        query = torch.tanh(self.query(h))
        own = past[1].shape[1] + torch.arange(x.shape[1], device=x.device)[:, None]
        place = torch.arange(words.shape[1], device=x.device)
        seen = (place <= own) & (place > own - self.window)
        score = (query @ states.mT).masked_fill(~seen, -torch.inf)
        both = torch.softmax(torch.cat([score, (query @ self.sentinel)[..., None]], dim=2), dim=2)
        kept = states[:, -self.window :].detach(), words[:, -self.window :]
        return both[..., -1], both[..., :-1], words[:, None].expand_as(score), kept

    def passage_loss(self, x: Tensor, y: Tensor, carried: Any, half: bool) -> tuple[Tensor, Any]:
        """Mean nats of the words y (n, T) under the mixture."""
        state, past = (None, None) if carried is None else carried
        h, state = self.forward_sequence(x, state)
        log_r = torch.log_softmax(self.logits(h, half), dim=2).gather(2, y[..., None])[..., 0]
        gate, weights, words, past = self.point(x, h, past)
        p = gate * log_r.exp() + (weights * (words == y[..., None])).sum(2)
        loss = -torch.log(p.clamp(min=FLOOR)).mean()
        return loss, (tuple(part.detach() for part in state), past)
