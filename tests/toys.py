"""Small models, random streams and comparisons that the tests of the core share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from oracle.lmn import OracleCombiner, OracleConfig, OracleGRU, OracleLMN
from torch import Tensor, nn

from labelmem import Adapter, Combiner, MemoryConfig, Stream, StreamBatch

KINDS = ("fixed", "dense", "sparse", "recurrent", "recurrent dense")


def filled(module: nn.Module, seed: int, scale: float = 0.6) -> Any:
    """The same module with normal random weights, whatever the state of the global generator."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(scale * noise)
    return module


class Stateless(nn.Module):
    """A perceptron; the dropout would show if it ever ran in training mode."""

    def __init__(self, labels: int = 4, dim: int = 5, inputs: int = 3, seed: int = 0) -> None:
        super().__init__()
        self.body = nn.Linear(inputs, dim)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(dim, labels)
        filled(self, seed)

    def features(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        return torch.tanh(self.body(x)), state

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(x)[0]))


class Bare(nn.Module):
    """No more than a head: h is the input itself, zero vectors and all."""

    def __init__(self, labels: int = 3, dim: int = 3, seed: int = 0) -> None:
        super().__init__()
        self.head = filled(nn.Linear(dim, labels), seed)

    def features(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        return x, state

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x)


class Recurrent(nn.Module):
    """Two recurrent layers whose states form a dictionary with a tuple inside."""

    def __init__(self, labels: int = 4, dim: int = 5, inputs: int = 3, seed: int = 0) -> None:
        super().__init__()
        self.lower, self.upper = nn.GRUCell(inputs, dim), nn.LSTMCell(dim, dim)
        self.head = nn.Linear(dim, labels)
        self.dim = dim
        filled(self, seed)

    def initial_state(self, n: int) -> dict[str, Any]:
        zeros = self.head.weight.new_zeros(n, self.dim)
        return {"lower": zeros, "upper": (zeros, zeros)}

    def features(self, x: Tensor, state: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        lower = self.lower(x, state["lower"])
        upper = self.upper(lower, state["upper"])
        return upper[0], {"lower": lower, "upper": upper}

    def forward(self, x: Tensor, state: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        h, state = self.features(x, state)
        return self.head(h), state


def random_combiner(dim: int = 5, hidden: int = 4, seed: int = 7, **options: Any) -> Combiner:
    """A combiner as training might leave it: no weight is zero, theta differs between labels."""
    return filled(Combiner(hidden=hidden, **options).build(dim), seed)


def make_adapter(kind: str, memory: MemoryConfig | None = None, **options: Any) -> Adapter:
    """An adapter of one of the KINDS; two of the same kind are equal but share nothing."""
    model = (Recurrent if kind.startswith("recurrent") else Stateless)()
    combiner: float | Combiner = 0.4
    if kind.endswith("dense"):
        combiner = random_combiner()
    elif kind == "sparse":
        combiner = random_combiner(active_threshold=0.05)
    memory = memory or MemoryConfig(cells_per_label=2, capacity=6)
    return Adapter(model, memory=memory, combiner=combiner, **options)


def random_stream(
    seed: int, steps: int, labels: Sequence[Any], new: Sequence[Any] = (), inputs: int = 3
) -> tuple[Tensor, list[Any]]:
    """Inputs scattered about one centre per label, and labels; the new ones join one by one."""
    generator = torch.Generator().manual_seed(seed)
    centres = 1.5 * torch.randn(len(labels) + len(new), inputs, generator=generator)
    names = [*labels, *new]
    ys = []
    for t in range(steps):
        joined = len(labels) + len(new) * (t + 1) // steps
        ys.append(int(torch.randint(joined, (), generator=generator)))
    x = centres[ys] + 0.7 * torch.randn(steps, inputs, generator=generator)
    return x, [names[y] for y in ys]


# ---------------------------------------------------------------- the oracle's side


def oracle_config(config: MemoryConfig) -> OracleConfig:
    return OracleConfig(**asdict(config))


def oracle_combiner(combiner: Combiner) -> OracleCombiner:
    """The same weights in the oracle's form; its inputs are h, e_model, e_memory, r, s."""
    parts = [combiner.weight_h, combiner.weight_flags, combiner.weight_scores]
    gru = OracleGRU(
        torch.cat(parts, dim=1).tolist(),
        combiner.weight_mu.tolist(),
        combiner.bias_input.tolist(),
        combiner.bias_mu.tolist(),
    )
    return OracleCombiner(gru, combiner.weight_theta.tolist(), combiner.bias_theta.item())


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
    adapter: Adapter, x: Tensor, ys: Sequence[Any], atol: float, oracle: OracleStream | None = None
) -> Stream:
    """Run both side by side and compare everything they say at every step."""
    stream, oracle = adapter.stream(), oracle or OracleStream.like(adapter)
    for t, y in enumerate(ys):
        p, expected = stream.predict(x[t]), oracle.predict(x[t])
        assert p.labels == oracle.lmn.labels
        for name, seen in (("P", p.probs), ("s", p.memory_probs), ("theta", p.theta)):
            exact = torch.tensor(expected[name], dtype=torch.float64)
            worst = float((seen.double() - exact).abs().max())
            assert worst <= atol, f"{name} at step {t} is off by {worst:.2e}"
        stream.observe(y)
        oracle.observe(y)
    return stream


# ---------------------------------------------------------------- states, to the bit


def snapshot(stream: Stream | StreamBatch) -> dict[str, Any]:
    """All that a stream remembers, copied."""
    tensors = {k: t.clone() for k, t in stream.method.tensors(stream._state).items()}
    if isinstance(stream, Stream):
        return {**tensors, "labels": stream.labels, "observed": stream.observed}
    return {**tensors, "labels": [stream.labels(i) for i in range(len(stream))]}


def assert_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert a.keys() == b.keys()
    for name, value in a.items():
        if isinstance(value, Tensor):
            assert value.dtype == b[name].dtype and torch.equal(value, b[name]), name
        else:
            assert value == b[name], name


@contextmanager
def unchanged(stream: Stream | StreamBatch) -> Iterator[None]:
    """Whatever happens inside leaves the stream as it was, bit for bit."""
    before = snapshot(stream)
    yield
    assert_same(before, snapshot(stream))


def run(stream: Stream, x: Tensor, ys: Sequence[Any]) -> list[Tensor]:
    """Predict and observe step by step; the probabilities of all steps."""
    probs = []
    for t, y in enumerate(ys):
        probs.append(stream.predict(x[t]).probs)
        stream.observe(y)
    return probs


def nbytes(stream: Stream | StreamBatch) -> int:
    """What the tensors of a state occupy, spare positions included."""
    state = stream._state
    held = {**vars(state.memory), **(vars(state.combiner) if state.combiner else {})}
    tensors = [t for t in held.values() if isinstance(t, Tensor)]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())
