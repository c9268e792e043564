"""An LSTM over the labels of a stream."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from labelmem.models.cells import lstm_cell
from labelmem.models.recurrent import RecurrentModel
from labelmem.models.sizes import check_dropout, check_sizes

__all__ = ["LSTMModel"]


class LSTMModel(RecurrentModel):
    """Predicts the next label of a stream by an LSTM; its state is a pair, both (n, layers, dim).

    Parameters
    ----------
    labels
        Number of labels L; tokens are 0 .. L-1, and L for the start of a stream.
    dim
        Size of h, which the head and the memory see.
    embedding
        Size of the labels' input vectors; ``dim`` if None.
    dropout
        Share of the embedding, of the values between layers and of h that is dropped in training.
    layers
        Stacked layers; the head sees the last.
    tied
        Whether the head's weight is the labels' input vectors: fewer parameters, often better on
        language. Needs ``embedding`` equal to ``dim``.

    Examples
    --------
    >>> import torch
    >>> model = LSTMModel(labels=10, dim=8).eval()
    >>> state = model.initial_state(2)
    >>> logits, (h, c) = model(torch.tensor([model.start_token, model.start_token]), state)
    >>> logits.shape, h.shape
    (torch.Size([2, 10]), torch.Size([2, 1, 8]))
    >>> h, state = model.forward_sequence(torch.tensor([[10, 3, 4], [10, 7, 7]]))
    >>> model.head(h).shape
    torch.Size([2, 3, 10])
    """

    def __init__(
        self,
        labels: int,
        dim: int = 128,
        embedding: int | None = None,
        dropout: float = 0.0,
        layers: int = 1,
        tied: bool = False,
    ) -> None:
        embedding = dim if embedding is None else embedding
        check_sizes(labels=labels, dim=dim, embedding=embedding, layers=layers)
        check_dropout(dropout)
        between = dropout if layers > 1 else 0.0  # torch warns of a dropout without effect
        rnn = nn.LSTM(embedding, dim, layers, batch_first=True, dropout=between)
        super().__init__(rnn, labels, dropout, tied)

    def initial_state(self, n: int) -> tuple[Tensor, Tensor]:
        """State h and c, both (n, layers, dim), of n streams that have seen nothing."""
        h = self.head.weight.new_zeros(n, self.rnn.num_layers, self.dim)
        return h, h.clone()

    def _cell(
        self, x: Tensor, state: tuple[Tensor, ...], weights: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        return lstm_cell(x, *state, *weights)
