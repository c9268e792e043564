"""Small models, random streams and comparisons that the tests of the core share."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labelmem import Adapter, Combiner, MemoryConfig, Stream, StreamBatch

KINDS = ("fixed", "dense", "sparse", "recurrent", "recurrent dense")
"""The forms of the paper, which the oracle knows."""
EVERY_KIND = (*KINDS, "stream", "stream partition")
"""And those beyond it."""


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
    return filled(Combiner(hidden=hidden, **{"kind": "label", **options}).build(dim), seed)


def make_adapter(kind: str, memory: MemoryConfig | None = None, **options: Any) -> Adapter:
    """An adapter of one of EVERY_KIND; two of the same kind are equal but share nothing."""
    model = (Recurrent if kind.startswith("recurrent") else Stateless)()
    combiner: float | Combiner = 0.4
    if kind.endswith("dense"):
        combiner = random_combiner()
    elif kind == "sparse":
        combiner = random_combiner(active_threshold=0.05)
    elif kind.startswith("stream"):
        combiner = random_combiner(kind="stream", rescorer=6, sees_h=True)
    if kind.endswith("partition"):
        options = {"partition": True} | options
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
        joined = len(labels) + (len(new) + 1) * t // steps
        ys.append(int(torch.randint(joined, (), generator=generator)))
    x = centres[ys] + 0.7 * torch.randn(steps, inputs, generator=generator)
    return x, [names[y] for y in ys]


# ---------------------------------------------------------------- states, to the bit


def snapshot(stream: Stream | StreamBatch) -> dict[str, Any]:
    """All that a stream remembers, copied."""
    if isinstance(stream, Stream):
        return {**stream.tensors(), "labels": stream.labels, "observed": stream.observed}
    return {**stream.tensors(), "labels": [stream.labels(i) for i in range(len(stream))]}


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


def cells_in(stream: Stream | StreamBatch) -> int:
    """How many cells the memories of all streams hold together."""
    return int(stream.tensors()["memory.used"].sum())


def nbytes(stream: Stream | StreamBatch) -> int:
    """What all tensors that a stream holds on to occupy, but for those of its method."""
    seen, todo, storages = {id(stream.method)}, [stream], {}
    while todo:
        held = todo.pop()
        if isinstance(held, Tensor):
            storage = held.untyped_storage()  # whole, with positions that are spare
            storages[storage.data_ptr()] = storage.nbytes()
        elif id(held) not in seen and not isinstance(held, type | FunctionType | ModuleType):
            seen.add(id(held))
            todo += gc.get_referents(held)
    return sum(storages.values())


def hooks_of(model: nn.Module) -> list[Any]:
    """The forward hooks of a model and of its parts; torch has no public list of them."""
    return [
        hook
        for module in model.modules()
        for hooks in (module._forward_pre_hooks, module._forward_hooks)
        for hook in hooks.values()
    ]
