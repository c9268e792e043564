"""Generating from model and memory, against a slow loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from interop.transformers.tiny import (
    FAMILIES,
    GREEDY,
    MEMORY,
    SlowCombined,
    V,
    assert_same_state,
    combiner_of,
    language_model,
    state_of,
    text,
)
from toys import filled

from labelmem.interop.transformers import MemoryLM


def slow_beams(slow: SlowCombined, beams: int, steps: int) -> list[int]:
    """Beam search without end of text, from its definition."""
    alive: list[tuple[float, list[int]]] = [(0.0, [])]
    for _ in range(steps):
        grown = [
            (score + float(log_p), [*ids, token])
            for score, ids in alive
            for token, log_p in enumerate(slow.log_probs(ids))
        ]
        alive = sorted(grown, key=lambda pair: -pair[0])[:beams]
    return alive[0][1]


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("kind", ["fixed", "label", "stream"])
@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_and_beams_follow_model_and_memory(family: str, kind: str, beams: int) -> None:
    ids = text(30, 12)
    with MemoryLM(language_model(family), memory=MEMORY, combiner=combiner_of(kind)) as lm:
        want = slow_beams(SlowCombined(lm, ids), beams, 6)
        stream = lm.stream()
        stream.read(ids)
        before = state_of(stream)
        output = stream.generate(num_beams=beams, **GREEDY)
        assert output[0].tolist() == ids + want
        assert_same_state(before, state_of(stream))  # guesses are not learned


@pytest.mark.parametrize("kind", ["label", "stream"])
def test_scores_in_generate_are_those_of_the_slow_loop(kind: str) -> None:
    ids = text(31, 12)
    with MemoryLM(language_model("gpt2"), memory=MEMORY, combiner=combiner_of(kind)) as lm:
        slow, stream = SlowCombined(lm, ids), lm.stream()
        stream.read(ids)
        # Twice the same stream, sampled: each row has to go its own way.
        torch.manual_seed(0)
        output = stream.generate(
            do_sample=True,
            top_k=0,
            max_new_tokens=5,
            num_return_sequences=3,
            output_scores=True,
            return_dict_in_generate=True,
        )
        for row in range(3):
            made = output.sequences[row, 12:].tolist()
            for t, scores in enumerate(output.scores):
                want = slow.log_probs(made[:t]).float()
                torch.testing.assert_close(scores[row], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["label", "stream"])
@pytest.mark.parametrize("family", FAMILIES)
def test_states_go_with_rows_that_change_places(family: str, kind: str) -> None:
    texts = [text(60, 8), text(61, 8)]
    with MemoryLM(language_model(family), memory=MEMORY, combiner=combiner_of(kind)) as lm:
        slow = [SlowCombined(lm, ids) for ids in texts]
        streams = lm.streams(2)
        streams.read(texts)
        guessed: list[list[int]] = [[] for _ in range(6)]
        # For each step where the three rows of each stream come from, and their next tokens.
        moves = [([0, 1, 2], [4, 9, 2]), ([2, 0, 2], [7, 7, 1]), ([1, 0, 0], [3, 3, 5])]
        with streams.mixing() as processor, torch.no_grad():
            for parents, tokens in [*moves, ([0, 1, 2], [0, 0, 0])]:
                ids = torch.tensor([texts[row // 3] + made for row, made in enumerate(guessed)])
                logits = lm.model(ids, logits_to_keep=1).logits[:, -1]
                got = processor(ids, logits)
                want = [slow[row // 3].log_probs(made) for row, made in enumerate(guessed)]
                torch.testing.assert_close(got, torch.stack(want))
                guessed = [
                    [*guessed[3 * stream + parent], token]
                    for stream in range(2)
                    for parent, token in zip(parents, tokens, strict=True)
                ]


def test_sampling_draws_from_the_mixture(lm: MemoryLM) -> None:
    stream = lm.stream()
    stream.read(text(32, 20))
    torch.manual_seed(1)
    draws = stream.generate(do_sample=True, top_k=0, max_new_tokens=1, num_return_sequences=4000)
    share = torch.bincount(draws[:, -1], minlength=V) / 4000
    torch.testing.assert_close(share, stream.predict().float(), rtol=0, atol=0.04)


@pytest.mark.parametrize("kind", ["fixed", "label"])
def test_assisted_generation_gives_what_greedy_gives(kind: str) -> None:
    ids, assistant = text(33, 12), language_model("gpt2", seed=3)
    filled(assistant.transformer.h[1], 5, scale=0.2)  # often right, not always
    model = language_model("gpt2")
    with MemoryLM(model, memory=MEMORY, combiner=combiner_of(kind)) as lm:
        stream = lm.stream()
        stream.read(ids)
        want = stream.generate(**GREEDY)
        assert torch.equal(stream.generate(assistant_model=assistant, **GREEDY), want)
        assert torch.equal(stream.generate(prompt_lookup_num_tokens=3, **GREEDY), want)


@pytest.mark.parametrize("options", [{}, {"do_sample": True}, {"num_beams": 3}], ids=str)
@pytest.mark.parametrize("off", ["empty", "weightless"])
def test_with_the_memory_off_it_is_the_models_own_generate(
    model: Any, off: str, options: dict[str, Any]
) -> None:
    ids = text(34, 10)
    options = GREEDY | options | {"return_dict_in_generate": True, "output_scores": True}
    model.eval()
    torch.manual_seed(2)
    # The same cache, so that the same numbers come out.
    want = model.generate(torch.tensor([ids]), pad_token_id=0, **options)
    memory = replace(MEMORY, margin=-1e9) if off == "empty" else MEMORY  # nothing is written
    with MemoryLM(model, memory=memory, combiner=0.0 if off == "weightless" else 0.4) as lm:
        stream = lm.stream()
        stream.read(ids)
        cells = len(state_of(stream)["memory.label"][0])  # which drops the cache, too
        assert (cells == 0) == (off == "empty")
        torch.manual_seed(2)
        got = stream.generate(pad_token_id=0, **options)
    assert torch.equal(got.sequences, want.sequences)
    for a, b in zip(got.scores, want.scores, strict=True):
        assert torch.equal(a, b)


def test_a_processor_for_ones_own_generate(lm: MemoryLM) -> None:
    ids, stream = text(35, 10), lm.stream()
    stream.read(ids)
    with stream.mixing() as processor:
        output = lm.model.generate(
            torch.tensor([ids]), logits_processor=[processor], pad_token_id=0, **GREEDY
        )
    assert torch.equal(output, stream.generate(**GREEDY))
    assert not torch.equal(output, lm.model.generate(torch.tensor([ids]), pad_token_id=0, **GREEDY))


def test_a_text_to_begin_with_counts_for_one_call(lm: MemoryLM) -> None:
    ids, more, stream = text(36, 8), text(37, 5), lm.stream()
    stream.read(ids)
    before = state_of(stream)
    ahead = stream.generate(more, **GREEDY)
    assert_same_state(before, state_of(stream))
    stream.read(more)
    assert torch.equal(stream.generate(**GREEDY), ahead)


def test_forbidden_tokens_stay_forbidden(lm: MemoryLM) -> None:
    stream = lm.stream()
    stream.read([5, 6] * 8)
    best = int(stream.generate(**GREEDY)[0, 16])
    assert best in (5, 6)  # the memory holds nothing else
    output = stream.generate(bad_words_ids=[[best]], **GREEDY)
    assert best not in output[0, 16:].tolist()


def test_a_full_context_makes_room_for_new_tokens(model: Any) -> None:
    with MemoryLM(model, memory=MEMORY, context=12) as lm:
        stream = lm.stream()
        stream.read(text(38, 12))
        assert stream.generate(**GREEDY).shape == (1, 12)
