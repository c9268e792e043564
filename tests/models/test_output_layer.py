from __future__ import annotations

import pytest
import torch
from torch.func import vmap

from labelmem.fast import plainly
from labelmem.models.output_layer import OutputLayer


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("labels", [1, 4, 11])
def test_one_row_comes_out_as_ever(labels: int, dtype: torch.dtype) -> None:
    layer = OutputLayer(7, labels, dtype=dtype)
    h = torch.randn(1, 7, dtype=dtype)
    with torch.no_grad():
        with plainly():
            expected = layer(h)
        torch.testing.assert_close(layer(h), expected, rtol=0, atol=1e-5)


def test_other_shapes_and_gradients_go_the_plain_way() -> None:
    layer = OutputLayer(7, 3)
    assert layer(torch.zeros(1, 7)).requires_grad
    with torch.no_grad():
        assert layer(torch.zeros(2, 4, 7)).shape == (2, 4, 3)
        h = torch.randn(4, 1, 7)
        torch.testing.assert_close(vmap(layer)(h), layer(h))
        with pytest.raises(RuntimeError):
            layer(torch.zeros(1, 6))
