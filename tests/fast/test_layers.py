from __future__ import annotations

import torch

from labelmem.fast import array
from labelmem.fast.layers import gru


def test_a_gru_cell_is_that_of_torch() -> None:
    cell = torch.nn.GRUCell(3, 4)
    x, h = torch.randn(3), torch.randn(4)
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    found = gru(array(x), array(h), *(array(weight) for weight in weights))
    torch.testing.assert_close(torch.from_numpy(found), cell(x[None], h[None])[0].detach())
