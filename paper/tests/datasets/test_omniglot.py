from __future__ import annotations

import struct
import zipfile
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from labelmem_paper.datasets import Images, Source, load
from labelmem_paper.datasets.images import shrink

from labelmem.errors import ConfigError, DataError, InputError

Pixels = npt.NDArray[np.uint8]


def png(ink: Pixels) -> bytes:
    """Write a 1-bit picture with black ink, as the author's files have it."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    height, width = ink.shape
    rows = b"".join(b"\0" + np.packbits(1 - row).tobytes() for row in ink)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def drawings(seed: int, many: int, edge: int = 105) -> Pixels:
    return np.random.default_rng(seed).integers(0, 2, (many, edge, edge), dtype=np.uint8)


def zips(folder: Path, pictures: Pixels) -> None:
    with zipfile.ZipFile(folder / "images_background.zip", "w") as archive:
        archive.writestr("images_background/Latin/character02/0710_01.png", png(pictures[2]))
        archive.writestr("images_background/Latin/character01/0709_02.png", png(pictures[1]))
        archive.writestr("images_background/Latin/character01/0709_01.png", png(pictures[0]))
        archive.writestr("__MACOSX/images_background/Latin/character01/._0709_01.png", b"junk")
    with zipfile.ZipFile(folder / "images_evaluation.zip", "w") as archive:
        archive.writestr("images_evaluation/Angelic/character01/0965_01.png", png(pictures[3]))


def test_zips_and_repacked_bits_are_the_same(tmp_path: Path) -> None:
    pictures = drawings(0, 4)
    raw, packed = tmp_path / "raw", tmp_path / "packed"
    raw.mkdir()
    packed.mkdir()
    zips(raw, pictures)
    np.savez(
        packed / "omniglot.npz",
        bits=np.packbits(pictures.reshape(4, -1), axis=1),
        char=np.array([0, 0, 1, 2], np.uint16),
        drawer=np.array([1, 2, 1, 1], np.uint8),
        char_alphabet=np.array(["Latin", "Latin", "Angelic"]),
        char_name=np.array(["character01", "character02", "character01"]),
        char_number=np.array([709, 710, 965], np.uint16),
        char_background=np.array([True, True, False]),
        shape=np.array([105, 105], np.uint16),
    )
    for size in (105, 28):
        one, two = (load("omniglot", {"size": size}, root=root) for root in (raw, packed))
        assert (
            one.names
            == two.names
            == ("Latin/character01", "Latin/character02", "Angelic/character01")
        )
        for field in ("pixels", "character", "drawer", "background"):
            assert (getattr(one, field) == getattr(two, field)).all(), field
        assert one.size == size
    assert (one.source.form, two.source.form) == ("raw", "compact")
    full = load("omniglot", {"size": 105}, root=raw)
    assert (full.floats() == pictures).all()


def slow_shrink(picture: Pixels, size: int) -> list[list[int]]:
    """Average areas in exact fractions, pixel by pixel."""
    edge = len(picture)
    step = Fraction(edge, size)

    def overlap(i: int, j: int) -> Fraction:
        return max(Fraction(0), min((i + 1) * step, Fraction(j + 1)) - max(i * step, Fraction(j)))

    rows = [[overlap(i, j) for j in range(edge)] for i in range(size)]
    result = []
    for down in rows:
        line = []
        for across in rows:
            ink = sum(
                down[y] * across[x] * int(picture[y, x])
                for y in range(edge)
                if down[y]
                for x in range(edge)
                if across[x]
            )
            line.append(round(255 * ink / step**2))
        result.append(line)
    return result


@pytest.mark.parametrize("size", [1, 4, 5, 10, 15])
def test_shrinking_equals_exact_area_averages(size: int) -> None:
    pictures = drawings(size, 3, edge=15)
    close = np.array([slow_shrink(picture, size) for picture in pictures])
    # Exact halves may be rounded either way; nothing else may differ.
    assert np.abs(shrink(pictures, size, batch=2).astype(int) - close).max() <= 1
    assert (shrink(pictures, size) == close).mean() > 0.95


def toy() -> Images:
    return Images(
        "toy",
        pixels=np.arange(16, dtype=np.uint8).reshape(4, 2, 2),
        character=np.array([0, 1, 2, 0]),
        drawer=np.array([1, 1, 1, 2]),
        names=("A/1", "A/2", "B/1"),
        background=np.array([True, False, True]),
        source=Source("generated"),
    )


def test_kaiser_split_and_selection() -> None:
    train, test = toy().kaiser_split()
    assert (train.names, test.names) == (("A/1", "B/1"), ("A/2",))
    assert train.character.tolist() == [0, 1, 0]
    assert test.pixels.tolist() == [[[4, 5], [6, 7]]]
    turned = toy().select([2, 0])
    assert turned.character.tolist() == [1, 0, 1]
    assert turned.alphabets == ("B", "A")
    with pytest.raises(InputError, match="twice"):
        toy().select([0, 0])


def test_rotations_are_new_characters() -> None:
    images = toy().with_rotations()
    assert (len(images), images.labels) == (16, 12)
    assert images.pixels[4].tolist() == [[1, 3], [0, 2]]
    assert images.character[4:8].tolist() == [3, 4, 5, 3]
    assert images.names[3] == "A/1 90°"
    assert images.background.tolist() == [True, False, True] * 4


def test_picture_of_another_size(tmp_path: Path) -> None:
    zips(tmp_path, drawings(0, 4, edge=20))
    with pytest.raises(DataError, match=r"0709_01\.png is \(20, 20\)"):
        load("omniglot", root=tmp_path)


def test_archive_without_pictures(tmp_path: Path) -> None:
    zips(tmp_path, drawings(0, 4))
    with zipfile.ZipFile(tmp_path / "images_evaluation.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(DataError, match=r"images_evaluation\.zip holds no"):
        load("omniglot", root=tmp_path)


def test_half_of_the_archives_is_not_enough(tmp_path: Path) -> None:
    zips(tmp_path, drawings(0, 4))
    (tmp_path / "images_evaluation.zip").unlink()
    with pytest.raises(FileNotFoundError, match=r"images_background.* and images_eval"):
        load("omniglot", root=tmp_path)


def test_impossible_size() -> None:
    with pytest.raises(ConfigError):
        shrink(drawings(0, 1), 106)
