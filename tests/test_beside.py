"""Work beside other work: when a branch begins, and who waits for whom."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from toys import make_adapter, random_stream

from labelmem import MemoryConfig, beside
from labelmem.beside import Beside, called
from labelmem.trust import on_trust

CPU = torch.device("cpu")


class Device:
    """Stands in for ``torch.cuda``: it writes down what is waited for."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.now = "main"

    def current_stream(self, _: Any) -> Stream:
        return Stream(self, self.now)


class Stream:
    def __init__(self, owner: Device, name: str) -> None:
        self.owner, self.name, self.device = owner, name, CPU

    def wait_stream(self, other: Stream) -> None:
        self.owner.told.append(f"{self.name} waits for {other.name}")

    def wait_event(self, event: Event) -> None:
        self.owner.told.append(f"{self.name} waits for {event.where}")

    def __enter__(self) -> None:
        self.owner.now = self.name

    def __exit__(self, *_: object) -> None:
        self.owner.now = "main"


class Event:
    where = "nothing"

    def record(self, stream: Stream) -> None:
        stream.owner.told.append(f"{stream.name} is here")
        self.where = f"a point of {stream.name}"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(beside, "_branches", lambda _: True)
    monkeypatch.setattr(torch.cuda, "Stream", lambda _: Stream(made, "aside"))
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", made.current_stream)
    return made


def test_without_a_recording_all_is_done_in_turn() -> None:
    done: list[int] = []
    for trusted in (False, True):
        with on_trust(ask=False) if trusted else torch.no_grad():
            work = Beside(lambda: done.append(1), CPU)
            assert len(done) == 1 + trusted and work.result() is None


def test_a_branch_begins_after_all_so_far_and_is_waited_for(device: Device) -> None:
    work = Beside(lambda: device.now, CPU)
    device.told.append("other work")
    assert work.result() == "aside" and device.now == "main"
    assert device.told == ["aside waits for main", "other work", "main waits for aside"]


def test_a_branch_goes_on_from_where_a_layer_was_called(device: Device) -> None:
    layer, x = nn.Linear(2, 3), torch.zeros(1, 2)
    with called(layer, CPU):
        layer(torch.ones(1, 2))
        layer(x)
        Beside(lambda: None, CPU, given=x)
    assert device.told == ["main is here"] * 2 + ["aside waits for a point of main"]
    layer(x)
    assert len(device.told) == 3  # no longer looked at
    Beside(lambda: None, CPU, given=x)
    assert device.told[3:] == ["aside waits for main"]


def test_a_branch_that_needs_what_came_later_waits_for_all(device: Device) -> None:
    layer, x = nn.Linear(2, 3), torch.zeros(1, 2)
    for module, given in ((layer, x.double()), (layer, None), (None, x)):
        with called(module, CPU):
            layer(x)
            Beside(lambda: None, CPU, given=given)
    assert [told for told in device.told if "waits" in told] == ["aside waits for main"] * 3


def test_the_label_combiner_begins_before_the_head_and_remembers_beside_the_write(
    device: Device,
) -> None:
    adapter = make_adapter("dense", MemoryConfig())
    state, x = adapter.initial_state(2), random_stream(0, 2, range(4))[0]
    state.memory.reserve(1)
    y = torch.tensor([1, 2])
    with on_trust(ask=False):
        step = adapter.advance(state, x, 4)
        begun = ["main is here", "aside waits for a point of main", "main waits for aside"]
        assert device.told == begun
        adapter.commit(state, step, y, None)
    assert device.told[3:] == 2 * ["aside waits for main"] + 2 * ["main waits for aside"]
    other = make_adapter("dense", MemoryConfig())
    expected = other.advance(other.initial_state(2), x, 4)
    torch.testing.assert_close(step.probs, expected.probs)
