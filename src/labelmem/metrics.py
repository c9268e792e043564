"""How well streams were predicted: log-perplexity, reciprocal rank and accuracy, with intervals."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from labelmem.bootstrap import interval as bounds
from labelmem.bootstrap import resampled
from labelmem.errors import ConfigError, InputError
from labelmem.scoring import (
    FLOOR,
    SUMS,
    Array,
    Measured,
    checked,
    fetched,
    measured,
    ranked,
    reciprocal_rank,
    score,
)

__all__ = ["FLOOR", "Block", "MetricsResult", "PositionBin", "StreamMetrics", "reciprocal_rank"]

_WAITING = 64  # rows of the device that are fetched together
_BUCKETS = 256  # four to an octave: enough for positions up to 2**64


@dataclass(frozen=True)
class MetricsResult:
    """The figures of some streams and how far to trust them."""

    metrics: dict[str, float]
    """log_perplexity (nats), bits, perplexity, mrr, accuracy, accuracy_<group>, floored (count)."""
    interval: dict[str, tuple[float, float]]
    """Bounds of each metric by bootstrap over streams; nan when there is only one stream."""
    streams: int
    """Streams with at least one token."""
    tokens: int
    """Tokens of all streams together, the first of each included."""


@dataclass(frozen=True)
class PositionBin:
    """What happened between two positions of the streams."""

    start: int
    """First position in the bin, counted from 0."""
    stop: int
    """First position after the bin."""
    tokens: int
    """Tokens counted here, over all streams."""
    log_perplexity: float
    """Their mean loss in nats."""
    accuracy: float
    """The share of them that was predicted."""


@dataclass(frozen=True)
class Block:
    """What some of the streams add up to."""

    tokens: int
    loss: float
    """In nats."""
    reciprocal_rank: float


class StreamMetrics:
    """Adds up the figures of many streams, a few numbers for each stream and nothing per token.

    Figures weigh every token alike. Their intervals come from drawing whole streams again and
    again, because the tokens of one stream are not independent.

    Notes
    -----
    Sums by position are kept in buckets, the same for all streams: one for each of the first eight
    positions, then four to every doubling (8-9, 10-11, ..., 16-19, 20-23, ...).

    Examples
    --------
    >>> import torch
    >>> metrics = StreamMetrics()
    >>> for step in range(3):  # two streams in lockstep
    ...     probs = torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    ...     first = torch.tensor([True, False])
    ...     metrics.update(probs, torch.tensor([0, 1]), groups={"first": first})
    >>> result = metrics.result()
    >>> result.streams, result.tokens, round(result.metrics["log_perplexity"], 4)
    (2, 6, 0.4904)
    >>> result.metrics["accuracy_first"], round(result.metrics["mrr"], 4)
    (1.0, 0.8333)
    >>> [(b.start, b.stop, b.tokens) for b in metrics.by_position(2)]
    [(0, 2, 4), (2, 3, 2)]
    """

    def __init__(self) -> None:
        self._columns = {name: column for column, name in enumerate(SUMS)}
        self._sums: Array = np.zeros((0, len(SUMS)))  # (streams, columns), with room to grow
        self._slots: dict[int, int] = {}
        self._positions: Array = np.zeros((_BUCKETS, 3))  # tokens, loss, hits
        self._waiting: list[Measured] = []

    @property
    def running(self) -> float:
        """The log-perplexity so far, nan before the first token."""
        self._count()
        tokens, loss, _ = self._positions.sum(0)
        return float(loss / tokens) if tokens else math.nan

    def update(
        self,
        probs: Tensor,
        y: Tensor,
        mask: Tensor | None = None,
        streams: Sequence[int] | None = None,
        groups: Mapping[str, Tensor] | None = None,
        widths: Tensor | None = None,
    ) -> None:
        """Count n predictions.

        What lies on a device is measured there and fetched later, many calls at once: waiting for
        every answer would cost more than the answers. So an error in ``probs`` may be told by a
        later call.

        Parameters
        ----------
        probs
            (n, W) probabilities.
        y
            (n,) columns of the true labels; outside of ``probs`` for a label without a column.
        mask
            (n,) which rows count; all of them if None.
        streams
            The stream of each row. None means that row i belongs to stream i. A stream may come
            several times, its rows in the order of time.
        groups
            Names of parts whose accuracy is wanted apart, each with the (n,) rows in it.
        widths
            (n,) how many of the columns are labels of the row's own stream; the rest is padding and
            ties with nothing. All of them if None.
        """
        self.add(ranked(*checked(probs, y), widths), mask, streams, groups)

    def add(
        self,
        figures: Tensor,
        mask: Tensor | None = None,
        streams: Sequence[int] | None = None,
        groups: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Count n predictions of which the ``figures`` (4, n) of a ``Step.worth`` are known.

        The other arguments are those of :meth:`update`.
        """
        n = figures.shape[1]
        ids = range(n) if streams is None else [operator.index(i) for i in streams]
        if len(ids) != n:
            raise InputError(f"streams names {len(ids)} rows, probs has {n}; give one per row")
        found = measured(figures, mask, groups or {}, ids)
        self._waiting.append(found)
        if not self._wait_for(found) or len(self._waiting) >= _WAITING:
            self._count()

    @staticmethod
    def _wait_for(found: Measured) -> bool:
        return found.table.is_cuda

    def _count(self) -> None:
        """Take in what was measured and not yet counted."""
        waiting, self._waiting = self._waiting, []
        for one, table in zip(waiting, fetched([found.table for found in waiting]), strict=True):
            kept, values = score(table, one.groups)
            self._add([one.ids[row] for row in kept], values)

    def result(
        self, confidence: float = 0.95, resamples: int = 1000, seed: int = 0
    ) -> MetricsResult:
        """Compute all figures and their percentile bootstrap intervals.

        Parameters
        ----------
        confidence
            The share of the resamples that each interval holds.
        resamples
            How often as many streams as there are are drawn anew, with replacement.
        seed
            Of the draws; the same streams and seed give the same interval.
        """
        if not 0 < confidence < 1 or resamples < 1:
            raise ConfigError(
                f"confidence is {confidence}, resamples is {resamples}; "
                "expected one between 0 and 1 and at least one resample"
            )
        self._count()
        sums = self._sums[: len(self._slots)]
        if not len(sums):
            raise InputError("there are no tokens to report on; call update first")
        figures = self._figures(sums.sum(0))
        if len(sums) == 1:  # one stream says nothing about how streams differ
            interval = {name: (math.nan, math.nan) for name in figures}
        else:
            drawn = self._figures(resampled(sums, resamples, np.random.default_rng(seed)))
            interval = {name: bounds(values, confidence) for name, values in drawn.items()}
        return MetricsResult(
            {name: float(value) for name, value in figures.items()},
            interval,
            streams=len(sums),
            tokens=int(sums[:, 0].sum()),
        )

    def by_position(self, bins: int = 16) -> list[PositionBin]:
        """The learning curve: loss and accuracy by position, in at most ``bins`` bins.

        Each bin joins the same number of neighbouring buckets (see Notes of the class), so bins
        grow wider along the stream. The last one ends at the longest stream's end or shortly after.
        """
        if bins < 1:
            raise ConfigError(f"bins is {bins}; it must be at least 1")
        self._count()
        used = int(np.count_nonzero(self._positions[:, 0]))  # positions fill from the start
        width = -(-used // bins)
        curve = []
        for first in range(0, used, width or 1):
            last = min(first + width, used)
            tokens, loss, hits = (float(x) for x in self._positions[first:last].sum(0))
            start, stop = _bucket_start(first), _bucket_start(last)
            curve.append(PositionBin(start, stop, int(tokens), loss / tokens, hits / tokens))
        return curve

    def blocks(self, most: int = 100) -> list[Block]:
        """Sums over neighbouring streams, in at most ``most`` blocks of equally many.

        Two methods that saw the same streams have the same blocks, so that their difference can be
        judged block by block: what makes a stream hard is hard for both. Streams are ordered by
        their ids, not by when they came.

        Examples
        --------
        >>> import torch
        >>> metrics = StreamMetrics()
        >>> metrics.update(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([0, 0]))
        >>> metrics.blocks(1)
        [Block(tokens=2, loss=0.6931471805599453, reciprocal_rank=1.66...)]
        """
        if most < 1:
            raise ConfigError(f"most is {most}; it must be at least 1")
        self._count()
        order = [self._slots[stream] for stream in sorted(self._slots)]
        columns = self._use_columns(("tokens", "loss", "reciprocal_rank"))
        parts = np.array_split(self._sums[np.ix_(order, columns)], min(most, len(order)) or 1)
        sums = [part.sum(0).tolist() for part in parts]
        return [Block(int(tokens), loss, rank) for tokens, loss, rank in sums]

    def _add(self, ids: Sequence[int], values: Mapping[str, Array]) -> None:
        slots = np.array([self._slot(stream) for stream in ids], dtype=np.int64)
        positions = self._sums[slots, 0].astype(np.int64) + _times_before(slots)
        for column, added in zip(self._use_columns(values), values.values(), strict=True):
            np.add.at(self._sums[:, column], slots, added)
        for column, name in enumerate(("tokens", "loss", "hits")):
            np.add.at(self._positions[:, column], _bucket(positions), values[name])

    def _slot(self, stream: int) -> int:
        slot = self._slots.setdefault(stream, len(self._slots))
        if slot >= len(self._sums):
            room = np.zeros((max(64, len(self._sums)), self._sums.shape[1]))
            self._sums = np.concatenate([self._sums, room])
        return slot

    def _use_columns(self, names: Iterable[str]) -> list[int]:
        for name in names:
            self._columns.setdefault(name, len(self._columns))
        missing = len(self._columns) - self._sums.shape[1]
        if missing:
            self._sums = np.pad(self._sums, ((0, 0), (0, missing)))
        return [self._columns[name] for name in names]

    def _figures(self, sums: Array) -> dict[str, Array]:
        """Turn sums (..., columns) into figures (...)."""
        of = {name: sums[..., column] for name, column in self._columns.items()}
        loss = of["loss"] / of["tokens"]
        figures = {
            "log_perplexity": loss,
            "bits": loss / math.log(2),
            "perplexity": np.exp(loss),
            "mrr": of["reciprocal_rank"] / of["tokens"],
            "accuracy": of["hits"] / of["tokens"],
            "floored": of["floored"],
        }
        for name in [column[7:] for column in of if column.startswith("tokens ")]:
            tokens, hits = of[f"tokens {name}"], of[f"hits {name}"]
            nothing = np.full(np.shape(tokens), np.nan)
            share = np.divide(hits, tokens, out=nothing, where=tokens > 0)
            figures[f"accuracy_{name}"] = share
        return figures


def _times_before(slots: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How often each entry already came earlier in the array."""
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    run_start = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    run_length = np.diff(np.r_[run_start, len(ordered)])
    times = np.empty_like(slots)
    times[order] = np.arange(len(slots)) - np.repeat(run_start, run_length)
    return times


def _bucket(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The bucket of each position: the position itself up to 7, then four to an octave."""
    octave = np.maximum(np.frexp(positions)[1] - 1, 2)
    return np.where(positions < 4, positions, 4 * (octave - 1) + ((positions >> (octave - 2)) & 3))


def _bucket_start(bucket: int) -> int:
    return bucket if bucket < 4 else (4 + bucket % 4) << (bucket // 4 - 1)
