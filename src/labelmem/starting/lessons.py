"""Recorded streams in two parts: some to learn from, others to judge what was learned."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labelmem.errors import ConfigError, TeachesNothingWarning
from labelmem.lmn import LMN
from labelmem.online import Recorded
from labelmem.recording import lockstep_batches, split_streams
from labelmem.replay import Features, record
from labelmem.trees import tree_map

__all__ = ["GUARD", "HELD_OUT", "Lessons", "lessons"]

GUARD = 0.01
"""The share of known labels that another form may miss beyond what the default form misses."""
HELD_OUT = 0.34
"""The share of streams that judge."""
_CALLERS = 5
"""A warning is shown where the adapter was asked, so many calls above."""


@dataclass(frozen=True)
class Lessons:
    """Recorded streams with the model's answers."""

    search: list[Features]
    """What is learned from."""
    held_out: list[Features]
    """What judges; no step of it is learned from."""

    @staticmethod
    def steps(part: Iterable[Features]) -> int:
        """How many steps there are in a part."""
        return sum(int(features.batch.mask.sum()) for features in part)


def lessons(
    adapter: LMN,
    sequences: Iterable[Recorded],
    validation: Iterable[Recorded] | None = None,
    share: float = HELD_OUT,
    seed: int = 0,
    batch_size: int = 64,
) -> Lessons:
    """Run the model over all streams, hold a part out, and warn of what cannot teach anything.

    Parameters
    ----------
    validation
        The part that is held out; None takes a seeded ``share`` of the streams, or the second half
        of a stream that is the only one.
    """
    if not 0 < share < 1:
        raise ConfigError(f"held_out is {share}; it must lie in (0, 1)")
    given, told = list(sequences), []
    search = _with_labels(given)
    held = None if validation is None else _with_labels(list(validation))
    if len(search) < len(given):
        told.append(f"{len(given) - len(search)} of {len(given)} recorded streams have no label")
    alone = len(search) < 2
    if held is None and not alone:
        search, held = split_streams(search, share, seed)

    def read(streams: Sequence[Recorded]) -> list[Features]:
        given = adapter.known, batch_size, adapter.device, adapter.dtype
        return [record(adapter, batch) for batch in lockstep_batches(streams, *given)]

    found = Lessons(read(search), read(held)) if held is not None else _halves(read(search))
    if alone:
        told.append(
            "there is only one recorded user; what suits one may not suit others"
            + (" (the first half of the stream teaches, the second judges)" if not held else "")
        )
    told.extend(_complaints([*found.search, *found.held_out], len(adapter.known)))
    for what in told:
        warnings.warn(what, TeachesNothingWarning, stacklevel=_CALLERS)
    return found


def _with_labels(streams: Sequence[Any]) -> list[Any]:
    """Those with labels; whatever is no stream at all is left for others to refuse."""
    return [one for one in streams if not (isinstance(one, tuple | list) and _unlabelled(*one))]


def _unlabelled(*stream: Any) -> bool:
    return len(stream) == 2 and hasattr(stream[1], "__len__") and len(stream[1]) == 0


def _complaints(recorded: Sequence[Features], known: int) -> Iterator[str]:
    """What is missing in streams with labels."""
    lengths = [int(n) for features in recorded for n in features.batch.mask.sum(1)]
    if short := sum(length < 2 for length in lengths):
        yield (
            f"{short} of {len(lengths)} recorded streams have a single step: "
            "the memory has its say from the second step on"
        )
    if not any(bool((f.batch.y[f.batch.mask] >= known).any()) for f in recorded):
        yield (
            "no recorded stream has a label that the model does not know, so nothing is learned "
            "about new labels"
        )


def _halves(recorded: list[Features]) -> Lessons:
    """The only stream until its middle, and from there; twice the same if it is too short."""
    (whole,) = recorded
    steps = whole.batch.y.shape[1]
    if steps < 2:
        return Lessons(recorded, recorded)
    first, second = slice(0, steps // 2), slice(steps // 2, None)
    return Lessons([_part(whole, first)], [_part(whole, second)])


def _part(features: Features, steps: slice) -> Features:
    """Some of the steps."""
    batch = features.batch
    cut = replace(
        batch,
        x=tree_map(lambda leaf: leaf[:, steps], batch.x),
        y=batch.y[:, steps],
        mask=batch.mask[:, steps],
    )
    return Features(cut, features.h[:, steps], features.key[:, steps])
