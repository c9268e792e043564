"""The labeled memory against the oracle, rule by rule and over random streams, in float64.

Here the prediction P is given to both sides, so that ties are ties on both.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.lmn import OracleMemory
from slow import oracle_config
from strategies import DIM, LABELS, POOL, Event, configs, events, vectors
from torch import Tensor

from labelmem import LabeledMemory, MemoryConfig


def new_memory(config: MemoryConfig, streams: int = 1) -> LabeledMemory:
    return LabeledMemory(DIM, config, streams, dtype=torch.float64)


def write(memory: LabeledMemory, event: Event) -> bool:
    h = torch.tensor([event.h], dtype=torch.float64)
    return bool(memory.write(h, torch.tensor([event.y]), event.probs()))


def cells(memory: LabeledMemory, stream: int = 0) -> list[tuple[int, list[float], float, int]]:
    """Label, v, alpha and last write of a stream's cells, from the oldest cell to the newest."""
    n = int(memory.used[stream])
    order = memory.born[stream, :n].argsort().tolist()
    return [
        (
            int(memory.label[stream, k]),
            memory.v[stream, k].tolist(),
            float(memory.alpha[stream, k]),
            int(memory.written[stream, k]),
        )
        for k in order
    ]


def scores(memory: LabeledMemory, h: list[float], stream: int = 0) -> list[float]:
    rows = torch.tensor([h], dtype=torch.float64).expand(memory.streams, -1)
    return memory.read(rows).scores(LABELS)[stream].tolist()


def copied(memory: LabeledMemory) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in memory.tensors().items()}


# ---------------------------------------------------------------- against the oracle


@settings(max_examples=150)
@given(config=configs, stream=events(max_size=40), probe=vectors)
def test_memory_is_the_oracle(
    config: MemoryConfig, stream: list[Event], probe: list[float]
) -> None:
    memory, slow = new_memory(config), OracleMemory(oracle_config(config))
    for t, event in enumerate(stream):
        wrote = write(memory, event)
        happened = slow.write(event.h, event.y, dict(enumerate(event.probs()[0].tolist())), t + 1)
        assert wrote == (happened != "none")
        for h in (probe, event.h):
            expected = slow.read(h)
            assert scores(memory, h) == pytest.approx(
                [expected.get(y, 0.0) for y in range(LABELS)], abs=1e-9
            )
    seen = cells(memory)
    assert [(label, time) for label, _, _, time in seen] == [
        (cell.label, cell.written) for cell in slow.cells
    ]
    for (_, v, alpha, _), cell in zip(seen, slow.cells, strict=True):
        assert v == pytest.approx(cell.v, abs=1e-9)
        assert alpha == pytest.approx(cell.alpha, abs=1e-9)


RIGHT, TIED, WRONG = [[0.9, 0.1]], [[0.5, 0.5]], [[0.1, 0.9]]


def learn(memory: LabeledMemory, h: list[float], y: int, P: list[list[float]]) -> bool:
    return bool(memory.write(torch.tensor([h]), torch.tensor([y]), torch.tensor(P)))


def test_every_branch_of_the_write_by_hand() -> None:
    memory = LabeledMemory(2, MemoryConfig(lam=0.0, cells_per_label=2, capacity=3))
    assert not learn(memory, [1.0, 0.0], 0, RIGHT)  # rule 1: log 9 is more than the margin
    assert len(memory) == 0
    assert learn(memory, [1.0, 0.0], 0, TIED)  # rule 2: created although not wrong
    assert learn(memory, [1.0, 0.0], 0, TIED)  # rule 3: merged
    assert cells(memory) == [(0, [2.0, 0.0], pytest.approx(1.99), 3)]
    assert learn(memory, [0.0, 1.0], 0, WRONG)  # rule 4: merged, and a second cell
    assert learn(memory, [5.0, 5.0], 7, WRONG)
    assert cells(memory) == [
        (0, [2.0, 1.0], pytest.approx(2.9701), 4),
        (0, [0.0, 1.0], 1.0, 4),
        (7, [5.0, 5.0], 1.0, 5),
    ]
    assert learn(memory, [4.0, 0.0], 0, WRONG)  # rule 4: the lighter cell of two is overwritten
    assert cells(memory)[1] == (0, [4.0, 0.0], 1.0, 6)
    assert learn(memory, [1.0, 1.0], 8, WRONG)  # rule 5: 7 was written longest ago
    assert [cell[0] for cell in cells(memory)] == [0, 0, 8]
    assert learn(memory, [1.0, 1.0], 8, WRONG)  # full, and one cell of its own: only merged
    assert cells(memory)[2] == (8, [2.0, 2.0], pytest.approx(1.99), 8)
    assert len(memory) == 3


@pytest.mark.parametrize("evict, left", [("oldest", [1, 2, 3]), ("weight", [0, 1, 3])])
def test_room_is_made_as_the_switch_says(evict: Any, left: list[int]) -> None:
    memory = LabeledMemory(2, MemoryConfig(capacity=3, evict=evict))
    for y in (0, 0, 1, 1, 2):  # 0 is the oldest, 2 the lightest
        learn(memory, [1.0, 0.0], y, [[0.0, 0.0]])
    learn(memory, [1.0, 0.0], 3, WRONG)
    assert [cell[0] for cell in cells(memory)] == left


@pytest.mark.parametrize("evict", ["oldest", "weight"])
def test_cells_that_tie_go_in_the_order_they_came(evict: Any) -> None:
    # A new cell takes the place of the one that went; the order of age is not that of place.
    memory = LabeledMemory(2, MemoryConfig(capacity=3, evict=evict))
    for y in range(9):
        learn(memory, [1.0, 0.0], y, [[0.0] * 9])
        assert [cell[0] for cell in cells(memory)] == list(range(max(0, y - 2), y + 1))


def test_an_evicted_leader_hands_its_label_over() -> None:
    # Sharp writes leave the first cell of label 0, which leads its group, the lightest of three.
    config = MemoryConfig(lam=300, decay=0.5, cells_per_label=3, capacity=3, evict="weight")
    memory, slow = new_memory(config), OracleMemory(oracle_config(config))
    wrong, tied = [0, 1], [1, 1]
    stream = [
        Event([1.0, 0.0, 0.0], 0, []),
        Event([0.0, 1.0, 0.0], 0, wrong),
        Event([0.0, 0.0, 1.0], 0, wrong),
        Event([0.0, 1.0, 0.0], 0, tied),
        Event([0.0, 0.0, 1.0], 0, tied),
        Event([1.0, 1.0, 0.0], 1, []),  # evicts it
        Event([0.0, 0.3, 1.0], 0, tied),
        Event([1.0, 0.3, 1.0], 2, []),
    ]
    for t, event in enumerate(stream):
        write(memory, event)
        slow.write(event.h, event.y, dict(enumerate(event.probs()[0].tolist())), t + 1)
        for probe in ([0.5, 0.2, 0.1], [0.0, 1.0, 0.5], [0.1, 0.2, 1.0]):
            expected = [slow.read(probe).get(y, 0.0) for y in range(LABELS)]
            assert scores(memory, probe) == pytest.approx(expected, abs=1e-12)
        if t == 5:
            assert [label for label, *_ in cells(memory)] == [0, 0, 1]
            assert memory.label[0].tolist() == [1, 0, 0]


def test_the_cell_to_overwrite_is_picked_before_the_merge() -> None:
    memory = LabeledMemory(2, MemoryConfig(lam=9.0, cells_per_label=2))
    learn(memory, [1.0, 0.0], 0, WRONG)
    memory.alpha.mul_(0.5)
    learn(memory, [0.0, 1.0], 0, WRONG)  # alphas 0.99 * 0.5 + 1 and 1
    learn(memory, [0.0, 1.0], 0, TIED)  # nearly all of it goes to the second cell: the heavier now
    first, second = (alpha for _, _, alpha, _ in cells(memory))
    assert first < second < first + 1
    learn(memory, [1.0, 0.0], 0, WRONG)  # the first was the lighter, though the merge favours it
    assert cells(memory)[0] == (0, [1.0, 0.0], 1.0, 4)


@pytest.mark.parametrize("write_lam", [True, False])
def test_write_weights_with_and_without_lam(write_lam: bool) -> None:
    memory = LabeledMemory(2, MemoryConfig(lam=0.0, cells_per_label=2, write_lam=write_lam))
    learn(memory, [1.0, 0.0], 0, WRONG)
    learn(memory, [0.0, 1.0], 0, WRONG)  # cells (1, 1) and (0, 1), both of length above zero
    learn(memory, [0.0, 1.0], 0, TIED)
    first, second = (alpha for _, _, alpha, _ in cells(memory))
    shares = [first - 0.99 * 1.99, second - 0.99]
    kernel = torch.tensor([0.0, 0.0] if write_lam else [0.5**0.5, 1.0]).exp()
    assert shares == pytest.approx((kernel / kernel.sum()).tolist(), abs=1e-6)


# ---------------------------------------------------------------- properties


@given(config=configs, stream=events())
def test_limits_hold_and_other_labels_are_untouched(
    config: MemoryConfig, stream: list[Event]
) -> None:
    memory = new_memory(config)
    for event in stream:
        before = cells(memory)
        full = config.capacity is not None and len(before) == config.capacity
        known = event.y in [label for label, *_ in before]
        wrote = write(memory, event)
        after = cells(memory)
        if not wrote:
            assert after == before
        others = [cell for cell in before if cell[0] != event.y]
        kept = [cell for cell in after if cell[0] != event.y]
        evicted = int(wrote and full and not known)
        assert len(kept) == len(others) - evicted
        assert all(cell in others for cell in kept)
        assert config.capacity is None or len(after) <= config.capacity
        per_label = [sum(cell[0] == y for cell in after) for y in range(LABELS)]
        assert config.cells_per_label is None or max(per_label) <= config.cells_per_label


@given(config=configs, stream=events(), probe=vectors)
def test_scores_sum_to_one_over_the_labels_that_own_cells(
    config: MemoryConfig, stream: list[Event], probe: list[float]
) -> None:
    memory = new_memory(config)
    assert scores(memory, probe) == [0.0] * LABELS
    for event in stream:
        write(memory, event)
    s = scores(memory, probe)
    own = {label for label, *_ in cells(memory)}
    assert sum(s) == pytest.approx(1.0 if own else 0.0)
    assert all(s[y] == 0 for y in range(LABELS) if y not in own)


@given(config=configs, stream=events(), probe=vectors)
def test_reading_changes_nothing_and_a_read_does_not_change_later(
    config: MemoryConfig, stream: list[Event], probe: list[float]
) -> None:
    memory = new_memory(config)
    memory.blocks = (2, 1)
    for event in stream[:-1]:
        write(memory, event)
    before = copied(memory)
    read = memory.read(torch.tensor([probe], dtype=torch.float64))
    told = vars(read) | vars(read.past)
    del told["past"]
    kept = {name: value.clone() for name, value in told.items()}
    for name, tensor in memory.tensors().items():
        assert torch.equal(tensor, before[name])
    write(memory, stream[-1])
    assert all(torch.equal(value, kept[name]) for name, value in told.items())


@given(config=configs, streams=st.lists(events(max_size=12), min_size=3, max_size=3))
def test_masked_lockstep_is_each_stream_alone(
    config: MemoryConfig, streams: list[list[Event]]
) -> None:
    together, alone = new_memory(config, 3), [new_memory(config) for _ in streams]
    rest = Event([9.0, 9.0, 9.0], 4, [1, 1, 1])  # what masked streams are offered
    for t in range(max(map(len, streams))):
        now = [stream[t] if t < len(stream) else rest for stream in streams]
        mask = torch.tensor([t < len(stream) for stream in streams])
        idle = {n: cells(together, n) for n in range(3) if not mask[n]}
        P = torch.zeros(3, LABELS, dtype=torch.float64)
        for n, event in enumerate(now):
            P[n, : len(event.P)] = event.probs()[0]
        h = torch.tensor([event.h for event in now], dtype=torch.float64)
        y = torch.tensor([event.y for event in now])
        wrote = together.write(h, y, P, mask)
        for n, event in enumerate(now):
            assert bool(wrote[n]) == (bool(mask[n]) and write(alone[n], event))
        assert all(cells(together, n) == before for n, before in idle.items())
    for n in range(3):
        for seen, expected in zip(cells(together, n), cells(alone[n]), strict=True):
            assert (seen[0], seen[3]) == (expected[0], expected[3])
            assert [*seen[1], seen[2]] == pytest.approx([*expected[1], expected[2]], abs=1e-12)
        assert scores(together, POOL[4], n) == pytest.approx(scores(alone[n], POOL[4]), abs=1e-12)


@given(config=configs, stream=events(min_size=2), cut=st.integers(0, 30))
def test_restored_memory_continues_bit_for_bit(
    config: MemoryConfig, stream: list[Event], cut: int
) -> None:
    memory, other = new_memory(config), new_memory(config)
    for event in stream[:cut]:
        write(memory, event)
    other.restore(copied(memory))
    for event in stream[cut:]:
        assert write(memory, event) == write(other, event)
        assert scores(memory, event.h) == scores(other, event.h)
    for name, tensor in memory.tensors().items():
        assert torch.equal(tensor, other.tensors()[name]), name


# ---------------------------------------------------------------- form


def test_without_a_prediction_everything_is_written() -> None:
    memory = LabeledMemory(config=MemoryConfig(margin=-100.0))
    assert memory.dim is None
    assert memory.write(torch.ones(1, 2), torch.tensor([3])).tolist() == [True]
    assert memory.dim == 2 and len(memory) == 1


def test_an_empty_memory_without_dimension_reads_nothing() -> None:
    read = LabeledMemory().read(torch.ones(1, 7))
    assert read.scores(4).tolist() == [[0.0] * 4]


def test_memory_grows_with_cells_and_not_with_labels() -> None:
    memory = LabeledMemory(8, MemoryConfig(capacity=10), streams=2)
    for y in range(0, 10**9, 10**8):
        memory.write(torch.rand(2, 8), torch.tensor([y, y]))
    assert memory.label.shape == (2, 10)
    assert sum(t.nbytes for t in memory.tensors().values()) < 2 * 10 * (8 * 4 + 52)


def test_writes_are_outside_autograd() -> None:
    memory = LabeledMemory(2)
    h = torch.ones(1, 2, requires_grad=True)
    memory.write(h, torch.tensor([0]))
    assert not memory.v.requires_grad
    lam = torch.tensor(2.0, requires_grad=True)
    memory.write(torch.tensor([[1.0, -0.5]]), torch.tensor([1]))
    memory.read(torch.tensor([[1.0, 0.3]]), lam=lam).scores(2)[0, 0].backward()
    assert lam.grad is not None and lam.grad != 0  # but what is read can be learned from


def test_the_memory_keeps_a_copy_of_what_it_is_given() -> None:
    memory, h = LabeledMemory(2), torch.ones(1, 2)
    memory.write(h, torch.tensor([0]))
    h.fill_(9.0)
    assert memory.v[0, 0].tolist() == [1.0, 1.0]


def test_config_is_a_plain_frozen_record() -> None:
    config = MemoryConfig(lam=2.0)
    assert replace(config, lam=3.0).lam == 3.0 and asdict(config)["lam"] == 2.0
    with pytest.raises(AttributeError):
        config.lam = 1.0  # type: ignore[misc]
