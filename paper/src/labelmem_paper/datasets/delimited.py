r"""Read the columns of delimited text as arrays, without a Python loop over the lines.

The positions of all separators of a block are found at once. If every line has the same number
of them they form a matrix, whose columns are the ends of the fields; if not, the first line that
differs is known. A bad value is found the same way, so errors name the line at no extra cost.

Examples
--------
>>> table = Table(b"7\tParis\n12\tRome\n", columns=2, path="few.tsv")
>>> table.integers(0), table.strings(1)
(array([ 7, 12]), array([b'Paris', b'Rome'], dtype='|S5'))
>>> Table(b"7\tParis\nx\tRome\n", columns=2, path="few.tsv").integers(0)
Traceback (most recent call last):
labelmem.errors.DataError: few.tsv, line 2: found 'x', expected a whole number...
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelmem_paper.datasets.problems import malformed

__all__ = ["Table"]

NEWLINE = 10
RETURN = 13
MOST_DIGITS = 18

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Table:
    r"""The fields of a block of delimited lines.

    Parameters
    ----------
    block : whole lines, each ended by a line break (``\r\n`` is understood as well).
    columns : how many fields each line must have.
    path : the file, for the messages.
    delimiter : the one character between fields.
    first_line : number of the block's first line in the file.
    """

    def __init__(
        self,
        block: bytes,
        *,
        columns: int,
        path: Path | str,
        delimiter: str = "\t",
        first_line: int = 1,
    ) -> None:
        self.path = path
        self._bytes = np.frombuffer(block, np.uint8)
        mark = ord(delimiter)
        ends = np.flatnonzero((self._bytes == mark) | (self._bytes == NEWLINE))
        self._check_shape(ends, columns, first_line)
        self._ends = ends.reshape(-1, columns)
        self._starts = np.concatenate([[-1], ends])[: len(ends)].reshape(-1, columns) + 1
        self._lines = first_line + np.arange(len(self._ends))
        last = self._ends[:, -1]
        if len(last):
            self._ends[:, -1] = last - (self._bytes[np.maximum(last - 1, 0)] == RETURN)

    def _check_shape(self, ends: Integers, columns: int, first_line: int) -> None:
        breaks = np.flatnonzero(self._bytes[ends] == NEWLINE)
        fields = np.diff(breaks, prepend=-1)
        wrong = np.flatnonzero(fields != columns)
        if len(wrong):
            line = int(wrong[0])
            start = int(ends[breaks[line - 1]]) + 1 if line else 0
            seen = self._text(start, int(ends[breaks[line]]))
            raise malformed(self.path, first_line + line, seen, f"{columns} fields")

    def __len__(self) -> int:
        return len(self._ends)

    def where(self, rows: Mask) -> Table:
        """Return the table of the chosen rows, which keep their line numbers."""
        part = object.__new__(Table)
        part.path, part._bytes = self.path, self._bytes
        part._starts, part._ends = self._starts[rows], self._ends[rows]
        part._lines = self._lines[rows]
        return part

    def widths(self, column: int) -> Integers:
        """Return the number of characters of each field of a column."""
        widths: Integers = self._ends[:, column] - self._starts[:, column]
        return widths

    def require(self, good: Mask, column: int, expected: str) -> None:
        """Raise `DataError` naming the first line whose field is not good."""
        if good.all():
            return
        row = int(np.argmin(good))
        seen = self._text(int(self._starts[row, column]), int(self._ends[row, column]))
        raise malformed(self.path, int(self._lines[row]), seen, expected)

    def integers(self, column: int) -> Integers:
        """Return a column of non-negative whole numbers."""
        widths = self.widths(column)
        good = (widths > 0) & (widths <= MOST_DIGITS)
        self.require(good, column, "a whole number")
        values = np.zeros(len(self), np.int64)
        for place in range(int(widths.max(initial=0))):
            digit = self._at(self._ends[:, column] - 1 - place).astype(np.int64) - ord("0")
            inside = place < widths
            good &= ~inside | ((digit >= 0) & (digit <= 9))
            values += np.where(inside, digit, 0) * 10**place
        self.require(good, column, "a whole number")
        return values

    def strings(self, column: int) -> npt.NDArray[np.bytes_]:
        """Return a column of texts, as bytes."""
        widths = self.widths(column)
        width = max(int(widths.max(initial=0)), 1)
        matrix = np.zeros((len(self), width), np.uint8)
        for place in range(width):
            letters = self._at(self._starts[:, column] + place)
            matrix[:, place] = np.where(place < widths, letters, 0)
        return matrix.view(f"S{width}")[:, 0]

    def floats(self, column: int) -> npt.NDArray[np.float64]:
        """Return a column of decimal numbers."""
        texts = self.strings(column)
        try:
            values = texts.astype(np.float64)
        except ValueError:
            good = np.array([_is_number(text) for text in texts.tolist()], np.bool_)
            self.require(good, column, "a number")
            raise
        self.require(np.isfinite(values), column, "a finite number")
        return values

    def letters(self, column: int, width: int, expected: str) -> npt.NDArray[np.uint8]:
        """Return the first ``width`` characters of a column as a matrix; none may be shorter."""
        self.require(self.widths(column) >= width, column, expected)
        return self._at(self._starts[:, column, None] + np.arange(width))

    def _at(self, positions: Integers) -> npt.NDArray[np.uint8]:
        return self._bytes.take(positions, mode="clip")

    def _text(self, start: int, end: int) -> str:
        return self._bytes[start:end].tobytes().decode("latin-1")


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
