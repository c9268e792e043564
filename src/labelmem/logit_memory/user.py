"""All that one stream remembers in the library's default form, and how it learns a label."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from labelmem.logit_memory.caution import Caution
from labelmem.logit_memory.cells import Cells, Logits
from labelmem.logit_memory.corrections import Corrections
from labelmem.logit_memory.evidence import Evidence, gather
from labelmem.logit_memory.options import FEATURES, LogitMemoryOptions
from labelmem.logit_memory.statistics import LabelStatistics
from labelmem.logit_memory.weights import Weights

__all__ = ["Belief", "User"]

_MIX = 100.0
"""Labels over which the share of wrong ones is averaged."""
_PULL = 0.1
"""How much of that is what was expected before."""
_SAID = 1e-4
"""A vote that is smaller is not kept."""
_LEAST, _LARGEST = 1e-4, 0.6
"""The share of wrong labels stays between."""
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

    compiled = False

    def plain(self) -> Belief:
        """The same; compiled beliefs are made plain."""
        return self

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
    """Statistics, cells, corrections, rows, weights and caution of one stream."""

    compiled = False

    def __init__(self, known: int, dim: int, options: LogitMemoryOptions, like: Tensor) -> None:
        self.known, self.options = known, options
        self.slot_labels = torch.zeros(0, dtype=torch.int64, device=like.device)
        """(m,) the label of each slot."""
        self.statistics = LabelStatistics(dim, options.pseudo_count, like.double())
        self.cells = Cells(dim, min(options.top, known), options.votes, like)
        self.corrections = Corrections(dim, options.rate, options.kept, like.double())
        self.weights = Weights(options.start, options.spread)
        self.caution = Caution(options.caution, options.harm)
        self.rows: dict[int, dict[int, float]] = {}
        """For each answer of the model, the slots of the labels that were true, and how often."""
        self._slots: dict[int, int] = {}
        # labels: known, new; log-sums: sum, sum of squares; peaks; noise; next to revisit
        first = [0.0, 0.0, 0.0, 0.0, 0.0, options.noise, 0.0]
        self.numbers = torch.tensor(first, dtype=torch.float64)

    # ---------------------------------------------------------------- what is asked

    @property
    def labels(self) -> int:
        """Labels there are: the model's, and new ones that were observed."""
        return self.known + int((self.slot_labels >= self.known).sum())

    @property
    def examples(self) -> int:
        """Examples that are remembered."""
        return len(self.cells)

    @property
    def observed(self) -> float:
        """Labels that were revealed."""
        return float(self.numbers[0] + self.numbers[1])

    @property
    def noise(self) -> float:
        """The share of labels that are taken to be wrong."""
        return float(self.numbers[5])

    @property
    def theta(self) -> Tensor:
        """(k,) the weights."""
        return self.weights.theta

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
        near = self.cells.kernel(self._placed(x), self.options.sharpness)
        votes = self.cells.votes(near, len(self.slot_labels))
        peak = float(logits.max() - logits.mean())
        if not self.observed:
            self = self._that_saw(peak)
        evidence = gather(self, x, said, votes, logits)
        scores = evidence.scores(self.weights.theta)[0]
        held = scores - self.caution.towards(evidence.new)
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

    def _placed(self, x: Tensor) -> Tensor:
        return self.statistics.placed(x.double()).to(x.dtype)

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
        self.numbers[0 if label < self.known else 1] += 1
        total = float(belief.said.total)
        self.numbers[2:5] += torch.tensor([total, total * total, belief.peak])
        slot = self._slot(label)
        if slot < len(evidence.met) and evidence.met[slot]:
            self.statistics.calibrate(evidence.means[0], evidence.met, slot)
        self._remember_row(int(belief.said.label[0, 0]), slot)
        if self.statistics.add(belief.x[0].double(), slot):
            self.cells.place = self._placed(self.cells.key)
        sure = met and float(p[true]) >= self.options.gate
        self._replay([] if sure else [self._write(belief, slot)])

    def prime(self, x: Tensor, labels: Tensor) -> None:
        """Begin with what the keys x (N, d) of training examples say of known labels (N,)."""
        for label in sorted(set(labels.tolist())):
            self._slot(label)
        self.statistics.prime(x.double(), torch.tensor([self._slots[y] for y in labels.tolist()]))

    def _be_careful(self, belief: Belief, label: int, believed: float) -> None:
        """Let caution grow if the model's choice was right and almost lost; else a little less."""
        evidence = belief.evidence
        choice, rival, lead = belief.rival()
        truth = "new"
        if label < self.known:
            true = evidence.column(label)
            truth = {choice: "choice", rival: "rival"}.get(true, "known")
        wrong = self.noise / belief.labels
        self.caution.learn(lead, bool(evidence.new[rival]), truth, believed, wrong)

    def _slot(self, label: int) -> int:
        """The slot of a label, a new one if it has none."""
        if label not in self._slots:
            self._slots[label] = len(self.slot_labels)
            self.slot_labels = torch.cat([self.slot_labels, self.slot_labels.new_tensor([label])])
            self.statistics.open()
            self.corrections.open()
        return self._slots[label]

    def _remember_row(self, answer: int, slot: int) -> None:
        row = self.rows.setdefault(answer, {})
        left = min(1.0, (self.options.row - 1) / max(sum(row.values()), 1e-9))
        for other in row:
            row[other] *= left
        row[slot] = row.get(slot, 0.0) + 1

    def _write(self, belief: Belief, slot: int) -> int:
        place = self._placed(belief.x)[0]
        return self.cells.write(belief.x[0], place, slot, belief.said, self.options.capacity)

    def _turn(self, written: list[int]) -> list[int]:
        """The cells whose turn it is to be replayed, and those just written."""
        n, turn = len(self.cells), int(self.numbers[6])
        asked = min(self.options.revisits, n)
        self.numbers[6] = (turn + asked) % max(n, 1)
        return sorted({*written, *((turn + i) % n for i in range(asked))})

    def _replay(self, written: list[int]) -> None:
        """Set the votes of some cells to what would have put them right, and correct the rows."""
        cells = self._turn(written)
        if not cells:
            return
        at = torch.tensor(cells, device=self.slot_labels.device)
        x, said, slot = self.cells.key[at], self.cells.logits(at), self.cells.slot[at]
        near = self.cells.kernel(self.cells.place[at], self.options.sharpness)
        votes = self.cells.votes(near, len(self.slot_labels))
        evidence = gather(self, x, said, votes, without=slot)
        theta = self.weights.theta.clone()
        theta[FEATURES.index("votes")] = 1.0  # votes are set as if they counted in full
        scores = evidence.scores(theta)
        own = torch.zeros_like(scores)
        own.scatter_add_(1, self.cells.about[at], self.cells.vote[at].double())
        strength, rows = self.options.strength, torch.arange(len(at), device=at.device)
        alone = torch.softmax(scores - strength * own, 1)  # without what the cell itself says
        right = (1 - self.noise) * alone[rows, slot]
        believed = right / (right + self.noise / self.labels)
        self._estimate_noise(float(1 - believed.mean()))
        believed = believed.clamp(min=self.options.believed)[:, None]
        error = believed * (one_hot(slot, alone.shape[1]) - alone)
        off, across = self.statistics.off_and_across(x.double())
        self.corrections.learn(off, across, error[:, : len(evidence.met)])
        for _ in range(3):
            wanted = -torch.softmax(scores, 1)
            wanted[rows, slot] += 1
            change = (believed * wanted - own) / (1 + strength / 2)
            own, scores = own + change, scores + strength * change
        self._store(at, slot, evidence, own[:, :-1])

    def _estimate_noise(self, doubted: float) -> None:
        """Average the share of wrong labels, given that among some cells.

        What was learned since a cell was written tells whether its label was wrong, or the first of
        many alike. Only what was unlikely is written, so the share among all labels is smaller.
        """
        written = min(1.0, len(self.cells) / max(self.observed, 1.0))
        change = written * doubted - self.noise + _PULL * (self.options.noise - self.noise)
        self.numbers[5] = min(max(self.noise + change / _MIX, _LEAST), _LARGEST)

    def _store(self, cells: Tensor, slot: Tensor, evidence: Evidence, votes: Tensor) -> None:
        """Keep the largest votes of some cells, that for their own label first."""
        size = votes.abs()
        size.scatter_(1, slot[:, None], torch.inf)
        kept = size.sort(dim=1, descending=True, stable=True).indices[:, : self.options.votes]
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

    def plain(self) -> User:
        """The same; compiled users are made plain."""
        return self

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        triples = [(a, s, v) for a, row in self.rows.items() for s, v in row.items()]
        parts: dict[str, Any] = {
            "statistics": self.statistics.tensors(),
            "cells": self.cells.tensors(),
            "corrections": self.corrections.tensors(),
            "weights": self.weights.tensors(),
            "caution": self.caution.tensors(),
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
            "corrections": self.corrections,
            "weights": self.weights,
            "caution": self.caution,
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
