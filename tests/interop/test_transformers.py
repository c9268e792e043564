"""The memory around causal language models of transformers, against slow loops."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import filled, random_combiner

from labelmem import Combiner, MemoryConfig
from labelmem import functional as F
from labelmem.errors import ConfigError, InputError, MismatchError, ModelError, UnsupportedError
from labelmem.memory import LabeledMemory

transformers = pytest.importorskip("transformers")
from labelmem.interop.transformers import MemoryLM, TextStream, TextStreams  # noqa: E402

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


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Any:
    return language_model(request.param)


@pytest.fixture
def lm(model: Any) -> Iterator[MemoryLM]:
    with MemoryLM(model, memory=MEMORY, combiner=0.4) as lm:
        yield lm


def state_of(stream: TextStream | TextStreams) -> dict[str, Tensor]:
    streams = stream._one if isinstance(stream, TextStream) else stream
    tensors = streams.lm.adapter.tensors(streams._state)
    rows = {f"ids{i}": row for i, row in enumerate(streams.ids)}
    return {name: tensor.clone() for name, tensor in (tensors | rows).items()}


def assert_same_state(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        assert torch.equal(tensor, b[name]), name


# ---------------------------------------------------------------- a slow oracle


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


# ---------------------------------------------------------------- many streams


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


# ---------------------------------------------------------------- generating


class SlowCombined:
    """P after any continuation of a text: the memory as it was, the combiner moved on."""

    def __init__(self, lm: MemoryLM, ids: list[int]) -> None:
        stream = lm.stream()
        stream.read(ids)
        self.lm, self.ids, self.state = lm, ids, stream._one._state

    @torch.no_grad()
    def log_probs(self, guessed: list[int]) -> Tensor:
        adapter = self.lm.adapter
        state = adapter.restore(adapter.tensors(self.state), 1)
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
    with MemoryLM(model, memory=MEMORY, combiner=0.0 if off == "weightless" else 0.4) as lm:
        stream = lm.stream()
        stream.read(ids)
        if off == "empty":
            stream._one._state = lm.adapter.initial_state(1)
        stream._one._context.forget_cache()
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


# ---------------------------------------------------------------- keeping, tuning, precision


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
    assert len(stream.ids) == 0 and len(stream._one._state.memory) > 0
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


def test_logits_that_are_bent_after_the_output_layer() -> None:
    model, ids = language_model("gemma2"), text(45, 20)
    want = SlowReader(model, 0.4).read(ids)
    with MemoryLM(model, memory=MEMORY, combiner=0.4) as lm:
        got = lm.stream().read(ids)
        torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64))
        with pytest.raises(UnsupportedError, match="changes its logits"):
            lm.tune([ids])


def test_the_memory_of_a_coarse_model_is_finer(model: Any) -> None:
    model.bfloat16()
    with MemoryLM(model, memory=MEMORY, combiner=0.4) as lm:
        stream = lm.stream()
        assert stream.read(text(42, 20)).dtype == torch.float32
        assert stream._one._state.memory.v.dtype == torch.float32
        assert stream.generate(**GREEDY).shape == (1, 26)
        lm.tune([text(43, 12)], trials=2)


# ---------------------------------------------------------------- the model, and what is refused


def test_the_model_is_given_back_as_it_came(model: Any) -> None:
    model.train()
    weights = {name: p.clone() for name, p in model.named_parameters()}
    with MemoryLM(model, memory=MEMORY) as lm:
        assert not model.training
        stream = lm.stream()
        stream.read(text(44, 9))
        stream.generate(**GREEDY)
    assert model.training and all(module.training for module in model.modules())
    assert not model.get_output_embeddings()._forward_hooks
    assert not model.get_output_embeddings()._forward_pre_hooks
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, weights[name])


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
