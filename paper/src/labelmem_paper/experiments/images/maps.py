"""The network's last maps beside h: what a memory can compare where h says too little."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem.functional import normalise
from labelmem.keys import Key
from labelmem.models import ConvNet

__all__ = ["BesideMaps", "Maps", "maps_and_h"]

_EDGE = 4  # the side of a map after it was averaged down


def maps_and_h(network: ConvNet, x: Tensor) -> tuple[Tensor, Tensor]:
    """The last maps (n, channels * 16), averaged down to 4 x 4, and h (n, dim) of pictures x.

    Examples
    --------
    >>> network = ConvNet(labels=3, dim=5, size=8, channels=(2, 6))
    >>> maps, h = maps_and_h(network, torch.zeros(2, 1, 8, 8))
    >>> maps.shape, bool((h == network.embed(torch.zeros(2, 1, 8, 8))).all())
    (torch.Size([2, 96]), True)
    """
    maps = x
    for layer in network.body:
        if isinstance(layer, nn.Flatten):
            maps = x
        x = layer(x)
    return nn.functional.adaptive_avg_pool2d(maps, _EDGE).flatten(1), x


class BesideMaps(nn.Module):
    """The head of a network on inputs that are h and, behind it, maps which it does not look at."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        """Logits of inputs (n, dim + maps)."""
        logits: Tensor = self.head(x[:, : self.head.in_features])
        return logits


class Maps(Key):
    """What lies behind h in the input, scaled to one length: a part of a joined key.

    A head needs of h what tells its own labels apart. The maps before it still hold what else is in
    the picture, which tells new labels apart too.

    Parameters
    ----------
    width
        How many numbers the maps have.
    share
        The length of this part, next to an h of length one.

    Examples
    --------
    >>> x, h = torch.tensor([[9.0, 3.0, 4.0]]), torch.tensor([[9.0]])
    >>> Maps(width=2, share=0.5)(x, h, None)[0]
    tensor([[0.3000, 0.4000]])
    """

    def __init__(self, width: int, share: float = 1.0) -> None:
        if not share > 0:
            raise ConfigError(f"share is {share}; it must be above 0")
        self.width, self.share = width, share

    def initial_state(self, streams: int, device: torch.device) -> None:
        """Nothing."""

    def __call__(self, x: Any, h: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The direction of the maps."""
        return self.share * normalise(x[:, h.shape[1] :]), state

    def blocks(self, dim: int) -> tuple[int, ...]:
        """One."""
        return (self.width,)
