"""Whole steps of a stream, without the model's own forward, against that forward."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch

from labelmem import Adapter, Combiner, MemoryConfig, Stream
from labelmem.baselines import make
from labelmem.fast import plainly
from labelmem.models import GRUModel

TURN = 20
ALWAYS = MemoryConfig(margin=50.0)  # every step writes: the costliest case


def methods(model: Any, hidden: int = 16) -> dict[str, Callable[[], Any]]:
    """What a user may put around the model."""
    return {
        "LMN-fixed": lambda: Adapter(model, memory=ALWAYS),
        "LMN, stream combiner": lambda: Adapter(
            model, memory=ALWAYS, combiner=Combiner(kind="stream", hidden=hidden)
        ),
        "LMN, label combiner": lambda: Adapter(
            model, memory=ALWAYS, combiner=Combiner(hidden=hidden)
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


def own_steps(
    model: Any, made: dict[str, Callable[[], Any]], stream: list[int], steps: int, plain: bool
) -> dict[str, float]:
    """Microseconds of a step of each method less the model's forward, and of that forward.

    After all methods have met the start of the stream, they take turns of a few steps each: fewer
    would measure how one method finds the caches after another, not how a stream runs.
    """
    streams: dict[str, Stream] = {name: method().stream() for name, method in made.items()}
    for live in streams.values():
        for token in stream[:-steps]:
            live.predict(token)
            live.observe(token)
    times: dict[str, list[float]] = {name: [] for name in ("forward", *streams)}
    state = model.initial_state(1)

    def forward(token: int) -> None:
        with torch.no_grad():
            torch.softmax(model(torch.tensor([token]), state)[0], -1)

    def step(live: Stream, token: int) -> None:
        live.predict(token)
        live.observe(token)

    parts = {"forward": forward} | {name: partial(step, live) for name, live in streams.items()}
    with plainly() if plain else nullcontext():
        for first in range(len(stream) - steps, len(stream), TURN):
            for name, part in parts.items():
                for token in stream[first : first + TURN]:
                    start = time.thread_time()
                    part(token)
                    times[name].append(time.thread_time() - start)
    middle = {name: 1e6 * statistics.median(each) for name, each in times.items()}
    model_alone = middle.pop("forward")
    own = {name: whole - model_alone for name, whole in middle.items()}
    return {"forward": model_alone} | own


def steps(labels: int = 10_000, dim: int = 128, cells: int = 500) -> list[dict[str, object]]:
    """All methods, and LMN as the specification has it, over the model's forward and softmax."""
    model = GRUModel(labels, dim).eval()
    stream = tokens(labels, cells, 120)
    made = methods(model)
    found = own_steps(model, made, stream, 120, plain=False)
    lmn = {name: method for name, method in made.items() if name.startswith("LMN")}
    before = own_steps(model, lmn, stream, 60, plain=True)
    forward = found.pop("forward")
    over = f"forward, {labels:,} labels"
    rows: list[dict[str, object]] = [
        {"what": f"step of {name}", "us": us, "over": over, "floor": forward}
        for name, us in found.items()
    ]
    floor = before.pop("forward")
    rows += [
        {"what": f"step of {name}, specification", "us": us, "over": over, "floor": floor}
        for name, us in before.items()
    ]
    for name in lmn:
        for rival in ("SGD on the last layer", "SGD on all weights"):
            whole = found[name] + forward
            rows.append(
                {
                    "what": f"{rival}, whole step",
                    "us": found[rival] + forward,
                    "over": f"{name}, whole step",
                    "floor": whole,
                }
            )
    return rows
