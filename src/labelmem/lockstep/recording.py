"""A recorded step of many streams: of what it is made, and where it leaves what it finds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, Protocol

import torch
from torch import Tensor

from labelmem.stepping import Step
from labelmem.trees import leaves
from labelmem.trust import Awaited

__all__ = ["Graph", "Recording", "checked", "narrowed", "padded", "settled"]


class Graph(Protocol):
    """Recorded work."""

    def replay(self) -> None:
        """Do it again, on the same bytes."""


@dataclass
class Recording:
    """A prediction and the observation of its labels."""

    x: Any
    width: int
    """The number of label columns."""
    predict: Graph
    step: Step
    fine: Tensor
    """Whether each thing that was taken on trust was so."""
    y: Tensor
    mask: Tensor
    answers: Awaited
    """Whether the step was fine, no id is below 0, and no label is a stream's own."""
    observe: Graph
    before: dict[str, Tensor]
    """What the state consists of."""
    after: dict[str, Tensor]
    """What it consists of afterwards."""
    unmasked: bool = True
    """Whether the mask is known to be true for all streams."""

    def __post_init__(self) -> None:
        self.moves = any(t is not self.before[name] for name, t in self.after.items())
        self._held, self._inputs = list(self.before.values()), list(leaves(self.x))

    def fits(self, x: list[Tensor], width: int, held: list[Tensor]) -> bool:
        """Whether it takes inputs like these over so many labels, from a state ``held`` there.

        Tensors are the same if they are one object: a recording keeps its own alive, so that no
        other can take their place.
        """
        return (
            width == self.width
            and len(held) == len(self._held)
            and all(map(is_, held, self._held))
            and len(x) == len(self._inputs)
            and all(map(_alike, x, self._inputs))
        )

    def take(self, x: list[Tensor]) -> None:
        """Put inputs that fit where they are looked for."""
        for theirs, given in zip(self._inputs, x, strict=True):
            theirs.copy_(given)

    def tell(self, y: Tensor, mask: Tensor | None) -> bool:
        """Put labels and mask where they are looked for; False if a recording must refuse them."""
        if y.shape != self.y.shape or y.is_floating_point():
            return False
        if mask is not None:
            if mask.shape != self.mask.shape or mask.dtype != torch.bool:
                return False
            self.mask.copy_(mask)
        elif not self.unmasked:
            self.mask.fill_(True)
        self.unmasked = mask is None
        self.y.copy_(y)
        return True


def _alike(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype


def padded(width: int, known: int) -> int:
    """The number of label columns to record for: one recording should serve many new labels.

    Examples
    --------
    >>> padded(10, known=10), padded(11, known=10), padded(100, known=10)
    (10, 74, 138)
    """
    own = width - known
    return known if own <= 0 else known + max(64, 1 << (own - 1).bit_length())


def checked(
    fine: Tensor, y: Tensor, mask: Tensor, known: int, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """What is answered of a step (3,), its labels (n,) as they are learned, and where (n,).

    A step that was not fine must leave all streams as they are. Nor may they learn labels beyond
    its columns: the prediction that comes next might be over the same.

    Parameters
    ----------
    fine
        (D,) whether each thing that was taken on trust was so.
    known
        The number of labels that are no stream's own.
    width
        The number of columns.

    Examples
    --------
    >>> fine, mask = torch.tensor([True]), torch.tensor([True, False])
    >>> answers, labels, seen = checked(fine, torch.tensor([3, 9]), mask, known=3, width=5)
    >>> answers.tolist(), labels.tolist(), seen.tolist()
    ([True, True, False], [3, 9], [True, False])
    """
    most, whole = y.where(mask, -1).max(), (y >= 0).all()
    well = fine.all() & (most < width)
    return torch.stack([well, whole, most < known]), y.clamp(min=0), mask & well & whole


def settled(before: dict[str, Tensor], after: dict[str, Tensor]) -> dict[str, Tensor]:
    """Move what is new to where the state lies; tensors that changed places are left there."""
    places = {t.data_ptr() for t in before.values() if t.numel()}
    found, moves = {}, defaultdict[torch.dtype, list[tuple[Tensor, Tensor]]](list)
    for name, old in before.items():
        found[name] = new = after[name]
        if new.data_ptr() not in places and new.numel():
            found[name] = old
            moves[old.dtype].append((old, new))
    for pairs in moves.values():  # a device does those of a kind at once
        torch._foreach_copy_([old for old, _ in pairs], [new for _, new in pairs])
    return found


def narrowed(step: Step, width: int) -> Step:
    """The first columns; what is given away is copied, as the recording will write there again."""
    if step.probs.shape[1] == width:
        return replace(step, probs=step.probs.clone())
    names = ("theta", "model_probs", "memory_probs")
    dense = {name: getattr(step, name) for name in names}
    cut = {name: None if t is None else t[:, :width] for name, t in dense.items()}
    return replace(step, probs=step.probs[:, :width].clone(), **cut)
