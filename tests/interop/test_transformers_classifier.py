"""Classifiers of texts from transformers in an adapter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from threads import at_once
from torch import Tensor
from toys import filled

from labelmem import MemoryConfig
from labelmem import functional as F
from labelmem.errors import ModelError
from labelmem.memory import LabeledMemory

transformers = pytest.importorskip("transformers")
from labelmem.interop.transformers import sequence_classifier  # noqa: E402

V, DIM = 19, 8
NAMES = ["lost_card", "top_up", "exchange_rate"]
MEMORY = MemoryConfig(lam=6.0, margin=2.0, cells_per_label=2)
FAMILIES = ("bert", "distilbert", "roberta", "gpt2", "llama")


def text_classifier(family: str) -> Any:
    """A tiny classifier; those of the last two families answer for every token."""
    small = {"vocab_size": V, "pad_token_id": 0, "id2label": dict(enumerate(NAMES))}
    encoder = small | {"hidden_size": DIM, "num_attention_heads": 2, "num_hidden_layers": 1}
    encoder |= {"intermediate_size": 12, "max_position_embeddings": 32}
    make = {
        "bert": lambda: transformers.BertForSequenceClassification(
            transformers.BertConfig(**encoder)
        ),
        "roberta": lambda: transformers.RobertaForSequenceClassification(
            transformers.RobertaConfig(**encoder)
        ),
        "distilbert": lambda: transformers.DistilBertForSequenceClassification(
            transformers.DistilBertConfig(**small, dim=DIM, n_heads=2, n_layers=1, hidden_dim=12)
        ),
        "gpt2": lambda: transformers.GPT2ForSequenceClassification(
            transformers.GPT2Config(**small, n_embd=DIM, n_layer=1, n_head=2, n_positions=32)
        ),
        "llama": lambda: transformers.LlamaForSequenceClassification(
            transformers.LlamaConfig(**encoder)
        ),
    }
    return filled(make[family](), seed=1, scale=0.4).double().eval()


def tokens(seed: int, length: int) -> dict[str, list[int]]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, V, (length,), generator=generator).tolist()
    return {"input_ids": ids, "attention_mask": [1] * length}


def together(texts: list[dict[str, list[int]]]) -> dict[str, Tensor]:
    """As a tokenizer would pad them, on the right."""
    width = max(len(text["input_ids"]) for text in texts)
    return {
        name: torch.tensor([text[name] + [0] * (width - len(text[name])) for text in texts])
        for name in ("input_ids", "attention_mask")
    }


def h_and_logits(model: Any, text: dict[str, list[int]]) -> tuple[Tensor, Tensor]:
    """By hand: what a module of known name was given for the token that answers."""
    layer = {"roberta": lambda: model.classifier.out_proj}.get(
        model.config.model_type,
        lambda: model.score if hasattr(model, "score") else model.classifier,
    )()
    seen: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        logits = model(**together([text])).logits
    hook.remove()
    h = seen[0] if seen[0].ndim == 2 else seen[0][:, -1]
    return h, logits


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_of_texts_with_a_new_label_in_it(family: str) -> None:
    model = text_classifier(family)
    memory = LabeledMemory(DIM, MEMORY, dtype=torch.float64, fast=False)
    names = [*NAMES, "refund"]
    with sequence_classifier(model, memory=MEMORY, combiner=0.3) as adapter:
        stream = adapter.stream()
        for seed in range(12):
            text, y = tokens(seed, 2 + seed % 5), names[seed % 4]
            h, logits = h_and_logits(model, text)
            r = torch.nn.functional.pad(F.model_score(logits), (0, len(stream.labels) - 3))
            want = F.mix(r, memory.read(h).scores(r.shape[1]), 0.3)
            got = stream.predict(text)
            assert got.labels == stream.labels
            torch.testing.assert_close(got.probs, want[0])
            stream.observe(y)
            memory.write(h, torch.tensor([names.index(y)]), want)
        assert stream.labels == names


@pytest.mark.parametrize("family", FAMILIES)
def test_padded_texts_are_as_each_alone(family: str) -> None:
    texts = [tokens(20, 3), tokens(21, 7), tokens(22, 5)]
    with sequence_classifier(text_classifier(family), memory=MEMORY, combiner=0.5) as adapter:
        batch, alone = adapter.streams(3), [adapter.stream() for _ in range(3)]
        for _ in range(2):
            P = batch.predict(together(texts))
            for row, stream, text in zip(P, alone, texts, strict=True):
                torch.testing.assert_close(row, stream.predict(text).probs)
                stream.observe("top_up")
            batch.observe(["top_up"] * 3)


def test_names_of_labels_can_be_given() -> None:
    with sequence_classifier(text_classifier("bert"), "classifier", labels="abc") as adapter:
        assert adapter.stream().labels == ["a", "b", "c"]
    with pytest.raises(ModelError, match="no module 'nonsense'"):
        sequence_classifier(text_classifier("bert"), "nonsense")


def test_a_missing_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['transformers'] = None\n"
        "from labelmem.errors import MissingExtraError\n"
        "try:\n    import labelmem.interop.transformers\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pip install 'labelmem[transformers]'" in done.stdout


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_users_in_threads_are_told_what_they_are_told_alone(family: str) -> None:
    adapter = sequence_classifier(text_classifier(family), combiner=0.5)

    def life(n: int) -> Callable[[], list[Tensor]]:
        def lived() -> list[Tensor]:
            stream, told = adapter.stream(), []
            for t in range(15):
                told.append(stream.predict(tokens(100 * n + t, 5)).probs)
                stream.observe(["lost_card", "other"][t % 2])
            return told

        return lived

    alone = [life(n)() for n in range(4)]
    for told, seen in zip(alone, at_once(*map(life, range(4))), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(told, seen, strict=True))
