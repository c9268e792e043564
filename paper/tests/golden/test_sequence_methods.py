"""Networks that learn online predict as they did, and their saved streams go on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from golden.arithmetic import filled, habits, vectors
from golden.sequence_methods import CASES, LABELS, METHODS
from golden.trajectory import Case, Record, assert_follows, assert_lockstep, assert_near, follow
from labelmem_paper.methods.kaiser_memory import KaiserMemory
from labelmem_paper.methods.pointer_lstm import PointerLSTM
from labelmem_paper.methods.text_lstm import TextLSTM


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_streams_follow_the_recorded_ones(case: Case) -> None:
    method, record = case.method(), Record.read(METHODS / f"{case.name}.safetensors")
    assert_follows(follow(method.stream(), case), record)
    stream = method.load_stream(METHODS / f"{case.name}.stream")
    assert_follows(follow(stream, case, case.half), record, case.half)
    assert_lockstep(method, case, record)


def test_kaisers_memory_answers_as_it_did() -> None:
    y = CASES[0].y
    numbers = torch.tensor([LABELS.index(label) if label in LABELS else 9 for label in y])
    memory = KaiserMemory(cells=6, dim=4, age_noise=0.0)
    answers = memory.replay(vectors(y, 4, 8), numbers, torch.Generator()).tolist()
    assert "".join(str(a) for a in answers) == "-11111111423491229149194114421911"


@pytest.mark.parametrize(
    ("model", "losses"),
    [
        (TextLSTM(7, dim=6, layers=2), (1.9530982971191406, 1.9666656255722046)),
        (PointerLSTM(7, window=4, dim=6), (2.2344775199890137, 2.198704242706299)),
    ],
    ids=["text", "pointer"],
)
@torch.no_grad()
def test_language_models_lose_as_much_as_they_did(model: Any, losses: tuple[float, float]) -> None:
    filled(model, 31).eval()
    words, carried = torch.tensor(habits(range(7), (), 22, 4)).view(2, 11), None
    for start, expected in zip((0, 5), losses, strict=True):
        x, y = words[:, start : start + 5], words[:, start + 1 : start + 6]
        loss, carried = model.passage_loss(x, y, carried, half=False)
        assert_near(loss, expected, f"loss from word {start}")
