"""Embeddings with labels, from npz or Parquet, as a log beside a matrix."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelmem.errors import DataError
from labelmem.logs.log import Log
from labelmem.logs.problems import Policy, Problems
from labelmem.logs.rows import parquet_file, require_columns

__all__ = ["VectorColumns", "read_vectors"]

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class VectorColumns:
    """What the arrays or columns are called."""

    embedding: str = "embeddings"
    label: str = "labels"
    user: str | None = None
    """None: all rows are one stream."""

    def names(self) -> list[str]:
        """Those that are asked for."""
        return [name for name in (self.embedding, self.label, self.user) if name is not None]


def read_vectors(path: Path, columns: VectorColumns, policy: Policy = "stop") -> tuple[Log, Matrix]:
    """Labels as the items of a log without times, and the embeddings (events, d) in its order."""
    vectors, labels, users = _reader_of(path)(path, columns)
    problems = Problems(path, policy)
    matrix, good = _matrix(path, vectors, problems)
    if len(matrix) != len(labels) or len(matrix) != len(users):
        raise DataError(
            f"{path} has {len(matrix)} embeddings, {len(labels)} labels and {len(users)} users; "
            "expected as many of each"
        )
    user_names, item_names = _names(users), _names(labels)
    for i in np.flatnonzero(good):
        if not item_names[i] or not user_names[i]:
            problems.add("item" if user_names[i] else "user", int(i) + 1)
            good[i] = False
    problems.settle()
    if not good.any():
        raise DataError(f"{path} has no row that can be used; {'; '.join(problems.sentences())}")
    row = np.flatnonzero(good)
    who: dict[str, int] = {}
    what: dict[str, int] = {}
    user = np.array([who.setdefault(user_names[i], len(who)) for i in row], np.int64)
    item = np.array([what.setdefault(item_names[i], len(what)) for i in row], np.int64)
    order = np.argsort(user, kind="stable")
    log = Log(path, user[order], item[order], None, row[order] + 1, [*who], [*what], problems)
    return log, matrix[row[order]]


def _reader_of(path: Path) -> Callable[[Path, VectorColumns], tuple[Any, Any, Any]]:
    """What reads a file, by its name or by its first bytes."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; expected an npz or a Parquet file")
    if not path.is_file():
        raise DataError(f"there is no file {path}; check the path")
    with path.open("rb") as stream:
        start = stream.read(4)
    if path.suffix == ".npz" or start.startswith(b"PK"):
        return _from_npz
    if path.suffix in (".parquet", ".pq") or start == b"PAR1":
        return _from_parquet
    raise DataError(f"{path} is neither npz nor Parquet; expected embeddings in one of these")


def _from_npz(path: Path, columns: VectorColumns) -> tuple[Any, Any, Any]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            require_columns(path, arrays.files, columns.names(), "array")
            parts = [arrays[name] for name in columns.names()]
    except DataError:
        raise
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as npz: {error}") from error
    return _with_users(parts)


def _from_parquet(path: Path, columns: VectorColumns) -> tuple[Any, Any, Any]:
    file = parquet_file(path)
    require_columns(path, file.schema_arrow.names, columns.names())
    table = file.read(columns=columns.names())
    return _with_users([table.column(name).to_pylist() for name in columns.names()])


def _with_users(parts: list[Any]) -> tuple[Any, Any, Any]:
    users = parts[2] if len(parts) > 2 else np.full(len(parts[1]), "all")
    return parts[0], parts[1], users


def _matrix(path: Path, vectors: Any, problems: Problems) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """The embeddings, and which of them are sound."""
    if isinstance(vectors, list):  # of Parquet: lists, or None where one is missing
        lengths = [len(vector) if vector is not None else 0 for vector in vectors]
        dim = max(set(lengths), key=lengths.count, default=0)
        blank = [np.nan] * dim
        vectors = [v if n == dim else blank for v, n in zip(vectors, lengths, strict=True)]
    try:
        matrix = np.asarray(vectors, np.float32)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: the embeddings are not numbers ({error})") from error
    if matrix.ndim != 2 or not matrix.size:
        raise DataError(
            f"{path}: the embeddings have shape {matrix.shape}; expected (rows, dimensions)"
        )
    good: npt.NDArray[np.bool_] = np.all(np.isfinite(matrix), axis=1)
    for i in np.flatnonzero(~good):
        problems.add("vector", int(i) + 1)
    return matrix, good


def _names(values: Any) -> list[str]:
    """Labels or users as text; empty where there is none."""
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    missing = (None, "")
    return ["" if value in missing or value != value else str(value) for value in plain]
