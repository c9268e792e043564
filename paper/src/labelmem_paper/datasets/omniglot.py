"""Omniglot: 1,623 characters of 50 alphabets, drawn by 20 people each (Lake et al., 2015)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from labelmem.errors import ConfigError, DataError
from labelmem_paper.datasets.archive import load_arrays
from labelmem_paper.datasets.images import Images, shrink
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.opening import unpacking
from labelmem_paper.datasets.png import read_png
from labelmem_paper.datasets.prepared import as_integers, as_names
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.strings import pack

__all__ = ["DATASET", "OmniglotRecipe"]

EDGE = 105
Pixels = npt.NDArray[np.uint8]

ZIPS = ("images_background.zip", "images_evaluation.zip")


@dataclass(frozen=True)
class OmniglotRecipe:
    """How pictures are prepared.

    Order: background alphabets first, then by alphabet, character and drawer.

    Examples
    --------
    >>> OmniglotRecipe(size=200)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: size is 200; it must lie in 1..105
    """

    size: int = 28
    """Edge of the pictures in pixels; they are published with 105 and averaged down."""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= EDGE:
            raise ConfigError(f"size is {self.size}; it must lie in 1..{EDGE}")


@dataclass(frozen=True, order=True)
class _Drawing:
    later: bool
    """Whether it belongs to the evaluation alphabets."""
    character: str
    """Alphabet and character."""
    drawer: int
    member: str


def read_zips(paths: tuple[Path, ...], recipe: OmniglotRecipe) -> Arrays:
    """Read the author's two archives of PNG files, in which ink is black."""
    drawings: list[_Drawing] = []
    pictures: list[Pixels] = []
    for path in paths:
        with unpacking(path), zipfile.ZipFile(path) as archive:
            found = sorted(_drawings(archive, later=path.name == ZIPS[1]))
            if not found:
                raise DataError(f"{path} holds no ALPHABET/characterNN/NNNN_NN.png")
            bits = np.stack([_picture(archive, path, one.member) for one in found])
        drawings += found
        pictures.append(shrink(bits, recipe.size))
    names = list(dict.fromkeys((one.later, one.character) for one in drawings))
    numbers = {name: index for index, name in enumerate(names)}
    return {
        "pixels": np.concatenate(pictures),
        "character": np.array([numbers[one.later, one.character] for one in drawings], np.int64),
        "drawer": np.array([one.drawer for one in drawings], np.int64),
        "names": pack(character for _, character in names),
        "background": np.array([not later for later, _ in names], np.bool_),
    }


def read_compact(paths: tuple[Path, ...], recipe: OmniglotRecipe) -> Arrays:
    """Read the repacked bits, in which ink is 1."""
    wanted = ("bits", "char", "drawer", "char_alphabet", "char_name", "char_background", "shape")
    arrays = load_arrays(paths[0], wanted)
    if arrays["shape"].tolist() != [EDGE, EDGE]:
        raise DataError(f"{paths[0]}: pictures of {arrays['shape'].tolist()}, not {EDGE} x {EDGE}")
    packed = arrays["bits"].astype(np.uint8, copy=False)
    flat = np.unpackbits(packed, axis=1, count=EDGE * EDGE)
    alphabets, characters = arrays["char_alphabet"].tolist(), arrays["char_name"].tolist()
    names = [f"{a}/{c}" for a, c in zip(alphabets, characters, strict=True)]
    return {
        "pixels": shrink(flat.reshape(-1, EDGE, EDGE), recipe.size),
        "character": as_integers(arrays, "char"),
        "drawer": as_integers(arrays, "drawer"),
        "names": pack(names),
        "background": arrays["char_background"].astype(np.bool_),
    }


def as_images(arrays: Arrays, recipe: OmniglotRecipe, source: Source, seed: int) -> Images:
    """Make the container. Nothing is drawn, so the seed changes nothing."""
    return Images(
        "omniglot",
        pixels=arrays["pixels"].astype(np.uint8, copy=False),
        character=as_integers(arrays, "character"),
        drawer=as_integers(arrays, "drawer"),
        names=as_names(arrays, "names"),
        background=arrays["background"].astype(np.bool_, copy=False),
        source=source,
        recipe=recipe,
    )


def _drawings(archive: zipfile.ZipFile, *, later: bool) -> Iterator[_Drawing]:
    for member in archive.namelist():
        place = PurePosixPath(member)
        number, _, drawer = place.stem.rpartition("_")
        # Archives made on a Mac also hold hidden "._NNNN_NN.png" that are no pictures.
        if place.suffix == ".png" and len(place.parts) >= 3 and (number + drawer).isdigit():
            yield _Drawing(later, "/".join(place.parts[-3:-1]), int(drawer), member)


def _picture(archive: zipfile.ZipFile, path: Path, member: str) -> Pixels:
    grey = read_png(archive.read(member), f"{path}:{member}")
    if grey.shape != (EDGE, EDGE):
        raise DataError(f"{path}:{member} is {grey.shape}, not {EDGE} x {EDGE}; get it again")
    return np.asarray(grey == 0, np.uint8)


DATASET = Dataset(
    "omniglot",
    OmniglotRecipe(),
    layouts=(
        Layout("raw", ZIPS, read_zips),
        Layout("compact", ("omniglot.npz",), read_compact),
    ),
    assemble=as_images,
)
