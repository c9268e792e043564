from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt
import pytest
from labelmem_paper.datasets.png import read_png

from labelmem.errors import DataError

Pixels = npt.NDArray[np.uint8]


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def encode(rows: Pixels, width: int, depth: int, filters: list[int], colour: int = 0) -> bytes:
    """Write rows of bytes as a PNG, filtering each row as told, by the letter of the standard."""
    lines = b""
    above = [0] * rows.shape[1]
    for row, kind in zip(rows.tolist(), filters, strict=True):
        line = []
        for place, value in enumerate(row):
            left = row[place - 1] if place else 0
            corner = above[place - 1] if place else 0
            up = above[place]
            estimate = left + up - corner
            distances = [abs(estimate - left), abs(estimate - up), abs(estimate - corner)]
            paeth = [left, up, corner][distances.index(min(distances))]
            line.append((value - [0, left, up, (left + up) // 2, paeth][kind]) % 256)
        lines += bytes([kind, *line])
        above = row
    header = struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0)
    packed = zlib.compress(lines)
    middle = len(packed) // 2
    parts = [(b"IHDR", header), (b"tEXt", b"hi"), (b"IDAT", packed[:middle])]
    parts += [(b"IDAT", packed[middle:]), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in parts)


@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4])
def test_every_filter(kind: int) -> None:
    rows = np.random.default_rng(kind).integers(0, 256, (6, 7), dtype=np.uint8)
    assert (read_png(encode(rows, 7, 8, [kind] * 6), "x") == rows).all()


def test_mixed_filters_and_single_bits() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (10, 13), dtype=np.uint8)
    packed = np.packbits(bits, axis=1)
    content = encode(packed, 13, 1, [0, 4, 3, 2, 1, 0, 1, 2, 3, 4])
    assert (read_png(content, "x") == bits).all()


GOOD = encode(np.zeros((2, 2), np.uint8), 2, 8, [0, 0])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"GIF89a", "starts with"),
        (GOOD[:-8], "too early"),
        (GOOD[:40], "too early"),
        (GOOD[:20] + b"\xff" + GOOD[21:], "check sum"),
        (encode(np.zeros((2, 6), np.uint8), 2, 8, [0, 0], colour=2), "colour type 2"),
        (encode(np.zeros((2, 1), np.uint8), 2, 8, [0, 0]), "bytes of pixels"),
        (b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b""), "no header"),
    ],
)
def test_what_cannot_be_read(content: bytes, why: str) -> None:
    with pytest.raises(DataError, match=rf"a\.png is not a picture .*{why}"):
        read_png(content, "a.png")
