"""Read the one kind of PNG that Omniglot uses: grey, without interlacing, 1 or 8 bits a pixel.

A PNG is a signature and then chunks: length, type, content, check sum. The joined ``IDAT`` chunks
are zlib-packed rows; each starts with a byte naming the filter its bytes went through (PNG
specification, section 9), which is undone here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from labelmem.errors import DataError

__all__ = ["read_png"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY = 0

Pixels = npt.NDArray[np.uint8]


def read_png(content: bytes, name: str) -> Pixels:
    """Return the grey values as a matrix; for 1-bit pictures they are 0 (black) and 1 (white).

    Parameters
    ----------
    content : the bytes of the file.
    name : of the file, for the messages.
    """
    header, packed = b"", b""
    for kind, body in _chunks(content, name):
        if kind == b"IHDR":
            header = body
        elif kind == b"IDAT":
            packed += body
    if len(header) != 13:
        raise _broken(name, "it has no header")
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", header)
    if colour != GREY or depth not in (1, 8) or interlace:
        raise _broken(
            name, f"depth {depth}, colour type {colour}, interlace {interlace}: only 1 or 8, 0, 0"
        )
    rows = _unfiltered(_unpacked(packed, name), height, (width * depth + 7) // 8, name)
    return np.unpackbits(rows, axis=1, count=width) if depth == 1 else rows


def _chunks(content: bytes, name: str) -> Iterator[tuple[bytes, bytes]]:
    if not content.startswith(SIGNATURE):
        raise _broken(name, f"it starts with {content[:8]!r}")
    place = len(SIGNATURE)
    while place + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, place)
        kind, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        place += 12 + length
        if place > len(content):
            break
        (expected,) = struct.unpack_from(">I", content, place - 4)
        if zlib.crc32(kind + body) != expected:
            raise _broken(name, f"the check sum of its {kind.decode('latin-1')} part is wrong")
        yield kind, body
        if kind == b"IEND":
            return
    raise _broken(name, "it ends too early")


def _unpacked(packed: bytes, name: str) -> bytes:
    try:
        return zlib.decompress(packed)
    except zlib.error as error:
        raise _broken(name, str(error)) from error


def _unfiltered(data: bytes, height: int, stride: int, name: str) -> Pixels:
    if len(data) != height * (stride + 1):
        raise _broken(name, f"{len(data)} bytes of pixels, not {height * (stride + 1)}")
    lines = np.frombuffer(data, np.uint8).reshape(height, stride + 1)
    filters, rows = lines[:, 0], lines[:, 1:].copy()
    if filters.max(initial=0) > 4:
        raise _broken(name, f"unknown row filter {filters.max()}")
    above = np.zeros(stride, np.uint8)
    for index in np.flatnonzero(filters).tolist():
        previous = rows[index - 1] if index else above
        rows[index] = _undo(int(filters[index]), rows[index], previous)
    return rows


def _undo(kind: int, row: Pixels, above: Pixels) -> Pixels:
    """Undo the filter of one row; the pixel to the left is one byte away at these depths."""
    if kind == 1:
        return np.cumsum(row, dtype=np.uint8)
    if kind == 2:
        return row + above
    left, corner, result = 0, 0, bytearray(len(row))
    for place, (value, up) in enumerate(zip(row.tolist(), above.tolist(), strict=True)):
        guess = (left + up) // 2 if kind == 3 else _paeth(left, up, corner)
        left, corner = (value + guess) & 255, up
        result[place] = left
    return np.frombuffer(bytes(result), np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    """Return whichever neighbour is nearest to left + up - corner; ties in this order."""
    target = left + up - corner
    return min((left, up, corner), key=lambda neighbour: abs(target - neighbour))


def _broken(name: str, why: str) -> DataError:
    return DataError(f"{name} is not a picture that can be read: {why}. Get the file again")
