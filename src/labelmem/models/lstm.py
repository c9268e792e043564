"""An LSTM over the labels of a stream."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from labelmem.models.cells import lstm_cell
from labelmem.models.recurrent import RecurrentModel

__all__ = ["LSTMModel"]


class LSTMModel(RecurrentModel):
    """Predicts the next label of a stream by an LSTM; its state is a pair, both (n, layers, dim).

    Parameters are those of :class:`labelmem.models.recurrent.RecurrentModel`.

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

    module = nn.LSTM

    def initial_state(self, n: int) -> tuple[Tensor, Tensor]:
        """State h and c, both (n, layers, dim), of n streams that have seen nothing."""
        h = self.head.weight.new_zeros(n, self.rnn.num_layers, self.dim)
        return h, h.clone()

    def _cell(
        self, x: Tensor, state: tuple[Tensor, ...], weights: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        return lstm_cell(x, *state, *weights)
