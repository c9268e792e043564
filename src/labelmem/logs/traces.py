"""How often pieces of bytes stand in a file, however large it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["occurrences"]

_BLOCK = 1 << 24


def occurrences(path: Path, pieces: Sequence[bytes], block: int = _BLOCK) -> list[int]:
    """Count each piece in a file that is read block by block.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "file").write_bytes(b"abcabcab")
    ...     occurrences(Path(folder, "file"), [b"abc", b"ca", b"x"], block=2)
    [2, 2, 0]
    """
    found, end = [0] * len(pieces), b""
    longest = max((len(piece) for piece in pieces), default=0)
    with path.open("rb") as file:
        while longest and (read := file.read(block)):
            content = end + read
            for i, piece in enumerate(pieces):
                # Not what lies in the end of the last block alone: that was counted with it.
                found[i] += content.count(piece, max(0, len(end) - len(piece) + 1))
            end = content[max(0, len(content) - longest + 1) :]
    return found
