"""What speaks for each label: a few numbers without a scale, the same for model and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from labelmem.logit_memory.cells import Logits

if TYPE_CHECKING:
    from labelmem.logit_memory.user import User

__all__ = ["Evidence", "gather"]

_CLEAR = 20.0
"""Nats beyond which the mean of a label says nothing more."""
_HALF = 4.0
"""Examples after which the mean of a known label counts by half."""


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
    known, slots, statistics = user.known, user.slot_labels, user.statistics
    m = len(slots)
    listed = (said.label[:, :, None] == slots).any(2)
    label = torch.cat([slots, torch.unique(said.label[~listed])])
    more = len(label) + 1 - m
    new = pad(label >= known, (0, 1))
    rest = known - int((label < known).sum())
    base = _logits_of(label, said, logits) * user.tame
    choice = (label == said.label[:, :1]).to(x.dtype)
    means = statistics.scores(x.double(), without).to(x.dtype)
    count = statistics.counts.to(x.dtype).expand(len(x), -1)
    if without is not None:
        count = (count - one_hot(without, m)).clamp(min=0)
    ahead = statistics.trust * _ahead(means, slots < known, known)
    surprise = -user.surprise(said.total)
    features = [
        torch.where(new, _mass(base, new, rest), base),  # a new label may take all of it
        pad(choice, (0, 1)),
        pad(ahead * ((slots >= known) & (count > 0)), (0, more)),
        pad(ahead * (slots < known) * count / (count + _HALF), (0, more)),
        surprise[:, None] * new,  # a model that is unusually sure speaks against new labels
        pad((2 * count + 1).log(), (0, more)),
        pad(user.options.strength * votes, (0, more)),
        pad(_rows(user, said, choice[:, :m], without), (0, more)),
        pad(user.corrections.scores(x.double() - statistics.origin).to(x.dtype), (0, more)),
    ]
    offset = x.new_zeros(len(new), dtype=torch.float64)
    offset[new] = user.prior_of_new
    offset[-1] = _log(rest, x)
    met = statistics.counts > 0
    return Evidence(label, torch.stack(features, dim=2), offset, new, means, met)


def _logits_of(label: Tensor, said: Logits, logits: Tensor | None) -> Tensor:
    """(J, C) logits of the candidates, the rest's last; of new labels they mean nothing."""
    if logits is None:
        hit = said.label[:, :, None] == label
        largest = (hit * said.value[:, :, None]).sum(1)
        base = torch.where(hit.any(1), largest, said.rest[:, None])
    else:
        base = logits[:, label.clamp(max=logits.shape[1] - 1)]
    return torch.cat([base, said.rest[:, None]], 1)


def _mass(base: Tensor, new: Tensor, rest: int) -> Tensor:
    """(J, 1) log-sum of the logits of all known labels."""
    held = base.masked_fill(new, -torch.inf)
    last = held[:, -1:] + _log(rest, base)
    return torch.cat([held[:, :-1], last], 1).logsumexp(1, keepdim=True)


def _ahead(means: Tensor, of_known: Tensor, known: int) -> Tensor:
    """(J, m) nats by which each mean explains the key better than what is known does.

    Known labels without examples explain it as well as the mean of all keys, whose score is 0.
    """
    unseen = _log(known - int(of_known.sum()), means).expand(len(means), 1)
    seen = means.masked_fill(~of_known, -torch.inf)
    ground = torch.cat([seen, unseen], 1).logsumexp(1, keepdim=True) - math.log(known)
    return (means - ground).clamp(-_CLEAR, _CLEAR)


def _rows(user: User, said: Logits, choice: Tensor, without: Tensor | None) -> Tensor:
    """(J, m) log of how often each slot's label was true when the model said the same.

    It is relative to how often that would be by itself.
    """
    true = torch.stack([user.row_of(answer) for answer in said.label[:, 0].tolist()])
    if without is not None:
        true = (true - one_hot(without, true.shape[1])).clamp(min=0)
    before = 0.5 / user.labels + 0.5 * choice
    return ((true + before) / before).log()


def _log(number: float, like: Tensor) -> Tensor:
    return like.new_tensor(number).log()
