"""Output layers of models whose labels are many: a step is mostly this."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmem.fast import alone, array, visible

__all__ = ["OutputLayer"]


class OutputLayer(nn.Linear):
    """A linear layer with a bias that goes over its weights just once for one stream on a CPU.

    Examples
    --------
    >>> layer = OutputLayer(3, 5)
    >>> with torch.no_grad():
    ...     layer(torch.zeros(1, 3)).shape
    torch.Size([1, 5])
    """

    def forward(self, h: Tensor) -> Tensor:
        """Logits (…, L) of h (…, d)."""
        weight, bias = self.weight, self.bias
        if torch.is_grad_enabled() or h.dim() != 2 or not alone(h) or weight.dtype != h.dtype:
            return super().forward(h)
        if h.shape[1] != weight.shape[1] or weight.device != h.device:
            return super().forward(h)  # where it does not fit, it says so
        if not visible(h, weight, bias):
            return super().forward(h)
        from labelmem.engines.numba.history import outputs

        logits = torch.empty(1, len(bias))
        outputs(array(weight), array(bias), array(h)[0], logits.numpy()[0])
        return logits
