"""Whole steps of a stream, without the model's own forward, against that forward."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from labelmem import Adapter, Combiner, MemoryConfig, Stream
from labelmem.baselines import make
from labelmem.fast import plainly
from labelmem.models import GRUModel

TURN = 20
ALWAYS = MemoryConfig(margin=50.0)  # every step writes: the costliest case


def methods(model: Any, hidden: int = 16) -> dict[str, Callable[[], Any]]:
    """What a user may put around the model."""
    return {
        "LMN-fixed": lambda: Adapter(model, combiner=0.5, memory=ALWAYS),
        "LMN, stream combiner": lambda: Adapter(
            model, memory=ALWAYS, combiner=Combiner(kind="stream", hidden=hidden)
        ),
        "LMN, label combiner": lambda: Adapter(
            model, memory=ALWAYS, combiner=Combiner(kind="label", hidden=hidden)
        ),
        "SGD on the last layer": lambda: make("sgd-head", model),
        "SGD on all weights": lambda: make("sgd-all", model),
    }


def tokens(labels: int, cells: int, steps: int) -> list[int]:
    """Labels of a stream that has met ``cells`` of them, and meets the same again."""
    generator = torch.Generator().manual_seed(0)
    seen = torch.randperm(labels, generator=generator)[:cells]
    again = torch.randint(len(seen), (steps,), generator=generator)
    return seen.tolist() + seen[again].tolist()


class Forwards:
    """How long the model's own forward takes where it is called: inside of a step.

    Run by itself, again and again, it would find its weights in the cache and look faster.
    """

    def __init__(self, model: nn.Module) -> None:
        self.last = 0.0
        self._start = 0.0
        model.register_forward_pre_hook(self._begin)
        model.register_forward_hook(self._end)

    def _begin(self, *_: object) -> None:
        self._start = time.thread_time()

    def _end(self, *_: object) -> None:
        self.last = time.thread_time() - self._start


@dataclass(frozen=True)
class Cost:
    """Microseconds of one step: the model's forward in it, and all the rest."""

    forward: float
    own: float


def costs(
    model: nn.Module, made: dict[str, Callable[[], Any]], stream: list[int], steps: int, plain: bool
) -> dict[str, Cost]:
    """What a step of each method costs, on the average of many.

    After all methods have met the start of the stream, they take turns of a few steps each: fewer
    would measure how one method finds the caches after another, not how a stream runs.
    """
    streams: dict[str, Stream] = {name: method().stream() for name, method in made.items()}
    for live in streams.values():
        for token in stream[:-steps]:
            live.predict(token)
            live.observe(token)
    inside = Forwards(model)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in streams}
    with plainly() if plain else nullcontext():
        for first in range(len(stream) - steps, len(stream), TURN):
            for name, live in streams.items():
                for token in stream[first : first + TURN]:
                    start = time.thread_time()
                    live.predict(token)
                    forward = inside.last  # before a method learns by running the model again
                    live.observe(token)
                    times[name].append((forward, time.thread_time() - start - forward))
    return {
        name: Cost(*(1e6 * usual(part) for part in zip(*each, strict=True)))
        for name, each in times.items()
    }


def usual(times: Sequence[float]) -> float:
    """The mean without the slowest in fifty: steps that now and then do more must count."""
    kept = sorted(times)[: len(times) - len(times) // 50]
    return statistics.fmean(kept)


def steps(labels: int = 10_000, dim: int = 128, cells: int = 500) -> list[dict[str, object]]:
    """All methods, and LMN as the specification has it, over the model's forward."""
    model = GRUModel(labels, dim).eval()
    stream = tokens(labels, cells, 120)
    made = methods(model)
    found = costs(model, made, stream, 120, plain=False)
    lmn = {name: method for name, method in made.items() if name.startswith("LMN")}
    before = costs(model, lmn, stream, 60, plain=True)
    named = [*found.items(), *((f"{name}, specification", cost) for name, cost in before.items())]
    over = f"forward inside of it, {labels:,} labels"
    rows: list[dict[str, object]] = [
        {"what": f"step of {name}", "us": cost.own, "over": over, "floor": cost.forward}
        for name, cost in named
    ]
    for name in lmn:
        for rival in ("SGD on the last layer", "SGD on all weights"):
            rows.append(
                {
                    "what": f"{rival}, whole step",
                    "us": found[rival].own + found[rival].forward,
                    "over": f"{name}, whole step",
                    "floor": found[name].own + found[name].forward,
                }
            )
    return rows
