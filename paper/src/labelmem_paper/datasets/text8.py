"""text8: the first 100 million characters of a cleaned Wikipedia (Mahoney, 2006)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from labelmem.config import check_limits
from labelmem.errors import ConfigError, DataError
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.opening import read_all
from labelmem_paper.datasets.problems import malformed
from labelmem_paper.datasets.text import as_text, encode, text_arrays

__all__ = ["DATASET", "Text8Recipe"]

UNKNOWN = "<UNK>"
_STRANGE = re.compile(rb"[^a-z \n]")


@dataclass(frozen=True)
class Text8Recipe:
    """How the text becomes word tokens.

    The published file is cut by characters: the last part is for testing, the one before for
    validation, the rest for training. The compact files are these parts already, the training one
    cut short. Words seen too rarely in the training part become ``<UNK>`` everywhere; the others
    are numbered by how often they occur there, ``<UNK>`` being number 0.

    Examples
    --------
    >>> Text8Recipe(min_count=0)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: min_count is 0; it must be at least 1
    """

    min_count: int = 11
    """Fewest occurrences in the training part of a word that is kept. The held-out files at hand
    were made by keeping words that occur more than 10 times."""
    valid_characters: int = 1_000_000
    """Length of the validation part of the published file."""
    test_characters: int = 1_000_000
    """Length of the test part of the published file; published figures use a million."""

    def __post_init__(self) -> None:
        check_limits(self, ("min_count",))
        for name in ("valid_characters", "test_characters"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must not be negative")


def prepare(train: str, valid: str, test: str, recipe: Text8Recipe) -> Arrays:
    """Choose the vocabulary from the training part and number the words of all."""
    words = {"train": train.split(), "valid": valid.split(), "test": test.split()}
    counts = Counter(words["train"])
    counts.pop(UNKNOWN, None)
    kept = [word for word, count in counts.most_common() if count >= recipe.min_count]
    if not kept:
        raise DataError(
            f"no word of the {len(words['train']):,} training words occurs {recipe.min_count} "
            "times or more; lower min_count"
        )
    vocabulary = [UNKNOWN, *kept]
    numbers = {word: index for index, word in enumerate(vocabulary)}
    return text_arrays({name: encode(part, numbers, 0) for name, part in words.items()}, vocabulary)


def read_published(paths: tuple[Path, ...], recipe: Text8Recipe) -> Arrays:
    """Read the whole file and cut it."""
    content = read_all(paths[0], "text8")
    text = _checked(content, paths[0])
    test_from = len(text) - recipe.test_characters
    valid_from = test_from - recipe.valid_characters
    if valid_from <= 0:
        raise DataError(
            f"{paths[0]} has {len(text):,} characters, no more than the validation and test parts "
            "take; get the whole file of 100,000,000 or make them smaller"
        )
    parts = text[:valid_from], text[valid_from:test_from], text[test_from:]
    return prepare(*parts, recipe)


def read_compact(paths: tuple[Path, ...], recipe: Text8Recipe) -> Arrays:
    """Read the three parts at hand."""
    train, valid, test = (_checked(read_all(path), path) for path in paths)
    return prepare(train, valid, test, recipe)


def _checked(content: bytes, path: Path) -> str:
    """Return the text, which may hold only a-z, space and line breaks beside ``<UNK>``."""
    plain = content.replace(UNKNOWN.encode(), b"") if b"<" in content else content
    strange = _STRANGE.search(plain)
    if strange:
        line = plain.count(b"\n", 0, strange.start()) + 1
        seen = plain[strange.start() : strange.start() + 20].decode("latin-1")
        raise malformed(path, line, seen, "only the letters a to z and spaces")
    if not content.strip():
        raise DataError(f"{path} is empty; get it again from its publisher")
    return content.decode("ascii")


DATASET = Dataset(
    "text8",
    Text8Recipe(),
    layouts=(
        Layout("raw", ("text8",), read_published),
        Layout("raw", ("text8.zip",), read_published),
        Layout(
            "compact",
            ("text8.first9086k.txt.xz", "text8.98M-99M.unk.txt.xz", "text8.last1M.unk.txt.xz"),
            read_compact,
            subset=True,
            note="training on the first 9,086,043 of 100,000,000 characters; whole test part, "
            "its rare words <UNK>",
        ),
    ),
    assemble=partial(as_text, "text8"),
)
