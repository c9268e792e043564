"""Hand-drawn characters as pictures: what the image tables run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from labelmem.errors import ConfigError, InputError
from labelmem_paper.datasets.source import Source

__all__ = ["Images", "shrink"]

Integers = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Images:
    """Pictures of characters, several of each, by different drawers.

    Examples
    --------
    >>> images = Images("toy", pixels=np.zeros((4, 2, 2), np.uint8),
    ...                 character=np.array([0, 0, 1, 1]), drawer=np.array([1, 2, 1, 2]),
    ...                 names=("Latin/a", "Greek/b"), background=np.array([True, False]),
    ...                 source=Source("generated"))
    >>> train, test = images.kaiser_split()
    >>> len(train), train.with_rotations().labels, test.names
    (2, 4, ('Greek/b',))
    """

    name: str
    """Name of the data set."""
    pixels: Pixels
    """Pictures (n, size, size), 255 where there is ink and 0 where there is none."""
    character: Integers
    """The label of each picture."""
    drawer: Integers
    """Who drew each picture, from 1."""
    names: tuple[str, ...]
    """Alphabet and character behind each label."""
    background: npt.NDArray[np.bool_]
    """For each label, whether it belongs to the background alphabets, meant for training."""
    source: Source
    """The files it was read from."""
    recipe: object = None
    """The options it was prepared with."""

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def labels(self) -> int:
        """How many characters there are."""
        return len(self.names)

    @property
    def size(self) -> int:
        """Edge of a picture in pixels."""
        return int(self.pixels.shape[1])

    @property
    def alphabets(self) -> tuple[str, ...]:
        """The alphabet of each label."""
        return tuple(name.split("/")[0] for name in self.names)

    def floats(self, rows: Integers | slice = slice(None)) -> npt.NDArray[np.float32]:
        """Return pictures as numbers from 0 to 1, ink being 1."""
        return self.pixels[rows].astype(np.float32) / np.float32(255)

    def select(self, labels: Sequence[int] | Integers) -> Images:
        """Keep some characters, which are numbered anew in the order given."""
        chosen = np.asarray(labels, np.int64)
        if len(np.unique(chosen)) != len(chosen):
            raise InputError("a character was selected twice")
        new = np.full(self.labels, -1, np.int64)
        new[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(new[self.character] >= 0)
        return replace(
            self,
            pixels=self.pixels[rows],
            character=new[self.character[rows]],
            drawer=self.drawer[rows],
            names=tuple(self.names[label] for label in chosen.tolist()),
            background=self.background[chosen],
        )

    def kaiser_split(self) -> tuple[Images, Images]:
        """Return the background characters, for training, and the others, for testing."""
        is_background = self.background
        return self.select(np.flatnonzero(is_background)), self.select(
            np.flatnonzero(~is_background)
        )

    def with_rotations(self, quarters: Sequence[int] = (0, 1, 2, 3)) -> Images:
        """Add each character turned by quarters, counter-clockwise, as characters of their own.

        Label ``y`` turned by the ``i``-th of ``quarters`` becomes ``y + i * labels``.
        """
        turned = [np.rot90(self.pixels, quarter, axes=(1, 2)) for quarter in quarters]
        steps = range(len(quarters))
        return replace(
            self,
            pixels=np.concatenate(turned),
            character=np.concatenate([self.character + i * self.labels for i in steps]),
            drawer=np.tile(self.drawer, len(quarters)),
            names=tuple(
                f"{n} {90 * (q % 4)}°" if q % 4 else n for q in quarters for n in self.names
            ),
            background=np.tile(self.background, len(quarters)),
        )


def shrink(pictures: Pixels, size: int, batch: int = 1024) -> Pixels:
    """Resize square pictures of 0 and 1 by averaging areas, to 0 (none) ... 255 (all ink).

    A pixel of the result is the share of ink in the square it covers, border pixels counted by the
    part that is covered. That share is what two matrix products compute.

    Examples
    --------
    >>> picture = np.array([[[1, 1, 0], [1, 1, 0], [0, 0, 0]]], np.uint8)
    >>> shrink(picture, 1)
    array([[[113]]], dtype=uint8)
    """
    edge = pictures.shape[1]
    if not 1 <= size <= edge:
        raise ConfigError(f"size is {size}; it must lie in 1..{edge}")
    weights = _overlaps(edge, size)
    result = np.empty((len(pictures), size, size), np.uint8)
    for start in range(0, len(pictures), batch):
        part = pictures[start : start + batch].astype(np.float32)
        result[start : start + batch] = np.rint(weights @ part @ weights.T * 255)
    return result


def _overlaps(edge: int, size: int) -> npt.NDArray[np.float32]:
    """Return what share of each of ``size`` equal stretches each of ``edge`` pixels covers."""
    borders = np.arange(size + 1) * edge / size
    low = np.maximum(borders[:-1, None], np.arange(edge))
    high = np.minimum(borders[1:, None], np.arange(1, edge + 1))
    shares = np.maximum(high - low, 0) * size / edge
    return np.asarray(shares, np.float32)
