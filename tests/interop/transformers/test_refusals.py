"""What may be a text, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from interop.transformers.tiny import (
    GREEDY,
    MEMORY,
    V,
    assert_same_state,
    state_of,
    transformers,
)
from torch import nn

from labelmem.errors import ConfigError, InputError, ModelError, UnsupportedError
from labelmem.interop.transformers import MemoryLM


class Words:
    """A tokenizer of single letters that puts a token in front of every text."""

    pad_token_id = 0

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        ids = [1 + "abcdefgh ".index(letter) for letter in text]
        return {"input_ids": [20, *ids] if add_special_tokens else ids}


def test_texts_with_a_tokenizer(model: Any) -> None:
    with MemoryLM(model, Words(), MEMORY) as lm:
        stream = lm.stream()
        assert len(stream.read("abc")) == 3  # the first token is the one in front
        assert len(stream.read(" def")) == 4
        assert stream.ids.tolist() == [20, 1, 2, 3, 9, 4, 5, 6]
        assert [len(row) for row in lm.streams(2).read(["a", "bad"])] == [1, 3]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("words", "no tokenizer"),
        ([1.5, 2.0], "whole numbers"),
        ([[1, 2], [3, 4]], "one row"),
        ([V], f"0..{V - 1}"),
        ([-1], f"0..{V - 1}"),
        ({"attention_mask": [1]}, "input_ids"),
        ({"input_ids": [1, 2], "attention_mask": [1]}, "different shapes"),
        ([object()], "cannot be read"),
    ],
    ids=["text", "floats", "batch", "above", "below", "no ids", "mask", "objects"],
)
def test_what_is_no_text_is_refused(lm: MemoryLM, wrong: Any, message: str) -> None:
    stream = lm.stream()
    stream.read([1, 2, 3])
    before = state_of(stream)
    with pytest.raises((InputError, ConfigError), match=message):
        stream.read(wrong)
    assert_same_state(before, state_of(stream))


def test_other_refusals(model: Any, lm: MemoryLM) -> None:
    with pytest.raises(InputError, match="expected 2 texts"):
        lm.streams(2).read([[1, 2]])
    with pytest.raises(UnsupportedError, match="read nothing"):
        lm.stream().generate(**GREEDY)
    with pytest.raises(ConfigError, match="at least one"):
        lm.streams(0)
    with pytest.raises(ConfigError, match="context is 1"):
        MemoryLM(model, context=1)
    with pytest.raises(ModelError, match="causal language model"):
        MemoryLM(nn.Linear(3, 3))
    stream = lm.stream()
    stream.read([1, 2, 3])
    with pytest.raises(UnsupportedError, match="guidance_scale"):
        stream.generate(guidance_scale=2.0, **GREEDY)
    prompts = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    two = lm.streams(2)
    with two.mixing() as processor, pytest.raises(InputError, match="3 rows for 2 streams"):
        model.generate(prompts, logits_processor=[processor], pad_token_id=0, **GREEDY)
    with pytest.raises(UnsupportedError, match="has not run"):
        processor(prompts[:2], torch.zeros(2, V))


def test_a_model_without_a_cache_of_keys_and_values_is_refused() -> None:
    config = transformers.MambaConfig(vocab_size=V, hidden_size=8, num_hidden_layers=1)
    with MemoryLM(transformers.MambaForCausalLM(config)) as lm:
        with pytest.raises(ModelError, match="past_key_values"):
            lm.stream().read([1, 2, 3])


def test_a_model_with_an_encoder_is_refused() -> None:
    config = transformers.T5Config(
        vocab_size=V, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
    )
    with pytest.raises(ModelError, match="encoder"):
        MemoryLM(transformers.T5ForConditionalGeneration(config))
