"""Caution: by how many nats another label must be ahead of the model's choice."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["Caution"]

_TO_NEW, _TO_KNOWN = 0, 1
_MOST = 6.0
"""The most caution, in nats."""
_CLEARLY = 4.0
"""Nats: a known label that is lost by more was not lost for want of caution."""
_MAY_SWAP = 0.003
"""The share of known labels that may be lost to other known ones."""
_RELIEF = 0.5
"""How much a known label that was gained allows new ones."""
_WRONG = 1.5
"""How many of the known labels that seem lost are wrong labels, in expected ones."""
_SOFT = 0.5
"""Nats around the border where a label is lost in part."""


class Caution:
    """Trust in the model's choice, which grows where a known label was lost and fades otherwise.

    There are two cautions: one towards new labels, one towards other known ones. Each is the
    running sum of known labels lost, less those gained and those that may be lost. So in the long
    run no more are lost than may be, or caution would grow without end.

    Parameters
    ----------
    first
        Caution towards new labels before the first label.
    harm
        The share of known labels that may be lost to new ones.
    """

    def __init__(self, first: float, harm: float) -> None:
        self.harm = harm
        self.nats = torch.tensor([first, 0.0], dtype=torch.float64)

    def towards(self, new: Tensor) -> Tensor:
        """(C,) nats by which candidates must be ahead of the model's choice."""
        to_new, to_known = self.nats.to(new.device)
        return torch.where(new, to_new, to_known)

    def learn(
        self, lead: float, rival_is_new: bool, truth: str, believed: float, wrong: float
    ) -> None:
        """Look at the best rival of the model's choice once the label is known.

        Parameters
        ----------
        lead
            Nats by which the rival was ahead of the choice.
        rival_is_new
            Whether the rival is a label that the model does not know.
        truth
            What was true: the model's ``choice``, the ``rival``, another ``known`` label, or a
            ``new`` one; a rival that is new counts as new.
        believed
            How likely the label is right.
        wrong
            How often a wrong label would look like this.
        """
        kind = _TO_NEW if rival_is_new else _TO_KNOWN
        gap = lead - float(self.nats[kind])
        lost = 1 / (1 + math.exp(-min(max(gap / _SOFT, -30.0), 30.0)))
        change = torch.zeros_like(self.nats)
        change[kind] -= _WRONG * wrong * lost
        if truth != "new":
            change[_TO_NEW] -= self.harm
            change[_TO_KNOWN] -= _MAY_SWAP
            if truth == "choice" and gap < _CLEARLY:
                change[kind] += lost * believed
            elif truth == "rival":
                change[kind] -= lost
                change[_TO_NEW] -= _RELIEF * lost
        self.nats = (self.nats + change).clamp(0.0, _MOST)

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        return {"nats": self.nats}
