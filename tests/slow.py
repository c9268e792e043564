"""The oracle in the place of an adapter: the same model, weights and options, in slow loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from oracle.lmn import OracleCombiner, OracleConfig, OracleGRU, OracleLMN
from torch import Tensor

from labelmem import Adapter, Combiner, MemoryConfig, Stream


def oracle_config(config: MemoryConfig) -> OracleConfig:
    return OracleConfig(**asdict(config))


class Thresholded(OracleCombiner):
    """The documented approximation: a label counts as silent until r or s exceeds the threshold."""

    def __init__(self, exact: OracleCombiner, threshold: float) -> None:
        super().__init__(exact.gru, exact.w_theta, exact.b_theta)
        self.threshold = threshold
        self.active: set[Any] = set()

    def commit(
        self,
        h: Sequence[float],
        labels: Sequence[Any],
        y: Any,
        r: Mapping[Any, float],
        s: Mapping[Any, float],
    ) -> None:
        super().commit(h, labels, y, r, s)
        for label in labels:
            if max(r.get(label, 0.0), s.get(label, 0.0)) > self.threshold:
                self.active.add(label)
        self.r = {label: p for label, p in r.items() if label in self.active}
        self.s = {label: p for label, p in s.items() if label in self.active}


def oracle_combiner(combiner: Combiner) -> OracleCombiner:
    """The same weights in the oracle's form; its inputs are h, e_model, e_memory, r, s."""
    parts = [combiner.weight_h, combiner.weight_flags, combiner.weight_scores]
    gru = OracleGRU(
        torch.cat(parts, dim=1).tolist(),
        combiner.weight_mu.tolist(),
        combiner.bias_input.tolist(),
        combiner.bias_mu.tolist(),
    )
    exact = OracleCombiner(gru, combiner.weight_theta.tolist(), combiner.bias_theta.item())
    threshold = combiner.active_threshold
    return Thresholded(exact, threshold) if threshold else exact


def softmax(logits: Sequence[float]) -> list[float]:
    top = max(logits)
    powers = [math.exp(x - top) for x in logits]
    return [p / sum(powers) for p in powers]


@dataclass
class OracleStream:
    """The oracle behind a toy model: fed with the model's own h and logits, step by step."""

    model: Any
    lmn: OracleLMN
    state: Any = None

    @classmethod
    def like(cls, adapter: Adapter) -> OracleStream:
        model, combiner = adapter.backbone.model, adapter.combiner
        gate = oracle_combiner(combiner) if isinstance(combiner, Combiner) else combiner
        lmn = OracleLMN(list(adapter.known.names), oracle_config(adapter.memory), gate)
        return cls(model, lmn, adapter.backbone.initial_state(1))

    @torch.no_grad()
    def predict(self, x: Tensor) -> dict[str, list[float]]:
        """P, s and theta in the order of the labels."""
        h, self._next = self.model.features(x[None], self.state)
        logits = self.model.head(h)[0].tolist()
        known = self.lmn.labels[: len(logits)]
        out = self.lmn.predict(h[0].tolist(), dict(zip(known, softmax(logits), strict=True)))
        return {name: [values[y] for y in self.lmn.labels] for name, values in out.items()}

    def observe(self, y: Any) -> None:
        self.state = self._next
        self.lmn.observe(y)

    @torch.no_grad()
    def observe_late(self, step: Any, x: Tensor, y: Any) -> None:
        """The memory learns from the step as it was predicted, the states move on from now."""
        h, self.state = self.model.features(x[None], self.state)
        lmn = self.lmn
        if isinstance(lmn.combiner, OracleCombiner):
            lmn.combiner.commit(h[0].tolist(), lmn.labels, y, step.r, step.s)
        lmn.memory.write(step.h, y, step.P, lmn.t)
        lmn.labels += [] if y in lmn.labels else [y]
        lmn.t += 1


def assert_follows_the_oracle(
    adapter: Adapter, x: Tensor, ys: Sequence[Any], atol: float
) -> tuple[Stream, OracleStream]:
    """Run both side by side and compare everything they say at every step."""
    stream, oracle = adapter.stream(), OracleStream.like(adapter)
    for t, y in enumerate(ys):
        p, expected = stream.predict(x[t]), oracle.predict(x[t])
        assert p.labels == oracle.lmn.labels
        for name, seen in (("P", p.probs), ("s", p.memory_probs), ("theta", p.theta)):
            exact = torch.tensor(expected[name], dtype=torch.float64)
            worst = float((seen.double() - exact).abs().max())
            assert worst <= atol, f"{name} at step {t} is off by {worst:.2e}"
        stream.observe(y)
        oracle.observe(y)
    return stream, oracle
