"""A GRU over the labels of a stream."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from labelmem.models.cells import gru_cell
from labelmem.models.recurrent import RecurrentModel

__all__ = ["GRUModel"]


class GRUModel(RecurrentModel):
    """Predicts the next label of a stream by a GRU; its state is one tensor (n, layers, dim).

    Parameters are those of :class:`labelmem.models.recurrent.RecurrentModel`.

    Examples
    --------
    >>> import torch
    >>> model = GRUModel(labels=10, dim=8).eval()
    >>> state = model.initial_state(2)
    >>> logits, state = model(torch.tensor([model.start_token, model.start_token]), state)
    >>> logits.shape, state.shape
    (torch.Size([2, 10]), torch.Size([2, 1, 8]))
    >>> h, state = model.forward_sequence(torch.tensor([[10, 3, 4], [10, 7, 7]]))
    >>> model.head(h).shape
    torch.Size([2, 3, 10])
    """

    module = nn.GRU

    def initial_state(self, n: int) -> Tensor:
        """State (n, layers, dim) of n streams that have seen nothing."""
        return self.head.weight.new_zeros(n, self.rnn.num_layers, self.dim)

    def _cell(
        self, x: Tensor, state: tuple[Tensor, ...], weights: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        return (gru_cell(x, *state, *weights),)
