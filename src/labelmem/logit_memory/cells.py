"""Remembered examples, and the signed votes of each for and against some labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Cells", "Logits"]

_TINY = 1e-9


@dataclass(frozen=True)
class Logits:
    """What a model said of ``J`` inputs: its largest logits one by one, all others as one number.

    Examples
    --------
    >>> said = Logits.of(torch.tensor([[0.0, 2.0, 1.0, 1.0]]), top=2)
    >>> said.label[0].tolist()[0], said.value[0, 0].item(), round(said.rest.item(), 3)
    (1, 2.0, 0.62)
    """

    label: Tensor
    """(J, k) the labels of the largest logits, largest first."""
    value: Tensor
    """(J, k) these logits."""
    rest: Tensor
    """(J,) what each of the others is taken to be: together they have their mass."""
    total: Tensor
    """(J,) log-sum of all."""

    @staticmethod
    def of(logits: Tensor, top: int) -> Logits:
        """Look at logits (J, L)."""
        value, label = logits.topk(min(top, logits.shape[1]), dim=1)
        total = logits.logsumexp(1)
        others = logits.shape[1] - value.shape[1]
        if not others:
            return Logits(label, value, total, total)
        small = logits.scatter(1, label, -torch.inf).logsumexp(1)
        least = total + math.log(_TINY)
        return Logits(label, value, small.maximum(least) - math.log(others), total)

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        return vars(self)


class Cells:
    """Keys of examples, what the model said of them, their labels, and the votes of each cell.

    A key at x hears the votes ``sum exp(-sharpness / 2 |x - x_j|² / size²) v_j``, size² the mean
    of ``|x_j|²``: nothing is normalised, so far from all cells there are none.
    """

    def __init__(self, dim: int, top: int, votes: int, like: Tensor) -> None:
        whole = {"dtype": torch.int64, "device": like.device}
        self.key = like.new_zeros(0, dim)
        self.place = like.new_zeros(0, dim)
        """(N, d) the keys where distances are measured."""
        self.slot = torch.zeros(0, **whole)  # type: ignore[call-overload]
        self.about = torch.zeros(0, votes, **whole)  # type: ignore[call-overload]
        """(N, v) the slots of the labels that a cell votes about."""
        self.vote = like.new_zeros(0, votes)
        self.label = torch.zeros(0, top, **whole)  # type: ignore[call-overload]
        self.value = like.new_zeros(0, top)
        self.rest = like.new_zeros(0)
        self.total = like.new_zeros(0)

    def __len__(self) -> int:
        return len(self.key)

    def kernel(self, place: Tensor, sharpness: float) -> Tensor:
        """(J, N) how near the cells are to places (J, d); 1 at the same place."""
        size = self.place.square().sum(1).mean().clamp(min=_TINY)
        # By differences: by products, keys at the same place would seem some way apart.
        off = torch.cdist(place, self.place, compute_mode="donot_use_mm_for_euclid_dist")
        return torch.exp(-sharpness / 2 * off.square() / size)

    def votes(self, kernel: Tensor, slots: int) -> Tensor:
        """(J, m) the votes heard for each slot."""
        heard = (kernel[:, :, None] * self.vote).flatten(1)
        zeros = kernel.new_zeros(len(kernel), slots)
        return zeros.index_add(1, self.about.flatten(), heard)

    def logits(self, cells: Tensor) -> Logits:
        """What the model said of some cells."""
        return Logits(self.label[cells], self.value[cells], self.rest[cells], self.total[cells])

    def write(self, x: Tensor, place: Tensor, slot: int, said: Logits, capacity: int) -> int:
        """Remember an example (d,) that lies at a place (d,), without a vote; give its number."""
        new = {
            "key": x,
            "place": place,
            "slot": torch.tensor(slot, device=x.device),
            "about": self.about.new_full((self.about.shape[1],), slot),
            "vote": x.new_zeros(self.vote.shape[1]),
            **{name: value[0] for name, value in said.tensors().items()},
        }
        number = len(self) if len(self) < capacity else int(self.vote[:, 0].abs().argmin())
        for name, value in new.items():
            old = getattr(self, name)  # never changed in place: a prediction may still look at it
            setattr(self, name, torch.cat([old[:number], value[None], old[number + 1 :]]))
        return number

    def vote_anew(self, cells: Tensor, about: Tensor, vote: Tensor) -> None:
        """Replace the votes of some cells."""
        self.about = self.about.index_copy(0, cells, about)
        self.vote = self.vote.index_copy(0, cells, vote)

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        return vars(self)
