"""The forms of adapters that every way must agree on, with users whose streams exercise them.

No weight of a combiner is zero: an untrained combiner would be a fixed theta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn
from toys import Recurrent, Stateless, random_combiner, random_stream

from conformance.habits import START, gru_model, habits_of, history_model, tosses_of
from labelmem import Adapter, MemoryConfig
from labelmem.config import IndexConfig, IndexedMemoryConfig, NarrowMemoryConfig
from labelmem.keys import Hidden, Joined, RecentTokens

__all__ = ["FORMS", "Form", "form"]

Recorded = tuple[Tensor, list[Any]]
"""Inputs and labels of one user."""


class Encoder(nn.Module):
    """A model without labels of its own: its output is h."""

    def features(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        return torch.tanh(2 * x), state

    def forward(self, x: Tensor) -> Tensor:
        return self.features(x)[0]


@dataclass(frozen=True, eq=False)
class Form:
    """A kind of adapter. Two that are made alike predict alike and share nothing."""

    name: str
    build: Callable[..., Adapter]
    """Makes the adapter; takes further options of adapters."""
    oracle: bool = True
    """Whether the slow loops of ``tests/oracle`` know it."""
    new: Sequence[Any] = ("emu", ("place", 3))
    """Labels that the model does not know."""
    inputs: Literal["vectors", "tokens", "tosses"] = "vectors"
    """What users are made of; the labels of tosses have nothing to do with the inputs."""
    lengths: tuple[int, ...] = (13, 8, 4)
    """How many steps the users take."""
    double: bool = False
    atol: float = 1e-5
    """How far two ways may be apart."""

    def __str__(self) -> str:
        return self.name

    @cached_property
    def known(self) -> list[Any]:
        return list(self.build().known.names)

    def recorded(self, seed: int, steps: int) -> Recorded:
        """One user."""
        if self.inputs == "tokens":
            return habits_of(seed, steps, self.new)
        if self.inputs == "tosses":
            return tosses_of(seed, steps, self.new)
        x, y = random_stream(seed, steps, self.known or ["a", 2], self.new)
        return (x.double() if self.double else x), y

    @cached_property
    def users(self) -> list[Recorded]:
        """Users with streams of unequal length; the first meets the most new labels."""
        return [self.recorded(20 + n, length) for n, length in enumerate(self.lengths)]

    @property
    def any_input(self) -> Tensor:
        """An input that belongs to no stream."""
        return torch.tensor(START) if self.inputs == "tokens" else self.recorded(99, 1)[0][0]


def vectors(
    combiner: Any = 0.4,
    model: Callable[[], nn.Module] = Stateless,
    double: bool = False,
    memory: type[MemoryConfig] = MemoryConfig,
    fixed: dict[str, Any] | None = None,
    **config: Any,
) -> Callable[..., Adapter]:
    """Adapters of a toy model; ``combiner`` is a number or the options of a random combiner."""

    def build(**options: Any) -> Adapter:
        theta = random_combiner(**combiner) if isinstance(combiner, dict) else combiner
        network = model().double() if double else model()
        return Adapter(network, memory=memory(**config), combiner=theta, **(fixed or {}), **options)

    return build


def tokens(
    combiner: Any,
    key: Callable[[], Any],
    model: Callable[[], nn.Module],
    parts: int | None = None,
    partition: bool = True,
    **config: Any,
) -> Callable[..., Adapter]:
    """Adapters of a sequence model that reads tokens."""

    def build(**options: Any) -> Adapter:
        theta = random_combiner(5, parts=parts, **combiner) if parts else combiner
        theta = random_combiner(5, **combiner) if isinstance(theta, dict) else theta
        memory = MemoryConfig(**{"margin": math.inf, **config})
        own = {"key": key(), "partition": partition}
        return Adapter(model(), memory=memory, combiner=theta, **own, **options)

    return build


def recent() -> Joined:
    return Joined(RecentTokens(dim=6, pair=True), Hidden(0.3))


def three_tokens() -> Joined:
    return Joined(RecentTokens(last=3, dim=6, fade=0.5), Hidden(0.3))


def one_token() -> RecentTokens:
    return RecentTokens(last=1, dim=6)


def squared(x: Tensor, h: Tensor) -> Tensor:
    """A key that is a plain function."""
    return torch.cat([h, h * h], dim=1)


NAMES = {"labels": ["ant", "bee", 7, ("cat", 1)]}
STREAM = {"kind": "stream", "rescorer": 6}
LABEL = {"kind": "label"}
INDEX = IndexConfig(lists=3, probes=3, least=6)
CROWD = {"cells_per_label": None, "margin": 50.0}

FORMS = [
    Form("fixed", vectors(fixed=NAMES)),
    Form("few shot", vectors(0.5, Encoder, fixed={"labels": ()}, cells_per_label=2)),
    Form("label combiner", vectors(LABEL)),
    Form("label combiner, many labels", vectors(LABEL, lambda: Stateless(labels=70))),
    Form("label combiner, sparse", vectors(LABEL | {"active_threshold": 0.05}, margin=2.0)),
    Form("label combiner, two cells", vectors(LABEL, cells_per_label=2, capacity=6)),
    Form("stream combiner", vectors(STREAM, fixed=NAMES), oracle=False),
    Form("stream combiner, sees h", vectors(STREAM | {"sees_h": True}, margin=3.0), oracle=False),
    Form("stream combiner, theta only", vectors(STREAM | {"correct": False}), oracle=False),
    Form("stream combiner, three cells", vectors(STREAM, cells_per_label=3), oracle=False),
    Form("partition", vectors(0.7, fixed={"partition": True}), oracle=False),
    Form("recurrent", vectors(LABEL, Recurrent, fixed=NAMES)),
    Form("gru", tokens(LABEL, recent, gru_model), oracle=False, inputs="tokens"),
    Form("history", tokens(STREAM, recent, history_model, parts=4), oracle=False, inputs="tokens"),
    Form(
        "history, few cells",
        tokens(STREAM, recent, history_model, parts=4, partition=False, capacity=4, margin=1.0),
        oracle=False,
        inputs="tokens",
    ),
    Form(
        "history, three tokens",
        tokens(STREAM | {"sees_h": True}, three_tokens, history_model, parts=4, lam=3.0),
        oracle=False,
        inputs="tokens",
    ),
    Form(
        "history, one token",
        tokens(STREAM | {"correct": False}, one_token, history_model, parts=1),
        oracle=False,
        inputs="tokens",
    ),
    Form("key function", vectors(STREAM, fixed={"key": squared}), oracle=False),
    Form("three cells", vectors(cells_per_label=3, lam=2.0, delta=0.5, decay=0.8)),
    Form("many cells", vectors(**CROWD, lam=20.0), new=(), inputs="tosses", lengths=(80, 5, 2)),
    Form("oldest out", vectors(capacity=3, margin=math.inf), new=tuple("abcdef")),
    Form("lightest out", vectors(capacity=3, evict="weight"), new=tuple("abcdef")),
    Form(
        "cells at capacity",
        vectors(cells_per_label=3, capacity=6, decay=0.4, margin=50.0),
        new=tuple("abcdef"),
        inputs="tosses",
        lengths=(40, 8, 4),
    ),
    Form("always written", vectors(margin=math.inf, lam=0.0, cells_per_label=2)),
    Form("rarely written", vectors(margin=-0.5, write_lam=False, cells_per_label=2)),
    Form("16 bits", vectors(STREAM, memory=NarrowMemoryConfig), oracle=False, atol=1e-3),
    Form("index", vectors(memory=IndexedMemoryConfig, index=INDEX, margin=50.0), oracle=False),
    Form("doubles", vectors(LABEL, double=True, cells_per_label=2), double=True, atol=1e-9),
    Form("stream combiner, doubles", vectors(STREAM, double=True), False, double=True, atol=1e-9),
]


def form(name: str) -> Form:
    """The form of this name."""
    return next(form for form in FORMS if form.name == name)
