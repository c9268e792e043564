"""Running text as word numbers: what the language-modelling table runs on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelmem.errors import ConfigError, DataError
from labelmem.split import Part
from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.datasets.prepared import as_integers, as_names
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.strings import pack

__all__ = ["Text", "as_text", "encode", "text_arrays"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Text:
    """A corpus in three parts over one vocabulary.

    Examples
    --------
    >>> text = Text("toy", train=np.array([0, 1, 0]), valid=np.array([1]), test=np.array([0]),
    ...             vocabulary=("the", "cat"), source=Source("generated"))
    >>> text.labels, text.words(text.train)
    (2, ['the', 'cat', 'the'])
    """

    name: str
    """Name of the data set."""
    train: Integers
    """Word numbers of the training part, as one stream."""
    valid: Integers
    """Word numbers of the validation part."""
    test: Integers
    """Word numbers of the test part."""
    vocabulary: tuple[str, ...]
    """The word of each number."""
    source: Source
    """The files it was read from."""
    recipe: object = None
    """The options it was prepared with."""

    @property
    def labels(self) -> int:
        """Size of the vocabulary."""
        return len(self.vocabulary)

    def part(self, name: Part) -> Integers:
        """Return one part by its name."""
        if name not in ("train", "valid", "test"):
            raise ConfigError(f"part is {name!r}; it must be 'train', 'valid' or 'test'")
        tokens: Integers = getattr(self, name)
        return tokens

    def words(self, tokens: Iterable[int]) -> list[str]:
        """Return the words behind some word numbers."""
        return [self.vocabulary[token] for token in tokens]


def encode(words: Sequence[str], numbers: Mapping[str, int], unknown: int | None) -> Integers:
    """Replace words by their numbers; others by ``unknown``, or an error if that is None."""
    if unknown is None:
        strange = next((word for word in words if word not in numbers), None)
        if strange is not None:
            raise DataError(f"the word {strange!r} is in no training text; was a part altered?")
    found = (numbers.get(word, unknown) for word in words)
    return np.fromiter(found, np.int64, count=len(words))


def text_arrays(parts: Mapping[str, Integers], vocabulary: Iterable[str]) -> Arrays:
    """Pack the three parts and the vocabulary for the cache."""
    return {**parts, "vocabulary": pack(vocabulary)}


def as_text(name: str, arrays: Arrays, recipe: object, source: Source, seed: int) -> Text:
    """Make the container. The parts are published, so the seed changes nothing."""
    return Text(
        name,
        train=as_integers(arrays, "train"),
        valid=as_integers(arrays, "valid"),
        test=as_integers(arrays, "test"),
        vocabulary=as_names(arrays, "vocabulary"),
        source=source,
        recipe=recipe,
    )
