"""What speaks for each label: a few numbers without a scale, the same for model and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelmem.logit_memory.cells import Logits

if TYPE_CHECKING:
    from labelmem.logit_memory.user import User

__all__ = ["Evidence", "gather"]

_CLEAR = 20.0
"""Nats beyond which the mean of a label says nothing more."""
_SEEN = 5
"""Steps before it is known what a usual log-sum is."""


@dataclass(frozen=True)
class Evidence:
    """The features of some candidates for ``J`` inputs; all other labels are one candidate more.

    Candidates are the labels that the memory has a slot for, in their order, then those of the
    model's largest logits, then, as one, all labels that only the model's small logits speak of.
    """

    label: Tensor
    """(C - 1,) the labels of the candidates, but for the last."""
    features: Tensor
    """(J, C, k), in the order of :data:`labelmem.logit_memory.options.FEATURES`."""
    offset: Tensor
    """(C,) of new labels the log of how often each came, of the rest the log of its number."""
    new: Tensor
    """(C,) the labels that the model does not know."""
    means: Tensor
    """(J, m) the scores of the slots' means."""
    met: Tensor
    """(m,) the slots whose labels have examples."""

    def scores(self, theta: Tensor) -> Tensor:
        """(J, C) nats."""
        return (self.features.double() @ theta) + self.offset

    def column(self, label: int) -> int:
        """Where a label stands; among the rest if it is no candidate."""
        found = (self.label == label).nonzero()
        return int(found[0]) if len(found) else len(self.label)


def gather(
    user: User,
    x: Tensor,
    said: Logits,
    votes: Tensor,
    logits: Tensor | None = None,
    without: Tensor | None = None,
) -> Evidence:
    """Ask the model's answer, means, votes and rows about ``J`` inputs.

    Parameters
    ----------
    user
        Whose memory it is.
    x
        (J, d) keys.
    said
        What the model said.
    votes
        (J, m) what the cells say of the slots.
    logits
        (J, L) all that the model said, where it is still there.
    without
        (J,) the slots of the labels that the inputs are remembered examples of; they do not count.
    """
    known, slots = user.known, user.slot_labels
    m = len(slots)
    listed = (said.label[:, :, None] == slots).any(2)
    label = torch.cat([slots, torch.unique(said.label[~listed])])
    candidates, is_new = len(label), label >= known
    seen = user.statistics.counts.to(x.dtype)
    count = torch.cat([seen, x.new_zeros(candidates - m)]).expand(len(x), -1)
    means = user.statistics.scores(x.double(), without).to(x.dtype)
    if without is not None:
        own = torch.nn.functional.one_hot(without, candidates).to(x.dtype)
        count = (count - own).clamp(min=0)
    features = x.new_zeros(len(x), candidates + 1, 7)
    # What the model says; a new label has all of the model's mass to take.
    tame = user.tame
    if logits is None:
        base = said.rest[:, None].repeat(1, candidates)
        hit = said.label[:, :, None] == label
        base = torch.where(hit.any(1), (hit * said.value[:, :, None]).sum(1), base)
    else:
        base = logits[:, label.clamp(max=known - 1)]
    base = torch.cat([base, said.rest[:, None]], 1) * tame
    rest = known - int((~is_new).sum())
    total = torch.cat([base, base.new_full((len(x), 1), 0)], 1)[:, :-1]
    weighed = total + torch.cat([torch.where(is_new, -torch.inf, 0.0), _log(rest, x)[None]])
    total = weighed.logsumexp(1, keepdim=True)
    ends = torch.cat([is_new, is_new.new_zeros(1)])
    features[:, :, 0] = torch.where(ends, total, base)
    choice = label == said.label[:, :1]
    features[:, :-1, 1] = choice.to(x.dtype)
    # How much better the mean of a new label explains x than what is known does.
    known_slots = slots < known
    unseen = float(known - int(known_slots.sum()))
    ground = torch.cat(
        [means.masked_fill(~known_slots, -torch.inf), _log(unseen, x).expand(len(x), 1)], 1
    ).logsumexp(1, keepdim=True) - math.log(known)
    ahead = (means - ground).clamp(-_CLEAR, _CLEAR)
    features[:, :m, 2] = ahead * (~known_slots & (count[:, :m] > 0))
    # A model that is unusually sure speaks against all new labels.
    surprise = -user.surprise(said.total)
    features[:, :, 3] = surprise[:, None] * ends
    features[:, :-1, 4] = (2 * count + 1).log()
    features[:, :m, 5] = user.options.strength * votes
    # What was true when the model said the same.
    features[:, :m, 6] = _rows(user, said.label[:, 0], choice[:, :m], without)
    offset = x.new_zeros(candidates + 1, dtype=torch.float64)
    offset[ends] = user.prior_of_new
    offset[-1] = _log(rest, x)
    return Evidence(label, features, offset, ends, means, user.statistics.counts > 0)


def _rows(user: User, said: Tensor, choice: Tensor, without: Tensor | None) -> Tensor:
    """(J, m) log of how often each slot's label was true, over how often it would be by itself."""
    true = torch.stack([user.row_of(label) for label in said.tolist()])
    if without is not None:
        own = torch.nn.functional.one_hot(without, true.shape[1]).to(true.dtype)
        true = (true - own).clamp(min=0)
    before = 0.5 / user.labels + 0.5 * choice
    return ((true + before) / before).log()


def _log(number: float, like: Tensor) -> Tensor:
    return like.new_tensor(number).log()
