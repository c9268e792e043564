"""What new streams of the default form may begin with, learned from recorded users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from labelmem.errors import MismatchError
from labelmem.lmn import LMN
from labelmem.logit_memory import LogitMemory, LogitMemoryOptions
from labelmem.progress import progress_bar
from labelmem.replay import Features
from labelmem.starting.lessons import Lessons
from labelmem.starting.outcome import Outcome
from labelmem.starting.replaying import Replayed, replay_users

__all__ = ["Judged", "Judgement", "Start", "judge_starts", "saved_start", "with_start"]

_PULL = 4.0
"""How many users the start of before counts as."""
_STARTS = 4
"""How many there are as a rule; the held-out streams are replayed with each."""


@dataclass(frozen=True)
class Start:
    """A beginning of new streams."""

    name: str
    online: LogitMemory
    learned: dict[str, Any]
    """What is other than it was."""


@dataclass(frozen=True)
class Judged:
    """A beginning, and what came of it on the streams that were held out."""

    start: Start
    outcome: Outcome


@dataclass(frozen=True)
class Judgement:
    """All beginnings, the one of before first."""

    starts: list[Judged]
    searched: Outcome
    """What came of that of before on the streams that are learned from."""


def judge_starts(adapter: LMN, taught: Lessons, show: bool | None) -> Judgement:
    """Learn beginnings from some streams, and replay the others with each."""
    online, head = adapter.online, adapter.backbone.head
    assert online is not None and head is not None
    steps = taught.steps(taught.search) + _STARTS * taught.steps(taught.held_out)
    with progress_bar("learn from users", steps, show) as report:
        searched = replay_users(online, head, taught.search, report)
        starts = [*_given(online), *_learned(online, taught.search, searched)]
        judged = [
            Judged(start, replay_users(start.online, head, taught.held_out, report).outcome)
            for start in starts
        ]
    return Judgement(judged, searched.outcome)


def _given(online: LogitMemory) -> Iterator[Start]:
    """That of before; and the usual one, if something was learned before."""
    usual = LogitMemoryOptions(capacity=online.options.capacity)
    if online.primed is None and online.options == usual:
        yield Start("default", online, {})
    else:
        yield Start("default as it was", online, {})
        yield Start("default", LogitMemory(online.known, usual), {})


def _learned(online: LogitMemory, search: Sequence[Features], users: Replayed) -> Iterator[Start]:
    """Weights and noise of the users, what known labels looked like to them, and both."""
    options = online.options
    share = len(users.weights) / (len(users.weights) + _PULL)
    start = torch.tensor(options.start, dtype=torch.float64)
    theta = torch.lerp(start, users.weights.mean(0).to(start.device), share)
    noise = options.noise + share * (float(users.noise.mean()) - options.noise)
    moved = replace(options, start=tuple(theta.tolist()), noise=noise)
    weighed = {"start": moved.start, "noise": noise}
    yield Start("default with learned weights", _restarted(online, moved), weighed)
    keys, labels = _known_examples(search, online.known)
    shown = {"examples": len(labels)}
    if not len(labels):
        return
    for name, chosen, learned in (
        ("default primed", options, shown),
        ("default primed with learned weights", moved, weighed | shown),
    ):
        primed = LogitMemory(online.known, chosen)
        primed.prime(keys, labels)
        yield Start(name, primed, learned)


def _known_examples(recorded: Iterable[Features], known: int) -> tuple[Tensor, Tensor]:
    """Keys (N, d) and labels (N,) of the steps whose labels the model knows."""
    keys, labels = [], []
    for features in recorded:
        there = features.batch.mask & (features.batch.y < known)
        keys.append(features.key[there])
        labels.append(features.batch.y[there])
    return torch.cat(keys), torch.cat(labels)


def _restarted(online: LogitMemory, options: LogitMemoryOptions) -> LogitMemory:
    """The same with other options; training examples that it was given are kept."""
    other = LogitMemory(online.known, options)
    if saved := online.tensors():
        like = saved["cells.key"]
        begun = other.new_user(like.new_zeros(1, like.shape[1])).tensors()
        fresh = {k: t for k, t in begun.items() if k == "numbers" or k.startswith("weights.")}
        other.restore_primed(saved | fresh, like)
    return other


def saved_start(online: LogitMemory) -> dict[str, Any]:
    """What of the options was learned, as JSON can hold it."""
    usual, own = LogitMemoryOptions(), online.options
    learned = {"start": list(own.start), "noise": own.noise}
    return learned if (own.start, own.noise) != (usual.start, usual.noise) else {}


def with_start(online: LogitMemory, saved: dict[str, Any]) -> LogitMemory:
    """A memory without training examples that begins as :func:`saved_start` says.

    Examples
    --------
    >>> learned = LogitMemory(3, LogitMemoryOptions(noise=0.02))
    >>> with_start(LogitMemory(3, LogitMemoryOptions()), saved_start(learned)).options.noise
    0.02
    """
    if not saved:
        return online
    start = tuple(float(weight) for weight in saved["start"])
    if len(start) != len(online.options.start):
        raise MismatchError(
            f"the file has weights of {len(start)} features, there are other features now, "
            f"{len(online.options.start)}; fit or tune the adapter again"
        )
    return LogitMemory(
        online.known, replace(online.options, start=start, noise=float(saved["noise"]))
    )
