"""An LSTM with a vector beside it that belongs to the sequence."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor, nn

from labelmem.models.cells import lstm_cell
from labelmem.models.embedding import TokenEmbedding
from labelmem.models.sizes import check_dropout, check_sizes

__all__ = ["SequenceVectorLSTM", "VectorState"]

VectorState: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""The LSTM's h and c, (n, dim), and the vectors of the sequences, (n, vector)."""


class SequenceVectorLSTM(nn.Module):
    """Predicts the next label from the labels so far and a vector of the sequence.

    The vector enters the hidden layer, beside the latest label, and the output layer, beside h. It
    starts at zero: a start that is learned would be the same as other biases of the two layers.

    Parameters
    ----------
    labels
        Number of labels L; tokens are 0 .. L-1, and L for the start of a stream.
    dim
        Size of h.
    vector
        Size of the sequence's vector.
    dropout
        Share of the labels' vectors and of h that is dropped in training.
    tied
        Whether the output layer's weight for h is the labels' vectors.

    Examples
    --------
    >>> network = SequenceVectorLSTM(labels=10, dim=8, vector=4)
    >>> logits, (h, c, v) = network(torch.tensor([10, 10]), network.initial_state(2))
    >>> logits.shape, v
    (torch.Size([2, 10]), tensor([[0., 0., 0., 0.],
                                  [0., 0., 0., 0.]]))

    References
    ----------
    Rei (2015), Online Representation Learning in Recurrent Neural Language Models. Its hidden layer
    was a simple recurrent one and its output was split into classes of words.
    """

    def __init__(
        self,
        labels: int,
        dim: int = 50,
        vector: int = 50,
        dropout: float = 0.0,
        tied: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(labels=labels, dim=dim, vector=vector)
        check_dropout(dropout)
        self.labels, self.dim, self.vector = labels, dim, vector
        self.embedding = TokenEmbedding(labels, dim, dim**0.5 if tied else 1.0)
        self.cell = nn.LSTMCell(dim + vector, dim)
        self.head = nn.Linear(dim, labels)
        if tied:
            self.head.weight = self.embedding.weight
        self.vector_head = nn.Linear(vector, labels, bias=False)
        self.drop = nn.Dropout(dropout)

    def initial_state(self, n: int) -> VectorState:
        """State of n streams that have seen nothing."""
        zeros = self.head.weight.new_zeros
        return zeros(n, self.dim), zeros(n, self.dim), zeros(n, self.vector)

    def forward(self, tokens: Tensor, state: VectorState) -> tuple[Tensor, VectorState]:
        """Logits (n, labels) and new state after the tokens (n,); the vectors are as before."""
        h, c, v = state
        x = torch.cat([self.drop(self.embedding(tokens)), v], 1)
        cell = self.cell
        h, c = lstm_cell(x, h, c, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        return self.head(self.drop(h)) + self.vector_head(v), (h, c, v)
