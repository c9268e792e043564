"""Tiny causal language models, texts for them, and readers that do everything by slow loops."""

from __future__ import annotations

import math
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from toys import filled, random_combiner

from labelmem import Combiner, MemoryConfig
from labelmem import functional as F
from labelmem.memory import LabeledMemory

transformers = pytest.importorskip("transformers")
from labelmem.interop.transformers import MemoryLM, TextStream  # noqa: E402

V, DIM = 23, 8
FAMILIES = ("gpt2", "llama")
WINDOWED = ("mistral", "gemma2")
"""Models whose layers see a few tokens only; the second also bends its logits."""
MEMORY = MemoryConfig(lam=6.0, delta=0.5, margin=1.0, cells_per_label=2, capacity=9)
GREEDY = {"do_sample": False, "max_new_tokens": 6}


def language_model(family: str, positions: int = 64, seed: int = 3) -> Any:
    """A tiny model with weights large enough that its beliefs differ from token to token."""
    none = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    if family == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=V, n_positions=positions, n_embd=DIM, n_layer=2, n_head=2, **none
        )
        model = transformers.GPT2LMHeadModel(config)
    else:
        small = {"vocab_size": V, "hidden_size": DIM, "intermediate_size": 12, **none}
        small |= {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
        small |= {"max_position_embeddings": positions, "head_dim": 4}
        if family in WINDOWED:
            small["sliding_window"] = 4
        if family == "gemma2":
            small |= {"final_logit_softcapping": 2.0, "query_pre_attn_scalar": 4}
        name = family.capitalize()
        config = getattr(transformers, f"{name}Config")(**small)
        model = getattr(transformers, f"{name}ForCausalLM")(config)
    return filled(model, seed, scale=0.4).double()


def combiner_of(kind: str) -> float | Combiner:
    if kind == "fixed":
        return 0.4
    return random_combiner(DIM, kind=kind).double()


def text(seed: int, length: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, V, (length,), generator=generator).tolist()


def state_of(stream: TextStream) -> dict[str, Tensor]:
    """Memory and text, as they are saved; the model's cache is dropped."""
    with TemporaryDirectory() as folder:
        stream.save(f"{folder}/stream")
        return load_file(f"{folder}/stream")


def assert_same_state(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        assert torch.equal(tensor, b[name]), name


class SlowReader:
    """The text in one pass without a cache, the memory by hand."""

    def __init__(self, model: Any, theta: float, memory: MemoryConfig = MEMORY) -> None:
        self.model, self.theta = model.eval(), theta
        self.memory = LabeledMemory(DIM, memory, dtype=torch.float64, fast=False)

    @torch.no_grad()
    def probs(self, ids: list[int]) -> tuple[Tensor, Tensor]:
        """P over the token after ``ids``, and the h it was predicted from."""
        output = self.model(torch.tensor([ids]), output_hidden_states=True)
        h, logits = output.hidden_states[-1][:, -1], output.logits[:, -1]
        s = self.memory.read(h).scores(V)
        return F.mix(F.model_score(logits), s, self.theta)[0], h

    def read(self, ids: list[int], before: int = 1) -> list[float]:
        """Log-probabilities of all tokens but the first ``before``, each learned."""
        log_probs = []
        for t in range(before, len(ids)):
            P, h = self.probs(ids[:t])
            log_probs.append(math.log(P[ids[t]]))
            self.memory.write(h, torch.tensor([ids[t]]), P[None])
        return log_probs


class SlowCombined:
    """P after any continuation of a text: the memory as it was, the combiner moved on."""

    def __init__(self, lm: MemoryLM, ids: list[int]) -> None:
        stream = lm.stream()
        stream.read(ids)
        self.lm, self.ids, self.state = lm, ids, state_of(stream)
        del self.state["text.ids"]

    @torch.no_grad()
    def log_probs(self, guessed: list[int]) -> Tensor:
        adapter = self.lm.adapter
        state = adapter.restore(self.state, 1)
        for t in range(len(guessed) + 1):
            seen = torch.tensor([self.ids + guessed[:t]])
            output = self.lm.model(seen, output_hidden_states=True)
            h, logits = output.hidden_states[-1][:, -1], output.logits[:, -1]
            step = adapter.combine(state, h, h, logits, V)
            if t < len(guessed):  # learn, but keep the memory as it was
                kept = {k: x.clone() for k, x in state.memory.tensors().items()}
                adapter.learn(state, step, torch.tensor([guessed[t]]), None)
                state.memory.restore(kept)
        return step.probs[0].log()
