"""Short texts with the intent behind each: what a support desk sorts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelmem.split import Part, Split
from labelmem_paper.datasets.source import Source

__all__ = ["Intents"]


@dataclass(frozen=True, eq=False)
class Intents:
    """Texts, each with one of a set of categories.

    Examples
    --------
    >>> from labelmem.split import by_time
    >>> data = Intents("toy", texts=("lost card", "top up"), categories=np.array([1, 0]),
    ...                names=("top_up", "lost_card"), split=by_time(2, test=0.5, valid=0.0),
    ...                source=Source("generated"))
    >>> data.labels, data.part("train")
    (2, (['lost card'], array([1])))
    """

    name: str
    """Name of the data set."""
    texts: tuple[str, ...]
    """What people wrote."""
    categories: npt.NDArray[np.int64]
    """The category of each text."""
    names: tuple[str, ...]
    """The name of each category, in alphabetical order."""
    split: Split
    """Indices of the training, validation and test texts."""
    source: Source
    """The files it was read from."""
    recipe: object = None
    """The options it was prepared with."""

    @property
    def labels(self) -> int:
        """How many categories there are."""
        return len(self.names)

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, name: Part) -> tuple[list[str], npt.NDArray[np.int64]]:
        """Return the texts and the categories of one part."""
        rows = self.split.part(name)
        return [self.texts[row] for row in rows.tolist()], self.categories[rows]
