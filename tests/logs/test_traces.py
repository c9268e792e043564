from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelmem.logs.traces import occurrences

FEW = st.lists(st.integers(0, 2), max_size=40).map(bytes)


@given(content=FEW, pieces=st.lists(FEW.filter(len), max_size=4), block=st.integers(1, 9))
def test_blocks_make_no_difference(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, pieces: list[bytes], block: int
) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "blocks"
    path.write_bytes(content)
    found = occurrences(path, pieces, block)
    # Pieces that overlap themselves may be counted otherwise, but never in vain or not at all.
    assert [count > 0 for count in found] == [piece in content for piece in pieces]
    for piece, count in zip(pieces, found, strict=True):
        starts = [i for i in range(len(content)) if content.startswith(piece, i)]
        if all(b - a >= len(piece) for a, b in pairwise(starts)):
            assert count == len(starts)
