"""What a compiled user's prediction is, and the same as the reference has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelmem.engines.numba.logit import belief as of
from labelmem.engines.numba.logit import layout as at
from labelmem.fast import Array
from labelmem.logit_memory.cells import Cells, Logits
from labelmem.logit_memory.evidence import Evidence
from labelmem.logit_memory.user import Belief

if TYPE_CHECKING:
    from labelmem.engines.numba.logit.user import CompiledUser

__all__ = ["CompiledBelief", "Heard"]


class Heard:
    """The votes of a user's cells at one time; copied only when they are about to change."""

    __slots__ = ("__weakref__", "kept", "user")

    def __init__(self, user: CompiledUser) -> None:
        self.user = user
        self.kept: tuple[Array, Array, Array] | None = None

    def keep(self) -> tuple[Array, Array, Array]:
        """Labels, votes, and the cells' own labels."""
        if self.kept is None:
            held, n = self.user.arrays, self.user.examples
            parts = held[at.ABOUT][:n], held[at.VOTE][:n], held[at.SLOT][:n]
            self.kept = parts[0].copy(), parts[1].copy(), parts[2].copy()
        return self.kept


class CompiledBelief:
    """What a compiled user made of one input, kept until its label comes."""

    __slots__ = ("heard", "room", "root", "told", "user", "x")
    compiled = True

    def __init__(
        self, user: CompiledUser, x: Tensor, room: Array, told: Tensor, heard: Heard
    ) -> None:
        self.user, self.x, self.room, self.told, self.heard = user, x, room, told, heard
        self.root = user.arrays[at.ROOT]

    def plain(self) -> Belief:
        """The same as the reference has it."""
        room, user = self.room, self.user

        def piece(which: int) -> Tensor:
            return torch.from_numpy(of.piece_of(room, which))

        n, numbers = int(room[of.CANDIDATES]), torch.from_numpy(room).float()
        rest, total = numbers[of.REST, None], numbers[of.LOG_SUM, None]
        said = Logits(piece(of.LISTED).long()[None], piece(of.VALUE).float()[None], rest, total)
        label, means = piece(of.LABEL)[: n - 1].long(), piece(of.MEANS).float()[None]
        new = torch.cat([label >= user.known, torch.tensor([False])])
        F = piece(of.FEATURES)[: user.features * n].reshape(user.features, n)
        offset, met = piece(of.OFFSET)[:n], F[5, : means.shape[1]] > 0
        cells = Cells(user.dim, user.listed, user.votes, self.x)
        cells.about, cells.vote, cells.slot = map(torch.from_numpy, self.heard.keep())
        return Belief(
            x=self.x,
            said=said,
            peak=float(room[of.PEAK]),
            evidence=Evidence(label, F.T.float()[None], offset, new, means, met),
            scores=piece(of.SCORES)[:n],
            labels=int(room[of.LABELS]),
            probs=self.told[0, 0],
            theta=piece(of.THETA),
            near=piece(of.NEAR).float(),
            cells=cells,
        )
