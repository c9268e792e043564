"""What the network believes of a picture, as a part of the memory's key."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem.keys import Key

__all__ = ["Beliefs"]


class Beliefs(Key):
    """Square roots of the network's probabilities: two pictures are alike if it confuses them.

    They have length one, and the cosine of two of them is Bhattacharyya's coefficient of the two
    distributions. A picture of a label that the network does not know looks to it like a certain
    mixture of those that it knows, and so will the next one.

    Parameters
    ----------
    head
        The network after h.
    share
        The length of this part, next to other parts of length one.

    Examples
    --------
    >>> head = nn.Linear(1, 2, bias=False)
    >>> _ = head.weight.data.copy_(torch.tensor([[0.0], [1.0]]))
    >>> Beliefs(head)(None, torch.zeros(1, 1), None)[0] ** 2
    tensor([[0.5000, 0.5000]])
    """

    def __init__(self, head: nn.Linear, share: float = 1.0) -> None:
        if not share > 0:
            raise ConfigError(f"share is {share}; it must be above 0")
        self.head, self.share = head, share

    def initial_state(self, streams: int, device: torch.device) -> None:
        """Nothing."""

    @torch.no_grad()
    def __call__(self, x: Any, h: Tensor, state: Any) -> tuple[Tensor, Any]:
        """What the head makes of h."""
        return self.share * torch.softmax(self.head(h), dim=1).sqrt(), state

    def blocks(self, dim: int) -> tuple[int, ...]:
        """One."""
        return (self.head.out_features,)
