"""An LSTM language model with the regularisation that texts of a few million words need."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.models import LSTMModel
from labelmem.models.recurrent import State
from labelmem.models.sizes import check_dropout

__all__ = ["TextLSTM"]


class TextLSTM(LSTMModel):
    """An LSTM whose output layer uses the words' input vectors, for running text.

    What is dropped in training is locked: one mask for all words of a passage. Masks that change
    from word to word can be had as well; they hold the model back less.

    Parameters
    ----------
    labels
        Number of words.
    dim
        Size of the words' vectors, of the state, and of h.
    layers
        Stacked layers; the head sees the last.
    dropout
        Share of h that is dropped.
    input_dropout
        Share of the words' vectors that is dropped; as ``dropout`` if None.
    between
        Share of the values between layers that is dropped; as ``dropout`` if None.
    weight_drop
        Share of the recurrent weights that is dropped (DropConnect), another one in each passage.
    word_drop
        Share of the words whose input vectors are 0 for a whole passage.
    locked
        Whether vectors lose the same values at every word of a passage.

    References
    ----------
    Merity, Keskar, Socher: Regularizing and Optimizing LSTM Language Models (2018).

    Examples
    --------
    >>> model = TextLSTM(labels=10, dim=8, layers=2, weight_drop=0.5).eval()
    >>> h, state = model.forward_sequence(torch.tensor([[1, 3, 4], [2, 7, 7]]))
    >>> model.head(h).shape, state[0].shape
    (torch.Size([2, 3, 10]), torch.Size([2, 2, 8]))
    """

    def __init__(
        self,
        labels: int,
        dim: int = 1024,
        layers: int = 1,
        dropout: float = 0.65,
        input_dropout: float | None = None,
        between: float | None = None,
        weight_drop: float = 0.0,
        word_drop: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__(labels, dim, layers=layers, tied=True)
        # Over a large vocabulary, vectors that are scaled up on their way in move too far with
        # every update of the rare words; unscaled ones settle.
        self.embedding.scale = 1.0
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        nn.init.zeros_(self.head.bias)
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.between = dropout if between is None else between
        self.weight_drop, self.word_drop, self.locked = weight_drop, word_drop, locked
        for share in (dropout, self.input_dropout, self.between, weight_drop, word_drop):
            check_dropout(share)

    def passage_loss(self, x: Tensor, y: Tensor, carried: Any, half: bool) -> tuple[Tensor, Any]:
        """Mean nats of the words y (n, T) that follow x (n, T), and what the next passage needs.

        Parameters
        ----------
        carried
            What the passage before gave; None at the start of the text.
        half
            Whether the output layer computes in 16 bits (bfloat16).
        """
        h, state = self.forward_sequence(x, carried)
        loss = nn.functional.cross_entropy(self.logits(h, half).flatten(0, 1), y.flatten())
        return loss, tuple(part.detach() for part in state)

    def logits(self, h: Tensor, half: bool = False) -> Tensor:
        """(..., labels) of h (..., dim), in 32 bits whatever they were computed in."""
        with torch.autocast(h.device.type, torch.bfloat16, enabled=half):
            logits: Tensor = self.head(h)
        return logits.float() if half else logits

    def whole_sequence(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """As ``forward_sequence``, but nothing of h itself is dropped in training."""
        if not self.training:
            return super()._sequence(tokens, state)
        x = self._words(tokens)
        ends = []
        for layer in range(self.rnn.num_layers):
            share = self.input_dropout if layer == 0 else self.between
            x, end = self._layer(layer, self._thinned(x, share), state)
            ends.append(end)
        return x, tuple(torch.stack(part, 1) for part in zip(*ends, strict=True))

    def thinned(self, h: Tensor) -> Tensor:
        """What the output layer gets of h (n, T, dim): in training some of it is dropped."""
        return self._thinned(h, self.dropout) if self.training else h

    def _sequence(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        h, new = self.whole_sequence(tokens, state)
        return self.thinned(h), new

    def _words(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.embedding(tokens)
        if not self.word_drop:
            return x
        kept = torch.rand(self.labels + 1, device=x.device) >= self.word_drop
        return x * (kept[tokens] / (1 - self.word_drop))[..., None]

    def _thinned(self, x: Tensor, share: float) -> Tensor:
        """Drop values of x (n, T, dim); the same ones at every step if they are locked."""
        if not self.locked:
            return nn.functional.dropout(x, share)
        return x * nn.functional.dropout(x.new_ones(len(x), 1, x.shape[2]), share)

    def _layer(self, layer: int, x: Tensor, state: State) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """One layer over all steps; its recurrent weights thinned."""
        weights: list[Tensor] = list(self.rnn.all_weights[layer])
        if self.weight_drop:
            weights[1] = nn.functional.dropout(weights[1], self.weight_drop)
        start = [part[:, layer][None].contiguous() for part in state]
        with warnings.catch_warnings():
            # Thinned weights are no part of one block of memory; the copy is cheap beside the rest.
            warnings.filterwarnings("ignore", message="RNN module weights are not part")
            out, h, c = torch._VF.lstm(x, start, weights, True, 1, 0.0, True, False, True)
        return out, (h[0], c[0])
