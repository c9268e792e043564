from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from labelmem.backbone import find_head
from labelmem.errors import ConfigError, InputError
from labelmem.fast import plainly
from labelmem.models import FitOptions, HistoryModel, fit_sequences, history
from labelmem.models.cells import gru_cell

LABELS, START = 6, 6
SHAPES: list[dict[str, Any]] = [
    {},
    {"full": True, "norm": 1.0},
    {"prior": 1.5},
    {"hidden": 7},
    {"recurrent": 3},
    {"full": True, "hidden": 5, "recurrent": 4, "decays": (0.9,), "norm": 0.0, "prior": 1.0},
]
STREAMS = [[0, 1, 2, 1, 2] * 3, [2, 5, 0, 2], [1, 1, 2, 3, 0, 2], [4, 4, 4]] * 3


def make(**options: Any) -> HistoryModel:
    """A model whose weights are no longer what they start as."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = HistoryModel(LABELS, **({"dim": 4} | options)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.5 * torch.randn(parameter.shape))
    return model


def tokens(n: int = 3, steps: int = 9) -> Tensor:
    labels = torch.randint(0, LABELS, (n, steps), generator=torch.Generator().manual_seed(1))
    labels[:, 0] = START
    return labels


def step_through(model: HistoryModel, x: Tensor) -> tuple[Tensor, Any]:
    state: Any = model.initial_state(len(x))
    logits = []
    for t in range(x.shape[1]):
        answer, state = model(x[:, t], state)
        logits.append(answer)
    return torch.stack(logits, 1), state


def slow_h(model: HistoryModel, past: Sequence[int], decays: Sequence[float]) -> Tensor:
    """What the formula of the class says after the tokens of one stream, the start included."""
    shown = [(age, model.embedding.weight[y]) for age, y in enumerate(reversed(past)) if y != START]
    averages, weights = [], []
    for g in decays:
        total = sum((g**age * e for age, e in shown), torch.zeros(model.dim))
        weight = sum(g**age for age, _ in shown)
        weights.append(weight)
        averages.append(total / max(1.0, weight) ** model.norm)
    if model.prior:
        averages = [a * max(weights) / (max(weights) + model.prior) for a in averages]
    h = torch.zeros(model.dim)
    for a, m in zip(averages, model.mix, strict=True):
        h = h + (a @ m if m.dim() == 2 else a * m)
    if model.hidden is not None:
        first, last = model.hidden[0], model.hidden[3]
        inside = (first.weight @ torch.cat(averages) + first.bias).clamp(min=0)
        h = h + last.weight @ inside + last.bias
    if model.rnn is not None and model.from_rnn is not None:
        state = torch.zeros(1, model.rnn.hidden_size)
        for y in past:
            e = torch.zeros(model.dim) if y == START else model.embedding.weight[y]
            state = gru_cell(e[None], state, *model.rnn.all_weights[0])
        h = h + model.from_rnn.weight @ state[0] + model.from_rnn.bias
    return h


@torch.no_grad()
@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_h_is_what_the_formula_says(options: dict[str, Any]) -> None:
    model, x = make(**options), tokens(2, 12)
    h, _ = model.forward_sequence(x)
    decays = options.get("decays", (0.0, 0.7, 0.95, 1.0))
    for row, stream in enumerate(x.tolist()):
        for t in range(len(stream)):
            expected = slow_h(model, stream[: t + 1], decays)
            torch.testing.assert_close(h[row, t], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("span", [1, 4, 128])
@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_steps_agree_with_the_sequence(
    options: dict[str, Any], span: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_SPAN", span)
    model = make(**options)
    slow, slow_state = step_through(model, tokens())
    h, state = model.forward_sequence(tokens())
    assert h.shape == (3, 9, 4)
    torch.testing.assert_close(model.head(h), slow, atol=1e-5, rtol=1e-5)
    for seen, expected in zip(state, slow_state, strict=True):
        torch.testing.assert_close(seen, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_a_sequence_can_be_continued(options: dict[str, Any]) -> None:
    model = make(**options)
    whole, _ = model.forward_sequence(tokens())
    first, state = model.forward_sequence(tokens()[:, :4])
    second, _ = model.forward_sequence(tokens()[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_very_long_sequences() -> None:
    model = make(recurrent=3).double()
    x = tokens(2, 8_000)
    h, (sums, weights, _) = model.forward_sequence(x)
    assert h.shape == (2, 8_000, 4)
    vectors = model.embedding.weight[x[:, 1:]].sum(1)
    torch.testing.assert_close(sums[:, -1], vectors)
    assert weights[:, -1].tolist() == [7_999, 7_999]
    _, (late, late_weights, _) = model.forward_sequence(x[:, -1_000:])
    torch.testing.assert_close(sums[:, :3], late[:, :3])  # 0.95 ** 1000 is nothing
    torch.testing.assert_close(weights[:, :3], late_weights[:, :3])


def test_the_start_counts_for_nothing() -> None:
    model = make()
    x = tokens(2, 5)
    padded = torch.cat([torch.full((2, 3), START), x], 1)
    h, state = model.forward_sequence(padded)
    expected, expected_state = model.forward_sequence(x)
    torch.testing.assert_close(h[:, 3:], expected)
    for seen, wanted in zip(state, expected_state, strict=True):
        torch.testing.assert_close(seen, wanted)
    assert h[:, :4].abs().sum() == 0  # nothing but the bias speaks
    assert not [name for name, _ in model.named_parameters() if "start" in name]


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_the_protocol_of_the_adapter(options: dict[str, Any]) -> None:
    model = make(**options)
    state = model.initial_state(4)
    logits, new = model(torch.full((4,), model.start_token), state)
    assert model.start_token == model.labels == START
    assert logits.shape == (4, LABELS) and len(new) == len(state)
    sums = len(options.get("decays", range(4)))
    shapes = [(4, sums, 4), (4, sums), (4, options.get("recurrent"))][: len(state)]
    for part in (state, new):
        assert [tuple(tensor.shape) for tensor in part] == shapes
    assert find_head(model, None) is model.head


def test_a_step_changes_neither_its_inputs_nor_other_streams() -> None:
    model, x = make(recurrent=3), tokens()
    state: Any = model.initial_state(3)
    for t in range(4):
        before = [part.clone() for part in state]
        logits, new = model(x[:, t], state)
        assert torch.equal(logits, model(x[:, t], state)[0])
        assert all(map(torch.equal, state, before))
        single, _ = model(x[1:2, t], tuple(part[1:2] for part in state))
        torch.testing.assert_close(single, logits[1:2], atol=1e-6, rtol=0)
        state = new


def test_no_streams_at_all() -> None:
    model = make(recurrent=3)
    logits, state = model(torch.zeros(0, dtype=torch.int64), model.initial_state(0))
    assert logits.shape == (0, LABELS) and state[0].shape == (0, 4, 4)


def test_state_follows_the_type_of_the_model() -> None:
    model = make(recurrent=3).double()
    assert all(part.dtype == torch.float64 for part in model.initial_state(1))
    slow, _ = step_through(model, tokens())
    fast, _ = model.forward_sequence(tokens())
    torch.testing.assert_close(model.head(fast), slow, atol=1e-12, rtol=0)


def test_tied_weights_are_one_parameter() -> None:
    model = make()
    assert model.head.weight is model.embedding.weight
    assert sum(p.numel() for p in model.parameters()) == LABELS * 4 + LABELS + 4 * 4
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embedding.weight is not model.head.weight
    other = HistoryModel(LABELS, dim=4).eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.forward_sequence(tokens())[0], model.forward_sequence(tokens())[0])


@pytest.mark.parametrize("full", [False, True])
def test_an_untrained_model_adds_the_averages(full: bool) -> None:
    model = HistoryModel(LABELS, dim=5, decays=(0.0, 1.0), gain=3.0, full=full)
    vector = torch.arange(5.0)
    mixed = [vector @ m if full else vector * m for m in model.mix]
    for seen in mixed:
        torch.testing.assert_close(seen, 3 / math.sqrt(2) * vector)
    big = HistoryModel(2_000, dim=5)
    assert big.embedding.weight.std().item() == pytest.approx(0.1, rel=0.05)


def test_dropout_is_for_training_only() -> None:
    model = make(dropout=0.5, output_dropout=0.4, hidden=5, recurrent=3)
    quiet, _ = model.forward_sequence(tokens())
    assert torch.equal(quiet, model.forward_sequence(tokens())[0])
    h, _ = model.train().forward_sequence(tokens(80, 9))
    assert 0.3 < float((h == 0).float().mean()) < 0.5
    logits = [model(tokens()[:, 1], model.initial_state(3))[0] for _ in range(2)]
    assert not torch.equal(*logits)


@torch.no_grad()
def test_tokens_are_dropped_whole() -> None:
    model = make(dropout=0.0, token_dropout=0.3, decays=(1.0,)).train()
    x = torch.full((50, 40), 2)
    _, (sums, weights) = model.forward_sequence(x)
    assert weights.unique().numel() > 3
    assert 0.65 < weights.mean().item() / 40 < 0.75
    torch.testing.assert_close(sums, weights[..., None] * model.embedding.weight[2])
    kept = model(x[:, 0], model.initial_state(50))[1][1]
    assert set(kept.flatten().tolist()) == {0.0, 1.0}


def test_every_stream_may_have_weights_of_its_own() -> None:
    models = [make(recurrent=3) for _ in range(3)]
    for index, model in enumerate(models):
        with torch.no_grad():
            model.head.bias.add_(index)
            model.mix.mul_(index)
    parameters, buffers = stack_module_state(models)  # type: ignore[arg-type]
    x, state = torch.tensor([6, 2, 3]), models[0].initial_state(3)

    def one(weights: Any, fixed: Any, token: Tensor, own: tuple[Tensor, ...]) -> Tensor:
        alone = tuple(part[None] for part in own)
        logits: Tensor = functional_call(models[0], (weights, fixed), (token[None], alone))[0][0]
        return logits

    together = vmap(one)(parameters, buffers, x, state)
    for index, model in enumerate(models):
        expected, _ = model(x[index : index + 1], model.initial_state(1))
        torch.testing.assert_close(together[index], expected[0])


@pytest.mark.parametrize("token", [-1, 7])
def test_tokens_out_of_range_are_refused(token: int) -> None:
    model = make()
    with pytest.raises(IndexError):
        model(torch.tensor([token]), model.initial_state(1))
    with pytest.raises(IndexError), torch.no_grad():  # nor does the short way take them
        model(torch.tensor([token]), model.initial_state(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_one_stream_takes_a_short_way(shape: int, dtype: torch.dtype) -> None:
    model, x = make(**SHAPES[shape]).to(dtype), tokens(1)
    with torch.no_grad(), plainly():
        expected, states = step_through(model, x)
    with torch.no_grad():
        logits, after = step_through(model, x)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
    assert len(after) == len(states)
    for found, state in zip(after, states, strict=True):
        torch.testing.assert_close(found, state, rtol=0, atol=1e-5)


def test_no_short_way_where_a_tensor_stands_for_many_or_gradients_are_asked_for() -> None:
    model, x = make(), torch.tensor([2, 3])

    def logits(token: Tensor) -> Tensor:
        answer: Tensor = model(token[None], model.initial_state(1))[0][0]
        return answer

    with torch.no_grad():
        together = vmap(logits)(x)
        torch.testing.assert_close(together, torch.stack([logits(token) for token in x]))
    assert logits(x[0]).requires_grad


def test_training_is_never_short() -> None:
    model, x = make(dropout=0.5).train(), torch.tensor([2])
    torch.manual_seed(0)
    with torch.no_grad():
        drawn = [model(x, model.initial_state(1))[0] for _ in range(6)]
    assert not all(torch.equal(drawn[0], other) for other in drawn)


def test_shapes_are_checked() -> None:
    model = make()
    with pytest.raises(InputError, match=r"x has shape \(3, 9\).*forward_sequence"):
        model(tokens(), model.initial_state(3))
    with pytest.raises(InputError, match="tokens has shape"):
        model.forward_sequence(tokens()[:, :0])


@pytest.mark.parametrize(
    "options",
    [
        *({"labels": 0}, {"dim": 0}, {"hidden": -1}, {"recurrent": 1.5}, {"dropout": 1.0}),
        *({"token_dropout": -0.1}, {"output_dropout": 1.0}, {"decays": ()}, {"decays": (0.5, 2)}),
        *({"norm": 1.5}, {"prior": -1.0}, {"gain": 0.0}, {"gain": math.nan}),
    ],
    ids=str,
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(options))} is "):
        HistoryModel(**({"labels": 3} | options))


# ---------------------------------------------------------------- training


def test_the_bias_starts_from_the_number_of_streams() -> None:
    model = make()
    model.start_from([torch.tensor(stream) for stream in STREAMS])
    counts = [sum(label in stream for stream in STREAMS) + 0.3 for label in range(LABELS)]
    expected = [math.log(count / sum(counts)) for count in counts]
    assert model.head.bias.tolist() == pytest.approx(expected, abs=1e-6)


def test_only_vectors_and_bias_decay() -> None:
    """With one step of AdamW a decay shows as lr * decay * weight, whatever the gradient."""
    known = {"epochs": 1, "batch": 99, "lr": 0.01, "validation": 0.0}

    def trained(**decay: float) -> Mapping[str, Tensor]:
        model = make(hidden=3, recurrent=3, dropout=0.0, token_dropout=0.0)
        fit_sequences(model, STREAMS, FitOptions(**(known | decay)))  # type: ignore[arg-type]
        return model.state_dict()

    before = make(hidden=3, recurrent=3)
    before.start_from([torch.tensor(stream) for stream in STREAMS])
    plain, decayed = trained(), trained(weight_decay=4.0, bias_decay=0.5)
    factors = {"embedding.weight": 0.04, "head.weight": 0.04, "head.bias": 0.005}
    for name, value in before.state_dict().items():
        expected = plain[name] - factors.get(name, 0.0) * value
        torch.testing.assert_close(decayed[name], expected, atol=1e-6, rtol=1e-5)
    groups = before.decayed(4.0, 0.5)
    grouped = [p for group, _ in groups for p in group]
    assert {id(p) for p in grouped} == {id(p) for p in before.parameters()}
    assert len(grouped) == len(list(before.parameters()))


def test_it_learns_what_follows_what() -> None:
    """Labels come in pairs, 2k and 2k + 1 near each other: the new one completes the pair."""
    generator = torch.Generator().manual_seed(0)
    streams = []
    for _ in range(60):
        pairs = torch.randperm(10, generator=generator)[:4].tolist()
        streams.append([2 * pair + side for pair in pairs for side in (0, 1)])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = HistoryModel(20, dim=8, dropout=0.1, token_dropout=0.0)
    options = FitOptions(epochs=40, lr=0.02, objective="new", batch_tokens=100, patience=9)
    result = fit_sequences(model, streams, options)
    # To the oracle every other label is certain, the others are one of the pairs that are left.
    best = sum(math.log(10 - k) for k in range(4)) / 8
    assert result.history[0]["validation"] > 2.2
    assert result.best["validation"] < best + 0.6
    h, _ = model.forward_sequence(torch.tensor([[model.start_token, 6]]))
    assert 7 in model.head(h)[0, 1].topk(2).indices  # beside 6 itself, which is known


def test_an_interrupted_training_ends_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = FitOptions(epochs=4, batch_tokens=20, lr=0.02, objective="new", bias_decay=0.1)
    straight, interrupted, resumed = make(), make(), make()
    whole = fit_sequences(straight, STREAMS, options)

    def die(epoch: int, most: int, losses: Mapping[str, float]) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fit_sequences(interrupted, STREAMS, options, progress=die, checkpoint=path)
    monkeypatch.setattr(resumed, "start_from", pytest.fail)
    assert fit_sequences(resumed, STREAMS, options, checkpoint=path) == whole
    for name, value in straight.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value)


def test_hidden_layers_come_before_the_head() -> None:
    linear = [m for m in make(hidden=3, recurrent=2).modules() if isinstance(m, nn.Linear)]
    assert len(linear) == 4 and linear[-1].out_features == LABELS
