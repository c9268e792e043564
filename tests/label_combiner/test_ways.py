"""The label combiner's other ways against Eq. 4 in plain tensors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from toys import random_combiner

from labelmem import LabeledMemory, MemoryConfig
from labelmem.combining import View
from labelmem.fast import plainly
from labelmem.label_combiner import LabelCombiner, LabelState
from labelmem.trust import on_trust

N, DIM, WIDTH = 3, 4, 5


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def view_of(memory: LabeledMemory, t: int) -> View:
    """What is seen of step t, r and s made up."""
    h = random(N, DIM, seed=t)
    r, s = (torch.softmax(2 * random(N, WIDTH, seed=k + t), dim=1) for k in (50, 90))
    return View(h, r, s, memory.read(h))


def label_combiner() -> LabelCombiner:
    made = random_combiner(DIM, hidden=6)
    assert isinstance(made, LabelCombiner)
    return made


def assert_same_states(a: LabelState, b: LabelState) -> None:
    assert a.tensors().keys() == b.tensors().keys()
    for name, x in a.tensors().items():
        torch.testing.assert_close(x, b.tensors()[name], rtol=0, atol=1e-6, msg=name)


def places_of(state: LabelState) -> set[int]:
    """Where states and scores lie, spare room included."""
    held = (state.mu, state.r, state.s, state.spare, state.spare_r, state.spare_s)
    return {x.data_ptr() for x in held if x is not None}


@pytest.mark.parametrize("masked", [False, True], ids=["all", "some"])
@pytest.mark.parametrize("there", ["nothing", "r", "both"])
@torch.no_grad()
def test_states_that_change_places_are_those_that_are_made_anew(masked: bool, there: str) -> None:
    combiner, memory = label_combiner(), LabeledMemory(DIM, MemoryConfig(), N)
    plain = combiner.initial_state(N, WIDTH)
    swapped = combiner.initial_state(N, WIDTH).with_spare(1 + WIDTH + 2)
    places = places_of(swapped)
    for t in range(6):
        mask = torch.tensor([True, t % 2 == 0, t < 3]) if masked else None
        view, y = view_of(memory, t), torch.tensor([t % WIDTH, 0, WIDTH])
        plain = combiner.observe(plain, combiner(plain, view), view, y, mask)
        with on_trust(ask=False):
            step = combiner(swapped, view)
            room = combiner.room(swapped, WIDTH)
            assert room is not None and step.mu is swapped.spare
            r = room[0].copy_(view.r) if there != "nothing" else view.r
            s = room[1].copy_(view.s) if there == "both" else view.s
            swapped = combiner.observe(swapped, step, View(view.h, r, s, view.read), y, mask)
        assert_same_states(plain.with_slots(1 + WIDTH + 2), swapped)
        assert places_of(swapped) == places


def test_there_is_room_for_scores_in_a_recording_only() -> None:
    combiner = label_combiner()
    bare = combiner.initial_state(N, WIDTH)
    spare = bare.with_spare(1 + WIDTH)
    assert combiner.room(spare, WIDTH) is None
    with on_trust(ask=False):
        assert combiner.room(bare, WIDTH) is None
        room = combiner.room(spare, WIDTH)
    assert room is not None and [x.shape for x in room] == [(N, WIDTH)] * 2
    assert spare.with_spare(1) is spare and "spare" not in spare.tensors()


@torch.no_grad()
def test_one_stream_by_numpy() -> None:
    combiner = label_combiner()
    state = LabelState(
        mu=0.3 * random(1, 1 + WIDTH, 6, seed=0),
        r=torch.tensor([[0.0, 0.9, 0.1, 0.0, 0.0, 0.0]]),
        s=torch.tensor([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]]),
        missed=torch.tensor([[1.0, 0.0]]),
    )
    h = random(1, DIM, seed=1)
    seen = combiner.step(state, h, WIDTH + 2)  # two labels are new
    with plainly():
        expected = combiner.step(state, h, WIDTH + 2)
    torch.testing.assert_close(seen.theta, expected.theta, rtol=0, atol=1e-6)
    torch.testing.assert_close(seen.mu[0], expected.mu[0], rtol=0, atol=1e-6)
