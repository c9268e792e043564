"""All that one stream remembers in the library's default form, and how it learns a label."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem.logit_memory.cells import Cells, Logits
from labelmem.logit_memory.evidence import Evidence, gather
from labelmem.logit_memory.options import FEATURES, LogitMemoryOptions
from labelmem.logit_memory.statistics import LabelStatistics
from labelmem.logit_memory.weights import Weights

__all__ = ["Belief", "User"]

_MIX = 100.0
"""Labels over which the share of wrong ones is averaged."""
_PULL = 0.1
"""How much of that is what was expected before."""
_SURE = 4.0
"""Nats: a known label that is lost by more was not lost for want of caution."""
_MOST = 6.0
"""The most caution, in nats."""
_MAY_SWAP = 0.003
"""The share of known labels that may be lost to other known ones."""
_RELIEF = 0.5
"""How much a known label that was gained allows new ones."""
_TO_NEW, _TO_KNOWN = 6, 8
"""Where the cautions stand among the numbers."""
_WRONG = 1.5
"""How many of the known labels that seem lost are wrong labels, in expected ones."""
_SOFT = 0.5
"""Nats around the border where a label is lost in part."""
_SAID = 1e-4
"""A vote that is smaller is not kept."""
_EARLY = 5.0
"""Known labels that are taken to have been seen before the first."""


@dataclass(frozen=True)
class Belief:
    """What a user's memory makes of one input, kept until its label comes."""

    x: Tensor
    """(1, d) the key."""
    said: Logits
    peak: float
    evidence: Evidence
    scores: Tensor
    """(C,) nats of the candidates, without caution."""
    labels: int
    """How many labels there were."""
    probs: Tensor
    """(W,) with caution, and with the share of wrong labels."""
    theta: Tensor
    """(k,) the weights."""
    near: Tensor
    """(N,) how near the cells are."""
    cells: Cells
    """The cells that voted."""

    def rival(self) -> tuple[int, int, float]:
        """The model's choice, the best other candidate, and by how many nats that is ahead."""
        choice, scores = self.evidence.column(int(self.said.label[0, 0])), self.scores.clone()
        own = float(scores[choice])
        scores[choice] = -torch.inf
        other = int(scores.argmax())
        return choice, other, float(scores[other]) - own

    def votes_of_cells(self, column: int) -> Tensor:
        """(N,) what each cell said about a candidate."""
        votes: Tensor = (self.cells.vote * (self.cells.about == column)).sum(dim=1)
        return self.near * votes


class User:
    """Statistics, cells, rows and weights of one stream."""

    def __init__(self, known: int, dim: int, options: LogitMemoryOptions, like: Tensor) -> None:
        self.known, self.options = known, options
        self.slot_labels = torch.zeros(0, dtype=torch.int64, device=like.device)
        """(m,) the label of each slot."""
        self.statistics = LabelStatistics(dim, options.pseudo_count, like.double())
        self.cells = Cells(dim, min(options.top, known), options.votes, like)
        self.weights = Weights(options.start, options.spread)
        self.rows: dict[int, dict[int, float]] = {}
        """For each answer of the model, the slots of the labels that were true, and how often."""
        self._slots: dict[int, int] = {}
        # labels: known, new; log-sums: sum, sum of squares; peaks; noise; caution to new labels;
        # next to revisit; caution to known labels
        first = [0.0, 0.0, 0.0, 0.0, 0.0, options.noise, options.caution, 0.0, 0.0]
        self.numbers = torch.tensor(first, dtype=torch.float64)

    # ---------------------------------------------------------------- what is asked

    @property
    def labels(self) -> int:
        """Labels there are: the model's, and new ones that were observed."""
        return self.known + int((self.slot_labels >= self.known).sum())

    @property
    def observed(self) -> float:
        """Labels that were revealed."""
        return float(self.numbers[0] + self.numbers[1])

    @property
    def noise(self) -> float:
        """The share of labels that are taken to be wrong."""
        return float(self.numbers[5])

    def caution_to(self, new: Tensor) -> Tensor:
        """(C,) nats by which candidates must be ahead of the model's choice."""
        to_new, to_known = self.numbers[[_TO_NEW, _TO_KNOWN]].to(new.device)
        return torch.where(new, to_new, to_known)

    @property
    def tame(self) -> float:
        """Factor on the logits of a model that is too sure."""
        cap = math.log(self.known) + self.options.certainty
        peak = float(self.numbers[4]) / max(self.observed, 1.0)
        return min(1.0, cap / max(peak, 1e-9))

    @property
    def prior_of_new(self) -> float:
        """Log of the share of new labels so far, of each of them."""
        new = max(1, self.labels - self.known)
        known, others = float(self.numbers[0]), float(self.numbers[1])
        return math.log((others + 0.5) / (known + _EARLY) / new)

    def surprise(self, total: Tensor) -> Tensor:
        """How unusual log-sums (J,) are, in standard deviations."""
        n = self.observed
        if n < 6:
            return torch.zeros_like(total)
        mean = float(self.numbers[2]) / n
        spread = math.sqrt(max(float(self.numbers[3]) / n - mean * mean, 1e-12))
        return ((total - mean) / spread).clamp(-3, 3)

    def row_of(self, answer: int) -> Tensor:
        """(m,) how often the label of each slot was true when the model said this."""
        true = self.cells.vote.new_zeros(len(self.slot_labels))
        for slot, often in self.rows.get(answer, {}).items():
            true[slot] = often
        return true

    def believe(self, x: Tensor, logits: Tensor, width: int) -> Belief:
        """Predict over ``width`` labels from a key x (1, d) and logits (1, L). Pure."""
        said = Logits.of(logits, self.options.top)
        near = self._kernel(x)
        votes = self.cells.votes(near, len(self.slot_labels))
        peak = float(logits.max() - logits.mean())
        if not self.observed:
            self = self._that_saw(peak)
        evidence = gather(self, x, said, votes, logits)
        scores = evidence.scores(self.weights.theta)[0]
        held = scores - self.caution_to(evidence.new)
        choice = evidence.column(int(said.label[0, 0]))
        held[choice] = scores[choice]
        row = torch.full((width,), -torch.inf, dtype=torch.float64, device=x.device)
        row[: self.known] = float(self.weights.theta[0]) * self.tame * logits[0].double()
        row[evidence.label] = held[:-1]
        there = torch.isfinite(row)
        probs = (1 - self.noise) * torch.softmax(row, 0) + self.noise * there / there.sum()
        return Belief(
            x=x,
            said=said,
            peak=peak,
            evidence=evidence,
            scores=scores,
            labels=self.labels,
            probs=probs.to(x.dtype),
            theta=self.weights.theta,
            near=near[0],
            cells=copy.copy(self.cells),
        )

    def _that_saw(self, peak: float) -> User:
        """The same where a first input tells how sure the model is."""
        other = copy.copy(self)
        other.numbers = self.numbers.clone()
        other.numbers[4] = peak
        return other

    def _kernel(self, x: Tensor) -> Tensor:
        return self.cells.kernel(x, self.options.sharpness / 2 / self.statistics.variance)

    # ---------------------------------------------------------------- what is learned

    def observe(self, belief: Belief, label: int) -> None:
        """Learn the label of an input."""
        evidence, noise = belief.evidence, self.noise
        met = label < self.known or label in evidence.label.tolist()
        believed = 1.0
        p = torch.softmax(belief.scores, 0)
        if met:
            true = evidence.column(label)
            right = (1 - noise) * float(p[true])
            believed = right / (right + noise / belief.labels)
        self._be_careful(belief, label, believed)
        if met:
            self.weights.learn(
                evidence.features[0],
                evidence.offset,
                true,
                noise,
                belief.labels,
                self.options.forget,
            )
            expected = noise + (1 - believed - noise) / _MIX
            expected += (self.options.noise - noise) * _PULL / _MIX
            self.numbers[5] = min(max(expected, 1e-4), 0.6)
        self.numbers[0 if label < self.known else 1] += 1
        total = float(belief.said.total)
        self.numbers[2:5] += torch.tensor([total, total * total, belief.peak])
        slot = self._slot(label)
        if slot < len(evidence.met) and evidence.met[slot]:
            self.statistics.calibrate(evidence.means[0], evidence.met, slot)
        self._remember_row(int(belief.said.label[0, 0]), slot)
        self.statistics.add(belief.x[0].double(), slot)
        sure = met and float(p[true]) >= self.options.gate
        self._revisit([] if sure else [self._write(belief, slot)])

    def prime(self, x: Tensor, labels: Tensor) -> None:
        """Begin with what the keys x (N, d) of training examples say of known labels (N,)."""
        for label in sorted(set(labels.tolist())):
            self._slot(label)
        self.statistics.prime(x.double(), torch.tensor([self._slots[y] for y in labels.tolist()]))

    def _be_careful(self, belief: Belief, label: int, believed: float) -> None:
        """Trust the model's choice more where a label it knew was lost, else a little less.

        There are two cautions: one towards new labels, one towards other known ones. Each is the
        running sum of known labels lost, less those gained and those that may be lost. So in the
        long run no more are lost than may be, or caution would grow without end.
        """
        evidence = belief.evidence
        choice, other, ahead = belief.rival()
        kind = _TO_NEW if evidence.new[other] else _TO_KNOWN
        gap = ahead - float(self.numbers[kind])
        lost = 1 / (1 + math.exp(-min(max(gap / _SOFT, -30.0), 30.0)))
        change = torch.zeros_like(self.numbers)
        change[kind] -= _WRONG * self.noise / belief.labels * lost
        if label < self.known:
            change[_TO_NEW] -= self.options.harm
            change[_TO_KNOWN] -= _MAY_SWAP
            if evidence.column(label) == choice and gap < _SURE:
                change[kind] += lost * believed
            elif evidence.column(label) == other:
                change[kind] -= lost
                change[_TO_NEW] -= _RELIEF * lost
        changed = (self.numbers + change).clamp(0.0, _MOST)
        for one in (_TO_NEW, _TO_KNOWN):
            self.numbers[one] = changed[one]

    def _slot(self, label: int) -> int:
        """The slot of a label, a new one if it has none."""
        if label not in self._slots:
            self._slots[label] = len(self.slot_labels)
            self.slot_labels = torch.cat([self.slot_labels, self.slot_labels.new_tensor([label])])
            self.statistics.open()
        return self._slots[label]

    def _remember_row(self, answer: int, slot: int) -> None:
        row = self.rows.setdefault(answer, {})
        left = min(1.0, (self.options.row - 1) / max(sum(row.values()), 1e-9))
        for other in row:
            row[other] *= left
        row[slot] = row.get(slot, 0.0) + 1

    def _write(self, belief: Belief, slot: int) -> int:
        return self.cells.write(belief.x[0], slot, belief.said, self.options.capacity)

    def _revisit(self, written: list[int]) -> None:
        """Set the votes of some cells to what would have put them right."""
        n = len(self.cells)
        if not n:
            return
        turn = int(self.numbers[7])
        asked = min(self.options.revisits, n)
        cells = sorted({*written, *((turn + i) % n for i in range(asked))})
        self.numbers[7] = (turn + asked) % n
        at = torch.tensor(cells, device=self.slot_labels.device)
        x, said, slot = self.cells.key[at], self.cells.logits(at), self.cells.slot[at]
        votes = self.cells.votes(self._kernel(x), len(self.slot_labels))
        evidence = gather(self, x, said, votes, without=slot)
        theta = self.weights.theta.clone()
        theta[FEATURES.index("votes")] = 1.0  # votes are set as if they counted in full
        scores = evidence.scores(theta)
        own = torch.zeros_like(scores)
        own.scatter_add_(1, self.cells.about[at], self.cells.vote[at].double())
        strength, rows = self.options.strength, torch.arange(len(at), device=at.device)
        alone = torch.softmax(scores - strength * own, 1)[rows, slot]
        right = (1 - self.noise) * alone
        believed = right / (right + self.noise / self.labels)
        believed = believed.clamp(min=self.options.believed)[:, None]
        for _ in range(3):
            wanted = -torch.softmax(scores, 1)
            wanted[rows, slot] += 1
            change = (believed * wanted - own) / (1 + strength / 2)
            own, scores = own + change, scores + strength * change
        self._store(at, slot, evidence, own[:, :-1])

    def _store(self, cells: Tensor, slot: Tensor, evidence: Evidence, votes: Tensor) -> None:
        """Keep the largest votes of some cells, that for their own label first."""
        size = votes.abs()
        size.scatter_(1, slot[:, None], torch.inf)
        kept = size.topk(min(self.options.votes, size.shape[1]), 1).indices
        value = votes.gather(1, kept).to(self.cells.vote.dtype)
        said = value.abs() > _SAID
        said[:, 0] = True
        slots = len(evidence.met)
        for i, j in ((kept >= slots) & said).nonzero().tolist():  # voted about for the first time
            kept[i, j] = self._slot(int(evidence.label[kept[i, j]]))
        about = torch.where(said, kept, slot[:, None])
        more = self.options.votes - kept.shape[1]
        about = torch.cat([about, slot[:, None].expand(-1, more)], 1)
        self.cells.vote_anew(cells, about, pad(value * said, (0, more)))

    # ---------------------------------------------------------------- files

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        triples = [(a, s, v) for a, row in self.rows.items() for s, v in row.items()]
        parts: dict[str, Any] = {
            "statistics": self.statistics.tensors(),
            "cells": self.cells.tensors(),
            "weights": self.weights.tensors(),
        }
        named = {f"{part}.{k}": t for part, ts in parts.items() for k, t in ts.items()}
        return named | {
            "slot_labels": self.slot_labels,
            "numbers": self.numbers,
            "rows": torch.tensor(triples, dtype=torch.float64).reshape(-1, 3),
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave."""
        holders = {
            "statistics": self.statistics,
            "cells": self.cells,
            "weights": self.weights,
        }
        for name, like in self.tensors().items():
            saved = tensors[name].to(like.device, copy=True)
            if saved.dtype != like.dtype or saved.ndim != like.ndim:
                raise ValueError(f"{name} is {saved.dtype} of shape {tuple(saved.shape)}")
            part, _, field = name.rpartition(".")
            if name == "rows":
                self.rows = {}
                for answer, slot, often in saved.tolist():
                    self.rows.setdefault(int(answer), {})[int(slot)] = often
            else:
                setattr(holders[part] if part else self, field, saved)
        self._slots = {label: slot for slot, label in enumerate(self.slot_labels.tolist())}
