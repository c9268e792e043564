"""What ``labelmem adapt-embeddings`` does: classify by a memory, alone or beside a linear head."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from labelmem.adapter import Adapter
from labelmem.config import MemoryConfig
from labelmem.errors import ConfigError, DataError, MismatchError, StorageError
from labelmem.logs.adapt_command import taken_in, taken_in_before
from labelmem.logs.adapting import ABREAST, STEPS, Adaptation
from labelmem.logs.fit_command import digest_of
from labelmem.logs.folder import read_json, write_json
from labelmem.logs.known import Known, Unknown
from labelmem.logs.log import Log
from labelmem.logs.problems import Policy
from labelmem.logs.replaying import Integers, Source
from labelmem.logs.states import States
from labelmem.logs.vectors import Matrix, VectorColumns, read_vectors
from labelmem.logs.vocabulary import Vocabulary
from labelmem.logs.words import counted

__all__ = ["adapt_embeddings"]

_NOTE = "embeddings.json"
_ABREAST = 16
"""Users side by side beside a head: each memory holds matrices (d, d), and takes steps alone."""


def adapt_embeddings(
    path: Path,
    output: Path | None = None,
    states: Path | None = None,
    *,
    known: Path | None = None,
    columns: VectorColumns | None = None,
    memory: MemoryConfig | None = None,
    policy: Policy = "stop",
    top: int = 5,
    abreast: int = ABREAST,
    steps: int = STEPS,
    abandon: bool = False,
    tell: Callable[[str], None] = lambda line: None,
    show: bool | None = None,
) -> dict[str, Any]:
    """Predict the label of each embedding before it is revealed; how it went.

    There is no model: a labeled memory of each user's embeddings is the classifier. Or, with
    ``known``, the default form beside a linear head.

    Parameters
    ----------
    output
        Where predictions go, one JSON object in each line; None for nowhere.
    states
        A folder for the users' memories, which are continued from it; None keeps nothing.
    known
        Labelled embeddings from before, which train the head; the same ones each time.
    memory
        How a memory without a head reads and writes.
    abandon
        Whether files that were begun and not finished are given up, as far as they have come.
    """
    if known is not None and memory is not None:
        raise ConfigError(
            "lam, cells and margin are for a memory without a head; with known examples nothing is "
            "to be set: leave them out"
        )
    columns = columns or VectorColumns()
    log, matrix = _read(path, columns, policy, tell)
    way: Known | Unknown = Unknown(memory or MemoryConfig())
    if known is not None:
        tell(f"known from {known}, which trains a head the first time:")
        way = Known(*_read(known, replace(columns, user=None), policy, tell))
        _check_dimensions(way, log, matrix)
        abreast = min(abreast, _ABREAST)
    place = nullcontext(states) if states is not None else tempfile.TemporaryDirectory()
    with place as name:
        folder = Path(name)
        _prepare(folder, {"dim": matrix.shape[1]} | way.settings())
        with States(folder) as kept:
            digest = digest_of(path)
            if (before := taken_in_before(kept, path, digest, abandon, tell, log)) is not None:
                return before
            adapter = way.adapter(folder)
            source = _source(adapter, matrix, top)
            work = Adaptation(kept, source, log, digest, output, abreast, steps)
            outcome = taken_in(work, show) | {"baselines": _baselines(log)}
            if known is not None:
                numbers = source.known(log.items)[log.item]
                outcome["head_alone"] = _alone(adapter, numbers, matrix)
            return outcome


def _read(
    path: Path, columns: VectorColumns, policy: Policy, tell: Callable[[str], None]
) -> tuple[Log, Matrix]:
    """Embeddings with labels, after a word about them."""
    log, matrix = read_vectors(path, columns, policy)
    tell(
        f"{counted(len(log), 'embedding')} of {counted(matrix.shape[1], 'dimension')}, "
        f"{counted(len(log.items), 'label')}, {counted(len(log.users), 'user')}"
    )
    for line in log.problems.sentences():
        tell(line)
    return log, matrix


def _source(adapter: Adapter, matrix: Matrix, top: int) -> Source:
    names = [str(name) for name in adapter.known.names]
    return Source(
        adapter,
        names,
        Vocabulary(names).numbers,
        lambda events, previous: torch.from_numpy(matrix[events]),
        top,
    )


def _check_dimensions(known: Known, log: Log, matrix: Matrix) -> None:
    ours, theirs = known.matrix.shape[1], matrix.shape[1]
    if ours != theirs:
        raise DataError(
            f"the embeddings of {known.log.path} have {counted(ours, 'dimension')}, those of "
            f"{log.path} have {theirs}; use the same encoder for both"
        )


def _prepare(folder: Path, settings: dict[str, Any]) -> None:
    """Note with what settings the memories of a folder are kept; others are refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror or error}") from error
    path = folder / _NOTE
    if path.exists():
        theirs = read_json(path, dict)
        if theirs.get("known") != settings.get("known"):
            begun = "without known examples; leave --known out"
            if "known" in theirs:
                begun = (
                    "with known examples, not with these; give the same ones (--known) each time"
                )
            raise MismatchError(f"{folder} was begun {begun}, or name another folder")
        if theirs != settings:
            raise MismatchError(
                f"{folder} was begun with {theirs}, now it is {settings}; use the same embeddings "
                "and settings, or another folder"
            )
        return
    if any(folder.iterdir()):
        raise StorageError(f"{folder} holds something else; name an empty folder, or a new one")
    write_json(path, settings)


@torch.no_grad()
def _alone(adapter: Adapter, numbers: Integers, matrix: Matrix) -> float:
    """Accuracy of the head without a memory; labels without a number in it are missed."""
    best = adapter.backbone.model(torch.from_numpy(matrix)).argmax(1).numpy()
    return float((best == numbers).mean())


def _baselines(log: Log) -> dict[str, float]:
    """Accuracy of guessing each user's most common label so far, and their latest."""
    common = latest = 0
    counts: Counter[int] = Counter()
    user = last = -1
    for who, what in zip(log.user.tolist(), log.item.tolist(), strict=True):
        if who != user:
            counts, user, last = Counter(), who, -1
        latest += last == what
        common += bool(counts) and counts.most_common(1)[0][0] == what
        counts[what] += 1
        last = what
    return {"most_common_so_far": common / len(log), "latest": latest / len(log)}
