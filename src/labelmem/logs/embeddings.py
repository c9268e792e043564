"""What ``labelmem adapt-embeddings`` does: the memory alone as a classifier of embeddings."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from labelmem.adapter import Adapter
from labelmem.config import MemoryConfig
from labelmem.errors import MismatchError, StorageError
from labelmem.logs.adapt_command import taken_in, taken_in_before
from labelmem.logs.adapting import ABREAST, STEPS, Adaptation
from labelmem.logs.fit_command import digest_of
from labelmem.logs.folder import read_json, write_json
from labelmem.logs.log import Log
from labelmem.logs.problems import Policy
from labelmem.logs.replaying import Source
from labelmem.logs.states import States
from labelmem.logs.vectors import Matrix, VectorColumns, read_vectors
from labelmem.logs.words import counted

__all__ = ["adapt_embeddings"]

_NOTE = "embeddings.json"


def adapt_embeddings(
    path: Path,
    output: Path | None = None,
    states: Path | None = None,
    *,
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

    There is no model: a labeled memory of each user's embeddings is the classifier.

    Parameters
    ----------
    output
        Where predictions go, one JSON object in each line; None for nowhere.
    states
        A folder for the users' memories, which are continued from it; None keeps nothing.
    abandon
        Whether files that were begun and not finished are given up, as far as they have come.
    """
    log, matrix = read_vectors(path, columns or VectorColumns(), policy)
    memory = memory or MemoryConfig()
    tell(
        f"{counted(len(log), 'embedding')} of {counted(matrix.shape[1], 'dimension')}, "
        f"{counted(len(log.items), 'label')}, {counted(len(log.users), 'user')}"
    )
    for line in log.problems.sentences():
        tell(line)
    place = nullcontext(states) if states is not None else tempfile.TemporaryDirectory()
    with place as folder:
        _prepare(Path(folder), memory, matrix.shape[1])
        with States(Path(folder)) as kept:
            digest = digest_of(path)
            if (before := taken_in_before(kept, path, digest, abandon, tell, log)) is not None:
                return before
            source = _source(memory, matrix, top)
            work = Adaptation(kept, source, log, digest, output, abreast, steps)
            return taken_in(work, show) | {"baselines": _baselines(log)}


def _source(memory: MemoryConfig, matrix: Matrix, top: int) -> Source:
    return Source(
        Adapter(nn.Identity(), labels=(), memory=memory),
        (),
        lambda items: np.full(len(items), -1),
        lambda events, previous: torch.from_numpy(matrix[events]),
        top,
    )


def _prepare(folder: Path, memory: MemoryConfig, dim: int) -> None:
    """Note with what settings the memories of a folder are kept; others are refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror or error}") from error
    ours = {"dim": dim, "memory": asdict(memory)}
    path = folder / _NOTE
    if path.exists():
        theirs = read_json(path, dict)
        if theirs != ours:
            raise MismatchError(
                f"{folder} was begun with {theirs}, now it is {ours}; use the same embeddings and "
                "settings, or another folder"
            )
        return
    if any(folder.iterdir()):
        raise StorageError(f"{folder} holds something else; name an empty folder, or a new one")
    write_json(path, ours)


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
