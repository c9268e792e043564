"""How well streams were predicted: log-perplexity, reciprocal rank and accuracy, with intervals."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.errors import ConfigError, InputError

__all__ = ["FLOOR", "Block", "MetricsResult", "PositionBin", "StreamMetrics", "reciprocal_rank"]

FLOOR = 1e-10
"""The least probability inside the logarithm, and nowhere else."""

Array = npt.NDArray[np.float64]
_SUMS = ("tokens", "loss", "reciprocal_rank", "hits", "floored")
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


def reciprocal_rank(probs: Tensor, y: Tensor) -> Tensor:
    """One over the rank of the true label, (n,).

    The rank is 1 + the labels strictly above + half of the other labels that tie.

    Parameters
    ----------
    probs
        (n, W), one row for each prediction.
    y
        (n,) columns of the true labels. A column outside ``probs`` means a label that has none yet:
        it ranks as if it were appended with probability 0.

    Examples
    --------
    >>> probs = torch.tensor([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.6, 0.4, 0.0]])
    >>> reciprocal_rank(probs, torch.tensor([2, 0, 7]))
    tensor([0.5000, 0.6667, 0.2857])
    """
    return 1 / _measure(*_checked(probs, y))[1]


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
        self._columns = {name: column for column, name in enumerate(_SUMS)}
        self._sums: Array = np.zeros((0, len(_SUMS)))  # (streams, columns), with room to grow
        self._slots: dict[object, int] = {}
        self._positions: Array = np.zeros((_BUCKETS, 3))  # tokens, loss, hits

    @property
    def running(self) -> float:
        """The log-perplexity so far, nan before the first token."""
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
        """Count n predictions; one transfer from the device, however many groups there are.

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
        groups = groups or {}
        kept, values = _score(probs, y, mask, groups, widths)
        ids = range(len(y)) if streams is None else [operator.index(i) for i in streams]
        if len(ids) != len(y):
            raise InputError(f"streams names {len(ids)} rows, probs has {len(y)}; give one per row")
        self._add([ids[row] for row in kept], values)

    def merge(self, other: StreamMetrics) -> None:
        """Take in the streams of another shard.

        The other's streams count as different from all streams here, whatever their ids: a stream
        belongs to one shard.

        Examples
        --------
        >>> a, b = StreamMetrics(), StreamMetrics()
        >>> a.update(torch.tensor([[1.0]]), torch.tensor([0]))
        >>> b.update(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        >>> a.merge(b)
        >>> a.result().streams
        2
        """
        theirs = other._sums[: len(other._slots)].copy()
        columns = self._use_columns(list(other._columns))
        slots = [self._slot(object()) for _ in range(len(theirs))]
        self._sums[np.ix_(slots, columns)] = theirs
        self._positions = self._positions + other._positions

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
        sums = self._sums[: len(self._slots)]
        if not len(sums):
            raise InputError("there are no tokens to report on; call update first")
        figures = self._figures(sums.sum(0))
        if len(sums) == 1:  # one stream says nothing about how streams differ
            interval = {name: (math.nan, math.nan) for name in figures}
        else:
            drawn = self._figures(_bootstrap(sums, resamples, np.random.default_rng(seed)))
            interval = {name: _percentiles(values, confidence) for name, values in drawn.items()}
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
        >>> metrics = StreamMetrics()
        >>> metrics.update(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([0, 0]))
        >>> metrics.blocks(1)
        [Block(tokens=2, loss=0.6931471805599453, reciprocal_rank=1.66...)]
        """
        if most < 1:
            raise ConfigError(f"most is {most}; it must be at least 1")
        if any(not isinstance(stream, int) for stream in self._slots):
            raise InputError("streams of merged shards have no ids to be ordered by")
        order = [self._slots[stream] for stream in sorted(self._slots)]  # type: ignore[type-var]
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

    def _slot(self, stream: object) -> int:
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


def _score(
    probs: Tensor,
    y: Tensor,
    mask: Tensor | None,
    groups: Mapping[str, Tensor],
    widths: Tensor | None,
) -> tuple[npt.NDArray[np.int64], dict[str, Array]]:
    """Which rows count, and what each of them adds to every column."""
    probs, y = _checked(probs, y)
    if mask is None:
        mask = torch.ones(len(y), dtype=torch.bool)
    flags = [_flag(f"group {name!r}", flag, len(y)) for name, flag in groups.items()]
    table = _to_host(_measure(probs, y, widths), [_flag("mask", mask, len(y)), *flags])
    kept = np.flatnonzero(table[4])
    p, rank, hit, top = table[:4, kept]
    _check_probabilities(p, top)
    loss = -np.log(np.maximum(p, FLOOR))
    floored = (p < FLOOR).astype(np.float64)
    values = dict(zip(_SUMS, (np.ones_like(p), loss, 1 / rank, hit, floored), strict=True))
    for name, member in zip(groups, table[5:, kept], strict=True):
        values |= {f"tokens {name}": member, f"hits {name}": member * hit}
    return kept, values


def _checked(probs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    if probs.dim() != 2 or not probs.is_floating_point():
        raise InputError(f"probs is {_seen(probs)}; expected floats of shape (n, labels)")
    if y.shape != probs.shape[:1] or y.is_floating_point() or y.dtype == torch.bool:
        raise InputError(f"y is {_seen(y)}; expected whole numbers of shape ({len(probs)},)")
    return probs.detach(), y.to(probs.device, torch.int64)


def _flag(name: str, flag: Tensor, rows: int) -> Tensor:
    if flag.shape != (rows,) or flag.dtype != torch.bool:
        raise InputError(f"{name} is {_seen(flag)}; expected torch.bool of shape ({rows},)")
    return flag


def _seen(tensor: Tensor) -> str:
    return f"{tensor.dtype} of shape {tuple(tensor.shape)}"


def _measure(probs: Tensor, y: Tensor, widths: Tensor | None = None) -> Tensor:
    """P(y), rank of y, whether y comes first, and the greatest P: (4, n) on the same device."""
    probs = probs.to(torch.float64 if probs.dtype == torch.float64 else torch.float32)
    rows, width = probs.shape
    if width == 0:  # nothing is known yet: y would be the only label, but that is no hit
        return probs.new_tensor([0, 1, 0, 0])[:, None].expand(4, rows)
    known = (y >= 0) & (y < (width if widths is None else widths))
    p = probs.gather(1, torch.where(known, y, 0)[:, None]) * known[:, None]
    # One buffer of floats for all comparisons: several times faster than sums of booleans, and
    # exact up to 16 million labels.
    buffer = torch.empty_like(probs)
    above = torch.gt(probs, p, out=buffer).sum(1)
    equal = torch.eq(probs, p, out=buffer)
    if widths is not None:
        equal.mul_(torch.arange(width, device=y.device) < widths[:, None])
    rank = 1 + above + (equal.sum(1) - known.to(probs.dtype)) / 2
    earlier = equal.mul_(torch.arange(width, device=y.device) < y[:, None]).sum(1)
    hit = known & (above == 0) & (earlier == 0)
    top = probs.amax(1)
    rank = torch.where(top.isnan(), top, rank)  # nan compares false and would rank first
    return torch.stack([p[:, 0], rank, hit.to(probs.dtype), top])


def _to_host(measured: Tensor, flags: Sequence[Tensor]) -> Array:
    """Rows of ``measured``, then the flags; what lies on the device comes in a single transfer."""
    there = [flag.to(measured.dtype)[None] for flag in flags if flag.device == measured.device]
    moved = torch.cat([measured, *there]).cpu().numpy().astype(np.float64)
    rows = iter(moved[len(measured) :])
    others = [next(rows) if f.device == measured.device else f.cpu().numpy() for f in flags]
    return np.stack([*moved[: len(measured)], *others], dtype=np.float64)


def _check_probabilities(p: Array, top: Array) -> None:
    bad = np.flatnonzero(~((p >= 0) & (top <= 1.001)))  # nan is neither
    if len(bad):
        seen = p[bad[0]] if not p[bad[0]] >= 0 else top[bad[0]]
        raise InputError(
            f"probs holds {seen}; expected probabilities between 0 and 1, not logits or logarithms"
        )


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


def _bootstrap(sums: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Sums over as many streams drawn with replacement: (resamples, columns)."""
    streams = len(sums)
    chunk = max(1, 1_000_000 // streams)
    drawn = []
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        picks = rng.integers(streams, size=(rows, streams)) + np.arange(rows)[:, None] * streams
        counts = np.bincount(picks.ravel(), minlength=rows * streams).reshape(rows, streams)
        drawn.append(counts.astype(np.float64) @ sums)
    return np.concatenate(drawn)


def _percentiles(values: Array, confidence: float) -> tuple[float, float]:
    values = values[~np.isnan(values)]  # draws in which a group did not occur
    if not len(values):
        return math.nan, math.nan
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
