"""One whole stream (Eq. 5: predict, observe) and the metrics, in the slowest obvious loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .combiner import OracleCombiner, OracleGRU
from .memory import Cell, Label, OracleConfig, OracleMemory

__all__ = [
    "Cell",
    "OracleCombiner",
    "OracleConfig",
    "OracleGRU",
    "OracleLMN",
    "OracleMemory",
    "log_perplexity",
    "reciprocal_rank",
]

FLOOR = 1e-10


@dataclass
class _Step:
    """What the latest prediction was made of, kept until its label is known."""

    h: list[float]
    r: dict[Label, float] | None
    s: dict[Label, float]
    P: dict[Label, float]


class OracleLMN:
    """A stream: `predict` is pure, `observe` commits the memory and the combiner.

    `labels` holds the model's labels, then the stream's new ones in the order of first observation.
    A float combiner is one theta for all labels and steps.
    """

    def __init__(
        self, model_labels: Sequence[Label], config: OracleConfig, combiner: float | OracleCombiner
    ) -> None:
        self.labels: list[Label] = list(model_labels)
        self.memory = OracleMemory(config)
        self.combiner = combiner
        self.t = 0  # observations so far
        self.wrote = ""  # what the latest observation did to the memory
        self.latest: _Step | None = None

    def predict(
        self, h: Sequence[float], r: Mapping[Label, float] | None
    ) -> dict[str, dict[Label, float]]:
        """P, s and theta over `labels`; r = None is few-shot mode, which has no theta (empty).

        In few-shot mode with an empty memory P has no support: all of it is 0.
        """
        read = self.memory.read(h)
        s = {label: read.get(label, 0.0) for label in self.labels}
        theta: dict[Label, float] = {}
        known: dict[Label, float] | None = None
        if r is None:
            P = dict(s)
        else:
            known = {label: r.get(label, 0.0) for label in self.labels}
            theta = self._theta(h)
            P = mix(known, s, theta) if read else dict(known)
        self.latest = _Step([float(x) for x in h], known, s, P)
        return {"P": dict(P), "s": dict(s), "theta": theta}

    def observe(self, y: Label) -> None:
        """The truth for the latest prediction."""
        step = self.latest
        if step is None:
            raise RuntimeError("observe() has no prediction to belong to; call predict() first")
        if isinstance(self.combiner, OracleCombiner) and step.r is not None:
            self.combiner.commit(step.h, self.labels, y, step.r, step.s)
        self.wrote = self.memory.write(step.h, y, step.P, self.t)
        if y not in self.labels:
            self.labels.append(y)
        self.t += 1
        self.latest = None

    def _theta(self, h: Sequence[float]) -> dict[Label, float]:
        if isinstance(self.combiner, OracleCombiner):
            return self.combiner.theta(h, self.labels)
        return {label: self.combiner for label in self.labels}


def mix(
    r: Mapping[Label, float], s: Mapping[Label, float], theta: Mapping[Label, float]
) -> dict[Label, float]:
    """Eq. 5: (1 - theta_y) r_y + theta_y s_y, renormalised."""
    P = {y: (1.0 - theta[y]) * r[y] + theta[y] * s[y] for y in r}
    total = sum(P.values())
    return {y: P[y] / total for y in P}


def log_perplexity(ps: Sequence[float]) -> tuple[float, int]:
    """Mean of -log p in nats with p floored inside the log, and how many were floored."""
    total = 0.0
    floored = 0
    for p in ps:
        if p < FLOOR:
            floored += 1
        total -= math.log(max(p, FLOOR))
    return total / len(ps), floored


def reciprocal_rank(probs: Sequence[float], index: int) -> float:
    """1 / rank, where rank = 1 + labels strictly above + half of the other labels equal to it."""
    above = 0
    equal = 0
    for i, p in enumerate(probs):
        if p > probs[index]:
            above += 1
        elif p == probs[index] and i != index:
            equal += 1
    return 1.0 / (1.0 + above + equal / 2.0)
