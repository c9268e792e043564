"""BANKING77: questions to a bank's support, in 77 intents (Casanueva et al., 2020)."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelmem.config import check_limits
from labelmem.errors import DataError
from labelmem.split import Split
from labelmem_paper.datasets.intents import Intents
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.opening import read_all
from labelmem_paper.datasets.prepared import as_integers, as_names
from labelmem_paper.datasets.problems import malformed
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.strings import pack

__all__ = ["DATASET", "Banking77Recipe"]

HEADER = ["text", "category"]


@dataclass(frozen=True)
class Banking77Recipe:
    """How the texts are divided: the test part is published, the validation part is drawn."""

    valid_share: float = 0.1
    """Share of the training texts, drawn by seed, to validate on."""

    def __post_init__(self) -> None:
        check_limits(self, ())


def read_csv(path: Path) -> list[tuple[str, str]]:
    """Read rows of text and category; a text may hold commas and line breaks in quotes."""
    try:
        content = read_all(path).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error}); get it again") from error
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    rows: list[tuple[str, str]] = []
    try:
        for row in reader:
            if reader.line_num == 1 and row != HEADER:
                raise malformed(path, 1, ",".join(row), ",".join(HEADER))
            if len(row) != 2 or not row[1]:
                raise malformed(path, reader.line_num, ",".join(row), "a text and a category")
            rows.append((row[0].replace("\0", " "), row[1]))
    except csv.Error as error:
        raise malformed(path, reader.line_num, str(error), "quoted fields") from error
    if len(rows) < 2:
        raise DataError(f"{path} holds no text; get it again from its publisher")
    return rows[1:]


def read_files(paths: tuple[Path, ...], recipe: Banking77Recipe) -> Arrays:
    """Read the training and the test file."""
    train, test = (read_csv(path) for path in paths)
    rows = train + test
    names = sorted({category for _, category in rows})
    numbers = {name: index for index, name in enumerate(names)}
    return {
        "texts": pack(text for text, _ in rows),
        "categories": np.array([numbers[category] for _, category in rows], np.int64),
        "names": pack(names),
        "trained": np.array(len(train), np.int64),
    }


def as_intents(arrays: Arrays, recipe: Banking77Recipe, source: Source, seed: int) -> Intents:
    """Make the container; the seed draws the validation texts."""
    categories = as_integers(arrays, "categories")
    trained = int(as_integers(arrays, "trained"))
    order = np.random.default_rng(seed).permutation(trained)
    valid = round(recipe.valid_share * trained)
    split = Split(
        train=np.sort(order[valid:]),
        valid=np.sort(order[:valid]),
        test=np.arange(trained, len(categories)),
    )
    return Intents(
        "banking77",
        texts=as_names(arrays, "texts"),
        categories=categories,
        names=as_names(arrays, "names"),
        split=split,
        source=source,
        recipe=recipe,
    )


DATASET = Dataset(
    "banking77",
    Banking77Recipe(),
    layouts=(
        Layout("raw", ("train.csv", "test.csv"), read_files, common_names=True),
        Layout("raw", ("banking_data/train.csv", "banking_data/test.csv"), read_files),
        Layout("compact", ("banking77.train.csv.xz", "banking77.test.csv.xz"), read_files),
    ),
    assemble=as_intents,
)
