"""Sequences of labels, one per user or session: what the online-prediction tables run on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelmem.errors import DataError
from labelmem.split import Part, Split
from labelmem_paper.datasets.source import Source

__all__ = ["Sequences"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Many label sequences, stored end to end.

    Sequence ``i`` is ``tokens[offsets[i]:offsets[i + 1]]``. All arrays are int64, so that they
    become index tensors without a copy.

    Examples
    --------
    >>> from labelmem.split import by_time
    >>> data = Sequences("toy", tokens=np.array([0, 1, 0, 2, 2]), offsets=np.array([0, 3, 5]),
    ...                  users=np.array([7, 9]), names=("bar", "gym", "zoo"),
    ...                  split=by_time(2, test=0.5, valid=0.0), source=Source("generated"))
    >>> len(data), data.labels, data.mean_length
    (2, 3, 2.5)
    >>> data[0], data.arrays("test")
    (array([0, 1, 0]), [array([2, 2])])
    """

    name: str
    """Name of the data set."""
    tokens: Integers
    """Labels of all sequences, end to end."""
    offsets: Integers
    """Where each sequence starts; one entry more than sequences, the last is the end."""
    users: Integers
    """The user (or session) each sequence belongs to; several may belong to one."""
    names: tuple[str, ...]
    """What each label stands for."""
    split: Split
    """Indices of the training, validation and test sequences."""
    source: Source
    """The files it was read from."""
    new_labels: int = 0
    """The last so many labels never occur in training: a model has no output for them."""
    recipe: object = None
    """The options it was prepared with."""

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.users) + 1 or self.offsets[-1] != len(self.tokens):
            raise DataError(
                f"{self.name}: {len(self.offsets)} offsets ending at {self.offsets[-1]} do not fit "
                f"{len(self.users)} sequences of {len(self.tokens)} tokens"
            )
        if len(self.tokens) and not 0 <= self.tokens.min() <= self.tokens.max() < self.labels:
            raise DataError(f"{self.name}: tokens must lie in 0..{self.labels - 1}")

    @property
    def labels(self) -> int:
        """How many labels there are, new ones included."""
        return len(self.names)

    @property
    def vocabulary(self) -> int:
        """How many labels a model trained on the training part is meant to know."""
        return self.labels - self.new_labels

    @property
    def lengths(self) -> Integers:
        """Number of tokens of each sequence."""
        return np.diff(self.offsets)

    @property
    def mean_length(self) -> float:
        """Mean number of tokens of a sequence."""
        return len(self.tokens) / len(self)

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, index: int) -> Integers:
        """Return one sequence, as a view."""
        index = range(len(self))[index]
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[Integers]:
        return (self[index] for index in range(len(self)))

    def arrays(self, part: Part) -> list[Integers]:
        """Return the sequences of one part, as views."""
        return [self[index] for index in self.split.part(part).tolist()]
