"""Kernels of many streams' memories: a range of streams at a time, each by the kernels of one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from labelmem.engines.numba import copy, fill, inlined, kernel_of_rows
from labelmem.engines.numba.mix import believe, mix
from labelmem.engines.numba.places import fill_table
from labelmem.engines.numba.read import measure, read_lone, read_parts
from labelmem.engines.numba.write import cell_for, margin_of, write_cell

__all__ = ["Mixture", "Rows", "believe_and_mix", "measure_rows", "mix_rows", "read_rows"]
__all__ += ["write_rows"]


class Rows(NamedTuple):
    """The cells of n streams, one for each label, and what kernels know of them."""

    v: Any
    alpha: Any
    label: Any
    written: Any
    born: Any
    writes: Any
    rates: Any
    size: Any
    used: Any
    time: Any
    known: Any
    """(n, 2, K) see :func:`labelmem.engines.numba.read.measure`."""
    table: Any
    """(n, T) where labels lie, if there are many."""
    bounds: Any
    log_fades: Any


class Mixture(NamedTuple):
    """All that the mixtures of n streams are made of."""

    logits: Any
    names: Any
    """(n, K) the labels in memory."""
    used: Any
    """(n,) how many each stream has."""
    score: Any
    """(n, K) theirs."""
    theta: Any
    """(n,)."""
    partition: bool


@kernel_of_rows
def measure_rows(first: int, end: int, rows: Rows) -> None:
    """Find what reads and writes need beside the cells."""
    for i in range(first, end):
        start: Any = np.int64(0)  # not a literal: that would be compiled apart
        told = (rows.known[i], rows.size[i])
        measure(rows.v[i], rows.alpha[i], rows.bounds, start, rows.used[i], *told)
        fill_table(rows.table[i], rows.label[i], rows.used[i])


@kernel_of_rows
def read_rows(
    first: int,
    end: int,
    rows: Rows,
    key: Any,
    lam: float,
    delta: float,
    cosine: Any,
    parts: Any,
    score: Any,
) -> None:
    """Eq. 2 and 3 of each stream's ``key`` (n, d) into (n, K), zero where there is no cell.

    ``parts`` (n, K, B) has no rows where keys are in one piece.
    """
    for i in range(first, end):
        k = rows.used[i]
        fill(cosine[i, k:], np.float32(0.0))
        fill(score[i, k:], np.float32(0.0))
        told = cosine[i, :k], score[i, :k]
        if len(parts) == 0:
            read_lone(rows.v[i], rows.known[i], key[i], lam, delta, told[0], told[1])
            continue
        for cell in range(k, parts.shape[1]):
            fill(parts[i, cell], np.float32(0.0))
        cells = rows.v[i], rows.known[i], rows.size[i], rows.bounds
        read_parts(*cells, key[i], lam, delta, told[0], parts[i, :k], told[1])


@inlined
def believe_and_mix(of: Mixture, i: int, r: Any, s: Any, P: Any) -> None:
    """Eq. 1 and 5 of one stream into (W,) each."""
    k = of.used[i]
    believe(of.logits[i], r)
    mix(r, of.names[i, :k], of.score[i, :k], of.theta[i], of.partition, s, P)


@kernel_of_rows
def mix_rows(first: int, end: int, of: Mixture, P: Any) -> None:
    """The predictions (n, W)."""
    room = np.empty((2, P.shape[1]), np.float32)
    for i in range(first, end):
        believe_and_mix(of, i, room[0], room[1], P[i])


@kernel_of_rows
def write_rows(
    first: int,
    end: int,
    rows: Rows,
    key: Any,
    y: Any,
    mask: Any,
    of: Mixture,
    P: Any,
    margin: float,
    decay: float,
    capacity: int,
    oldest: bool,
    cells: Any,
    before: Any,
) -> None:
    """The write rules in the streams of the ``mask`` (n,), after predicting ``P`` (n, W).

    P has no rows where nobody has asked for them: they are made if the margin asks.
    ``cells`` (n,) gets the positions written to, -1 for none, ``before`` what the first eight of
    ``rows`` but v had there.
    """
    room = np.empty((3, P.shape[1]), np.float32)
    alpha, label, written, born, writes, rates, size = before
    for i in range(first, end):
        cells[i] = -1
        if not mask[i]:
            continue
        rows.time[i] += 1
        if margin < math.inf:
            mixed = room[2]
            if len(P):
                mixed = P[i]
            else:
                believe_and_mix(of, i, room[0], room[1], mixed)
            if not margin_of(mixed, y[i], margin)[0]:
                continue
        alpha_i, label_i, written_i = rows.alpha[i], rows.label[i], rows.written[i]
        born_i, writes_i, rates_i, size_i = (
            rows.born[i],
            rows.writes[i],
            rows.rates[i],
            rows.size[i],
        )
        used, table = rows.used[i : i + 1], rows.table[i]
        cell = cell_for(y[i], label_i, written_i, alpha_i, born_i, used[0], table, capacity, oldest)
        cells[i] = cell
        alpha[i], label[i], written[i] = alpha_i[cell], label_i[cell], written_i[cell]
        born[i], writes[i] = born_i[cell], writes_i[cell]
        copy(rates_i[cell], rates[i])
        if len(size_i):
            copy(size_i[cell], size[i])
        own = (rows.v[i], alpha_i, label_i, written_i, born_i, writes_i, rates_i, used)
        known = (rows.known[i], size_i, table)
        now = rows.time[i]
        write_cell((*own, *known), cell, key[i], y[i], now, rows.bounds, rows.log_fades, decay)
