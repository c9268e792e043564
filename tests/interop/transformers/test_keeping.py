"""Streams that are saved, memories that are tuned, and a model that stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from interop.transformers.tiny import (
    GREEDY,
    MEMORY,
    assert_same_state,
    combiner_of,
    language_model,
    state_of,
    text,
)
from toys import hooks_of

from labelmem import Combiner, MemoryConfig
from labelmem.errors import MismatchError
from labelmem.interop.transformers import MemoryLM


@pytest.mark.parametrize("kind", ["fixed", "label", "stream"])
def test_a_saved_stream_goes_on_bit_for_bit(tmp_path: Path, kind: str) -> None:
    ids = text(40, 40)
    with MemoryLM(language_model("llama"), memory=MEMORY, combiner=combiner_of(kind)) as lm:
        stream = lm.stream()
        stream.read(ids[:20])
        stream.read(ids[20:25])
        stream.save(tmp_path / "user")
        loaded = lm.load_stream(tmp_path / "user")
        assert_same_state(state_of(stream), state_of(loaded))
        assert torch.equal(stream.read(ids[25:]), loaded.read(ids[25:]))
        assert_same_state(state_of(stream), state_of(loaded))
        assert torch.equal(stream.generate(**GREEDY), loaded.generate(**GREEDY))
    with MemoryLM(language_model("llama"), memory=MemoryConfig(), combiner=0.4) as other:
        with pytest.raises(MismatchError):
            other.load_stream(tmp_path / "user")


def test_a_new_text_keeps_the_memory_and_a_reset_does_not(lm: MemoryLM) -> None:
    ids, stream = text(41, 10), lm.stream()
    fresh = stream.read(ids)
    stream.new_text()
    assert len(stream.ids) == 0
    assert float(stream.read(ids).sum()) > float(fresh.sum())
    stream.reset()
    assert torch.equal(stream.read(ids), fresh)


def test_tuning_and_fitting_on_texts(model: Any, tmp_path: Path) -> None:
    texts = [text(seed, 3) * 6 for seed in (50, 51, 52)]
    with MemoryLM(model, memory=MEMORY, combiner=0.1) as lm:
        before = lm.streams(3).perplexity(texts).log().mean()
        lm.tune(texts, trials=6)
        assert lm.streams(3).perplexity(texts).log().mean() < before
    with MemoryLM(model, memory=MEMORY, combiner=Combiner(kind="stream", hidden=4)) as lm:
        lm.fit(texts, epochs=2)
        lm.save(tmp_path / "tuned")
        trained = lm.streams(3).read(texts)
        lm.adapter.combiner = 0.3
        lm.load(tmp_path / "tuned")
        for a, b in zip(lm.streams(3).read(texts), trained, strict=True):
            assert torch.equal(a, b)


def test_the_memory_of_a_coarse_model_is_finer(model: Any) -> None:
    model.bfloat16()
    with MemoryLM(model, memory=MEMORY, combiner=0.4) as lm:
        stream = lm.stream()
        assert stream.read(text(42, 20)).dtype == torch.float32
        assert state_of(stream)["memory.v"].dtype == torch.float32
        assert stream.generate(**GREEDY).shape == (1, 26)
        lm.tune([text(43, 12)], trials=2)


def test_the_model_is_given_back_as_it_came(model: Any) -> None:
    model.train()
    weights = {name: p.clone() for name, p in model.named_parameters()}
    with MemoryLM(model, memory=MEMORY) as lm:
        assert not model.training
        stream = lm.stream()
        stream.read(text(44, 9))
        stream.generate(**GREEDY)
    assert model.training and all(module.training for module in model.modules())
    assert not hooks_of(model)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, weights[name])
