"""Reading a text, alone or beside others, against a slow loop."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from interop.transformers.tiny import (
    FAMILIES,
    GREEDY,
    MEMORY,
    WINDOWED,
    SlowReader,
    assert_same_state,
    combiner_of,
    language_model,
    state_of,
    text,
)

from labelmem.errors import UnsupportedError
from labelmem.interop.transformers import MemoryLM


def test_reading_is_predicting_and_observing_token_by_token(model: Any) -> None:
    ids = text(0, 40)
    want = SlowReader(model, 0.4).read(ids)
    with MemoryLM(model, memory=MEMORY, combiner=0.4) as lm:
        got = lm.stream().read(ids)
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64))


def test_a_text_may_come_in_pieces(model: Any) -> None:
    ids = text(0, 40)
    want = SlowReader(model, 0.4).read(ids)
    with MemoryLM(model, memory=MEMORY, combiner=0.4) as lm:
        stream = lm.stream()
        pieces = [ids[:1], ids[1:2], ids[2:30], [], ids[30:]]
        got = torch.cat([stream.read(piece) for piece in pieces])
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64))


def test_predicting_is_pure_and_agrees_with_the_oracle(lm: MemoryLM) -> None:
    ids, slow, stream = text(1, 25), SlowReader(lm.model, 0.4), lm.stream()
    stream.read(ids)
    slow.read(ids)
    before = state_of(stream)
    for _ in range(2):
        torch.testing.assert_close(stream.predict(), slow.probs(ids)[0])
    assert_same_state(before, state_of(stream))


def test_perplexity_learns_on_the_way_and_leaves_no_trace(lm: MemoryLM) -> None:
    ids, stream = text(2, 30), lm.stream()
    stream.read(ids[:15])
    before = state_of(stream)
    perplexity = stream.perplexity(ids[15:])
    assert_same_state(before, state_of(stream))
    assert perplexity == pytest.approx(float(torch.exp(-stream.read(ids[15:]).mean())))


def test_a_long_text_goes_on_with_the_last_half_of_the_context(model: Any) -> None:
    ids, limit = text(3, 21), 8
    slow = SlowReader(model, 0.4)
    want: list[float] = []
    context: list[int] = []
    for start in range(0, len(ids), 4):  # pieces of half the limit
        piece = ids[start : start + 4]
        if len(context) + len(piece) > limit:
            context = context[-4:]
        want += slow.read(context + piece, before=max(1, len(context)))
        context += piece
    with MemoryLM(model, memory=MEMORY, combiner=0.4, context=limit) as lm:
        got = lm.stream().read(ids)
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64))


def test_logits_that_are_bent_after_the_output_layer() -> None:
    model, ids = language_model("gemma2"), text(45, 20)
    want = SlowReader(model, 0.4).read(ids)
    with MemoryLM(model, memory=MEMORY, combiner=0.4) as lm:
        got = lm.stream().read(ids)
        torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64))
        with pytest.raises(UnsupportedError, match="changes its logits"):
            lm.tune([ids])


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        *((family, kind) for family in FAMILIES for kind in ("fixed", "label", "stream")),
        *((family, "fixed") for family in WINDOWED),
    ],
)
def test_streams_side_by_side_are_as_each_alone(family: str, kind: str) -> None:
    rounds = [[text(10, 9), text(11, 4), []], [text(12, 3), text(13, 3), text(14, 1)]]
    rounds += [[text(15, 2), text(16, 5), text(17, 7)], [text(18, 4), text(19, 4), text(20, 4)]]
    model, close = language_model(family), {"rtol": 1e-5, "atol": 1e-7}
    if family == "gemma2":  # its softmax is single; the mask of a double model overflows in it
        model, close = model.float(), {"rtol": 1e-3, "atol": 1e-4}
    with MemoryLM(model, memory=MEMORY, combiner=combiner_of(kind), context=12) as lm:
        together, alone = lm.streams(3), [lm.stream() for _ in range(3)]
        for texts in rounds:
            for got, stream, ids in zip(together.read(texts), alone, texts, strict=True):
                torch.testing.assert_close(got, stream.read(ids), **close)
        apart = torch.stack([stream.predict() for stream in alone])
        torch.testing.assert_close(together.predict(), apart, **close)


def test_padding_on_either_side_changes_nothing(lm: MemoryLM) -> None:
    texts = [text(21, 7), text(22, 3)]
    want = lm.streams(2).read(texts)
    left = {
        "input_ids": [texts[0], [0] * 4 + texts[1]],
        "attention_mask": [[1] * 7, [0] * 4 + [1] * 3],
    }
    right = {
        "input_ids": [texts[0], texts[1] + [0] * 4],
        "attention_mask": [[1] * 7, [1] * 3 + [0] * 4],
    }
    for batch in (left, right):
        got = lm.streams(2).read({name: torch.tensor(part) for name, part in batch.items()})
        for a, b in zip(got, want, strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("beams", [1, 3])
def test_left_padded_generation_is_as_each_alone(lm: MemoryLM, beams: int) -> None:
    texts = [text(23, 9), text(24, 4)]
    together = lm.streams(2)
    together.read(texts)
    output = together.generate(num_beams=beams, **GREEDY)
    for row, ids in zip(output, texts, strict=True):
        stream = lm.stream()
        stream.read(ids)
        assert row[-6:].tolist() == stream.generate(num_beams=beams, **GREEDY)[0, -6:].tolist()
