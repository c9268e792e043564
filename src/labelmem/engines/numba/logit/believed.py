"""What a compiled user's prediction is, and the same as the reference has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelmem.engines.numba.logit.belief import (
    CANDIDATES,
    LABELS,
    PEAK,
    REST,
    TOTAL,
    belief_at,
)
from labelmem.fast import Array
from labelmem.logit_memory.cells import Cells, Logits
from labelmem.logit_memory.evidence import Evidence
from labelmem.logit_memory.user import Belief

if TYPE_CHECKING:
    from labelmem.engines.numba.logit.user import CompiledUser

__all__ = ["CompiledBelief", "Heard"]


class Heard:
    """The votes of all cells at one time; copied only when they are about to change."""

    __slots__ = ("__weakref__", "kept")

    def __init__(self) -> None:
        self.kept: tuple[Tensor, ...] | None = None

    def keep(self, user: CompiledUser) -> tuple[Tensor, ...]:
        """Labels, votes, and the cells' own labels."""
        if self.kept is None:
            parts = (user.arrays[name][: user.cells] for name in ("about", "vote", "slot"))
            self.kept = tuple(torch.from_numpy(part.copy()) for part in parts)
        return self.kept


class CompiledBelief:
    """What a compiled user made of one input, kept until its label comes."""

    __slots__ = ("cells", "heard", "root", "room", "slots", "told", "user", "x")

    compiled = True

    def __init__(self, user: CompiledUser, x: Tensor, room: Array, told: Tensor) -> None:
        self.user, self.x, self.room, self.told = user, x, room, told
        self.slots, self.cells, self.root = user.slots, user.cells, user.arrays["root"]
        self.heard = user.heard()

    def plain(self) -> Belief:
        """The same as the reference has it."""
        made, room = self.user, torch.from_numpy(self.room)
        python = getattr(belief_at, "py_func", belief_at)
        b = python(room, made.features, made.listed, made.dim, self.slots, self.cells)
        n, m = int(b.head[CANDIDATES]), self.slots
        rest, total = b.head[REST].float()[None], b.head[TOTAL].float()[None]
        said = Logits(b.listed.long()[None], b.value.float()[None], rest, total)
        label = b.label[: n - 1].long()
        new = torch.cat([label >= made.known, torch.tensor([False])])
        F = b.features[: n * made.features].reshape(made.features, n)
        words = F.T.float()[None].contiguous()
        means = b.means.float()[None]
        cells = Cells(made.dim, made.listed, made.votes, self.x)
        cells.about, cells.vote, cells.slot = self.heard.keep(made)
        return Belief(
            x=self.x,
            said=said,
            peak=float(b.head[PEAK]),
            evidence=Evidence(label, words, b.offset[:n], new, means, F[5, :m] > 0),
            scores=b.scores[:n],
            labels=int(b.head[LABELS]),
            probs=self.told[0, 0],
            theta=b.theta,
            near=b.near.float(),
            cells=cells,
        )
