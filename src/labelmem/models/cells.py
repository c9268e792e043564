"""One step of a recurrent cell in plain tensor operations.

The fused kernels behind ``nn.GRU`` and ``nn.LSTM`` are the faster way through a whole sequence.
For a single step these are at least as fast, can run under ``torch.vmap`` with weights of their own
for every stream, and can be differentiated twice.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

__all__ = ["gru_cell", "lstm_cell"]


def gru_cell(
    x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> Tensor:
    """Next state (n, d) from the input x (n, e) and the state h (n, d), weights as in ``nn.GRU``.

    Examples
    --------
    >>> gru = torch.nn.GRU(3, 2)
    >>> gru_cell(torch.ones(5, 3), torch.zeros(5, 2), *gru.all_weights[0]).shape
    torch.Size([5, 2])
    """
    from_x, from_h = linear(x, w_ih, b_ih), linear(h, w_hh, b_hh)
    x_reset, x_update, x_new = from_x.chunk(3, -1)
    h_reset, h_update, h_new = from_h.chunk(3, -1)
    reset = torch.sigmoid(x_reset + h_reset)
    update = torch.sigmoid(x_update + h_update)
    new = torch.tanh(x_new + reset * h_new)
    return new + update * (h - new)


def lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """Next h and c (n, d) from the input x (n, e) and the state, weights as in ``nn.LSTM``.

    Examples
    --------
    >>> lstm, state = torch.nn.LSTM(3, 2), torch.zeros(5, 2)
    >>> h, c = lstm_cell(torch.ones(5, 3), state, state, *lstm.all_weights[0])
    >>> h.shape
    torch.Size([5, 2])
    """
    gates = linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh)
    write, keep, new, show = gates.chunk(4, -1)
    c = torch.sigmoid(keep) * c + torch.sigmoid(write) * torch.tanh(new)
    return torch.sigmoid(show) * torch.tanh(c), c
