from __future__ import annotations

import numpy as np
import pytest
import torch

from labelmem import LabeledMemory, MemoryConfig, pages
from labelmem.pages import LARGE, in_large_pages, room_like

WIDE = LARGE // 4


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int16])
def test_large_tensors_are_copied(kind: torch.dtype) -> None:
    x = torch.arange(WIDE, dtype=torch.float64).to(kind).view(4, -1)[:, 1:]
    x = x.repeat(1, 4)
    found = in_large_pages(x)
    assert found.dtype == kind and found.data_ptr() != x.data_ptr()
    assert torch.equal(found, x)


def test_what_would_not_gain_is_left_alone() -> None:
    for x in (
        torch.zeros(10),
        torch.zeros(WIDE, requires_grad=True),
        torch.zeros(WIDE, dtype=torch.bfloat16).repeat(2),
        torch.zeros(WIDE, device="meta"),
    ):
        assert in_large_pages(x) is x
        assert room_like(x, tuple(x.shape)) is None


def test_a_memory_that_grows_large_keeps_its_cells() -> None:
    dim, cells = 512, 40
    config = MemoryConfig(margin=1e9)
    memory, slow = LabeledMemory(dim, config), LabeledMemory(dim, config, fast=False)
    for y in range(cells):
        h = torch.randn(1, dim, generator=torch.Generator().manual_seed(y))
        for one in (memory, slow):
            one.write(h, torch.tensor([y]), None)
    memory._grow(LARGE // (4 * dim) + 1)  # as if that many labels were on their way
    assert memory.v.nbytes > LARGE
    assert torch.equal(memory.v[:, :cells], slow.v[:, :cells])
    assert not memory.v[:, cells:].any() and (memory.label[:, cells:] == -1).all()
    h = torch.randn(1, dim, generator=torch.Generator().manual_seed(99))
    torch.testing.assert_close(memory.read(h).scores(cells), slow.read(h).scores(cells))
    copy = LabeledMemory(dim, config)
    copy.restore(memory.tensors())
    assert torch.equal(copy.read(h).scores(cells), memory.read(h).scores(cells))


@pytest.mark.parametrize("asked", [True, False], ids=["asked for", "not known"])
def test_large_arrays_are_zero_and_can_be_written(
    asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not asked:  # as on systems that have no large pages
        monkeypatch.setattr(pages, "_ASKED", None)
    found = pages.zeros((3, LARGE // 4), np.int16)
    assert found.shape == (3, LARGE // 4) and found.dtype == np.int16 and not found.any()
    found[2, 5:] = 7
    assert found.sum() == 7 * (LARGE // 4 - 5)


def test_a_system_may_refuse_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_ASKED", -1)  # no advice that it knows
    assert not pages.zeros((LARGE,), np.float32).any()
