"""Streams of one adapter in several threads, against the same streams one after another."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import torch
from conformance.forms import FORMS, Form, Recorded, vectors
from torch import Tensor, nn
from toys import Recurrent, assert_same, filled, snapshot

from labelmem import Adapter, Stream
from labelmem.errors import UnsupportedError
from labelmem.fast import plainly
from labelmem.online import OnlineMethod

Told = list[Tensor | dict[str, Any]]
"""All that a stream said in its life, and what it remembers at the end."""


def wide() -> nn.Module:
    """A model with layers after its head, large enough for threads to meet inside."""
    layers = (nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 300), nn.Softplus(), nn.Softplus())
    return filled(nn.Sequential(*layers), seed=3, scale=0.3)  # type: ignore[no-any-return]


def primed() -> Adapter:
    adapter = Adapter(filled(nn.Linear(3, 4), seed=4))
    drawn = torch.Generator().manual_seed(5)
    adapter.prime(torch.randn(40, 3, generator=drawn), torch.arange(40) % 4)
    return adapter


BESIDE = [
    Form("linear", vectors(0.5, lambda: filled(nn.Linear(3, 4), seed=4))),
    Form("layers after the head", vectors(0.5, wide)),
    Form("stream combiner, layers after the head", vectors({"kind": "stream", "dim": 64}, wide)),
    Form("label combiner, layers after the head", vectors({"kind": "label", "dim": 64}, wide)),
    Form("default form, layers after the head", lambda: Adapter(wide())),
    Form("default form, recurrent", lambda: Adapter(Recurrent())),
    Form("default form, primed", primed),
]
EVERY_FORM = [*BESIDE, *FORMS]


def live(method: OnlineMethod[Any], x: Tensor, ys: Sequence[Any], file: Path | None) -> Told:
    """A stream's life: every third label comes late, and now and then it is saved and loaded."""
    stream, late = method.stream(), []
    told: Told = []
    for t, y in enumerate(ys):
        p = stream.predict(x[t])
        told += [part for part in (p.probs, p.memory_probs, p.theta) if part is not None]
        if t % 3 == 1:
            late.append((y, p))
        else:
            stream.observe(y)
        if t % 5 == 4:
            for truth, then in late:
                stream.observe(truth, then)
            late.clear()
        if file is not None and t % 10 == 9:  # no label is waited for
            stream.save(file)
            stream = method.load_stream(file)
    return [*told, snapshot(stream)]


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """What each gave, in a thread of its own, all of which begin together."""
    begin, failed = threading.Barrier(len(work)), []
    found: list[Any] = [None] * len(work)

    def run(i: int) -> None:
        try:
            begin.wait()
            found[i] = work[i]()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(work))]
    with restless():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]
    return found


@contextmanager
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def assert_alike(
    method: OnlineMethod[Any], users: Sequence[Recorded], folder: Path | None, plain: bool = False
) -> None:
    """Streams in threads say to the bit what they say one after another."""

    def life(n: int) -> Callable[[], Told]:
        def lived() -> Told:
            file = folder and folder / f"user {n}"
            with plainly() if plain else nullcontext():
                return live(method, *users[n], file)

        return lived

    lives = [life(n) for n in range(len(users))]
    alone = [lived() for lived in lives]
    for expected, seen in zip(alone, at_once(*lives), strict=True):
        assert_same(dict(enumerate(expected[:-1])), dict(enumerate(seen[:-1])))
        assert_same(expected[-1], seen[-1])


def crowd(
    method: OnlineMethod[Any], users: Sequence[Recorded], file: Path, plain: bool = False
) -> Stream:
    """A stream that threads step at once, one for each user, and look at, and save."""
    stream = method.stream()

    def part(user: Recorded) -> Callable[[], None]:
        def stepped() -> None:
            with plainly() if plain else nullcontext():
                for t, y in enumerate(user[1]):
                    p = stream.predict(user[0][t])
                    assert abs(float(p.probs.sum()) - 1) < 1e-3 or not float(p.probs.sum())
                    if stream.tensors() and p.label is not None:
                        with suppress(UnsupportedError):
                            stream.explain(p)
                    stream.observe(y, p)
                    assert y in stream.labels
                    if t % 10 == 9:
                        stream.save(file)

        return stepped

    at_once(*map(part, users))
    return stream
