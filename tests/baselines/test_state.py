"""States of tensors: saving, masks, slots."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from toys import Stateless

from labelmem.baselines import make
from labelmem.baselines.slots import FREE, no_slots, opened, overwritten, spread
from labelmem.baselines.state import wider
from labelmem.errors import MismatchError
from labelmem.trees import chosen


def test_slots_fill_from_the_left_and_only_where_asked() -> None:
    ids = no_slots(3, torch.device("cpu"))
    script = [([5, 5, 2], None), ([5, 6, 2], [True, True, False]), ([7, 5, 9], [True, True, True])]
    for y, mask in script:
        ids, slot = opened(ids, torch.tensor(y), None if mask is None else torch.tensor(mask))
        for row, (label, seen) in enumerate(zip(y, mask or [True] * 3, strict=True)):
            assert not seen or ids[row, slot[row]] == label
    assert ids.tolist() == [[5, 7], [5, 6], [2, 9]]


def test_a_mask_that_is_false_everywhere_opens_no_slot() -> None:
    ids, slot = opened(
        no_slots(2, torch.device("cpu")), torch.tensor([1, 2]), torch.zeros(2).bool()
    )
    assert (ids == FREE).all() and slot.tolist() == [0, 0]


def test_values_of_slots_go_to_the_columns_of_their_labels() -> None:
    ids = torch.tensor([[2, 0], [1, FREE]])
    values = torch.tensor([[3.0, 4.0], [5.0, 9.0]])
    assert spread(ids, values, 3).tolist() == [[4, 0, 3], [0, 5, 0]]
    assert overwritten(torch.ones(2, 3), ids, values).tolist() == [[4, 1, 3], [1, 5, 1]]


def test_chosen_and_wider() -> None:
    mask = torch.tensor([True, False])
    new, old = torch.ones(2, 2, 1), torch.zeros(2, 2, 1)
    assert chosen(mask, {"a": (new,)}, {"a": (old,)})["a"][0].tolist() == [[[1], [1]], [[0], [0]]]
    assert chosen(None, new, old) is new
    assert wider(new, 1) is new
    assert wider(new, 3, -1, dim=2)[0].tolist() == [[1, -1, -1]] * 2


def test_a_saved_stream_of_another_method_or_size_is_refused(tmp_path: Path) -> None:
    stream = make("knn", Stateless()).stream()
    stream.save(tmp_path / "s")
    with pytest.raises(MismatchError, match="method"):
        make("ncm", Stateless()).load_stream(tmp_path / "s")
    with pytest.raises(MismatchError, match="dim"):
        make("knn", Stateless(dim=6)).load_stream(tmp_path / "s")


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved.pop("ids.0"),
        lambda saved: saved.update(more=torch.zeros(1)),
        lambda saved: saved.update({"ids.0": saved["ids.0"].float()}),
        lambda saved: saved.update({"count.0": torch.zeros(2, 0)}),
        lambda saved: saved.update({"count.0": torch.zeros(1)}),
    ],
)
def test_a_state_that_does_not_fit_is_refused(change: object) -> None:
    method = make("counter", labels=3)
    saved = method.tensors(method.initial_state(1))
    change(saved)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"ids|count|more"):
        method.restore(saved, 1)
