"""Where the probabilities are makes no difference."""

from __future__ import annotations

import pytest
import torch

from labelmem.errors import InputError
from labelmem.metrics import StreamMetrics


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_gives_the_same_figures_in_one_transfer() -> None:
    probs = torch.rand(50, 7, generator=torch.Generator().manual_seed(0)).softmax(1)
    y = torch.arange(50) % 9 - 1
    here, there = StreamMetrics(), StreamMetrics()
    groups = {"odd": y % 2 == 1, "even": y % 2 == 0}
    here.update(probs, y, mask=y != 3, groups=groups)
    moved = {name: flag.cuda() for name, flag in groups.items()}
    arguments = (probs.cuda(), y.cuda(), (y != 3).cuda())
    there.update(*arguments, groups=moved)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        there.update(*arguments, groups=moved)
    transfers = [event for event in profile.events() if "Memcpy DtoH" in event.name]
    assert len(transfers) == 1
    assert there.result().metrics["mrr"] == pytest.approx(here.result().metrics["mrr"])


def test_what_waits_on_a_device_is_counted_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once, later = StreamMetrics(), StreamMetrics()
    draw = torch.Generator().manual_seed(1)
    for metrics in (at_once, later):
        draw.manual_seed(1)
        monkeypatch.setattr(metrics, "_wait_for", lambda _, wait=metrics is later: wait)
        for t in range(150):  # more than wait together
            rows = 3 if t < 100 else 2
            probs = torch.rand(rows, 5, generator=draw).softmax(1)
            y = torch.randint(6, (rows,), generator=draw)
            mask = torch.rand(rows, generator=draw) < 0.8
            metrics.update(probs, y, mask, groups={"low": y < 2})
    assert at_once.running == later.running
    assert at_once.result() == later.result()
    assert at_once.by_position() == later.by_position() and at_once.blocks() == later.blocks()
    bad = StreamMetrics()
    monkeypatch.setattr(bad, "_wait_for", lambda _: True)
    bad.update(torch.tensor([[2.0, 3.0]]), torch.tensor([0]))
    with pytest.raises(InputError, match="logits"):
        bad.result()
