from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from labelmem.errors import ConfigError, InputError
from labelmem.models import GRUModel, LSTMModel, RecurrentModel, State
from labelmem.storage import load_state, save_state

KINDS = [GRUModel, LSTMModel]
SHAPES = [
    {},
    {"layers": 2},
    {"embedding": 5},
    {"tied": True},
    {"dropout": 0.4, "layers": 3, "embedding": 7},
]
pytestmark = pytest.mark.parametrize("kind", KINDS)


def make(kind: type[RecurrentModel], **options: object) -> RecurrentModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(labels=6, dim=8, **options).eval()  # type: ignore[arg-type, call-arg]


def parts(state: State) -> tuple[Tensor, ...]:
    return (state,) if isinstance(state, Tensor) else state


def tokens(n: int = 3, steps: int = 9) -> Tensor:
    labels = torch.randint(0, 6, (n, steps), generator=torch.Generator().manual_seed(1))
    labels[:, 0] = 6
    return labels


def step_through(model: RecurrentModel, x: Tensor) -> tuple[Tensor, State]:
    state, logits = model.initial_state(len(x)), []
    for t in range(x.shape[1]):
        answer, state = model(x[:, t], state)
        logits.append(answer)
    return torch.stack(logits, 1), state


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_steps_agree_with_the_fused_sequence(
    kind: type[RecurrentModel], options: dict[str, object]
) -> None:
    model = make(kind, **options)
    slow, slow_state = step_through(model, tokens())
    h, state = model.forward_sequence(tokens())
    assert h.shape == (3, 9, 8)
    torch.testing.assert_close(model.head(h), slow, atol=1e-5, rtol=0)
    for seen, expected in zip(parts(state), parts(slow_state), strict=True):
        torch.testing.assert_close(seen, expected, atol=1e-5, rtol=0)


def test_a_sequence_can_be_continued(kind: type[RecurrentModel]) -> None:
    model = make(kind, layers=2)
    whole, _ = model.forward_sequence(tokens())
    first, state = model.forward_sequence(tokens()[:, :4])
    second, _ = model.forward_sequence(tokens()[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, atol=1e-6, rtol=0)


def test_the_protocol_of_the_adapter(kind: type[RecurrentModel]) -> None:
    model = make(kind, layers=2)
    caught: list[Tensor] = []
    model.head.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
    state = model.initial_state(4)
    logits, new = model(torch.full((4,), model.start_token), state)
    assert model.start_token == model.labels == 6
    assert logits.shape == (4, 6) and caught[0].shape == (4, 8)
    assert all(part.shape == (4, 2, 8) for part in (*parts(state), *parts(new)))
    assert isinstance(new, type(state))
    linear = [name for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    assert linear[-1] == "head"


def test_a_step_changes_neither_its_inputs_nor_other_streams(kind: type[RecurrentModel]) -> None:
    model = make(kind)
    x = tokens()
    state = model.initial_state(3)
    for t in range(4):
        before = [part.clone() for part in parts(state)]
        logits, new = model(x[:, t], state)
        again, _ = model(x[:, t], state)
        assert torch.equal(logits, again)
        assert all(map(torch.equal, parts(state), before))
        alone = tuple(part[1:2] for part in parts(state))
        single, _ = model(x[1:2, t], alone if len(alone) > 1 else alone[0])
        torch.testing.assert_close(single, logits[1:2], atol=1e-6, rtol=0)
        state = new


def test_no_streams_at_all(kind: type[RecurrentModel]) -> None:
    model = make(kind)
    logits, state = model(torch.zeros(0, dtype=torch.int64), model.initial_state(0))
    assert logits.shape == (0, 6) and parts(state)[0].shape == (0, 1, 8)


def test_state_follows_the_type_of_the_model(kind: type[RecurrentModel]) -> None:
    model = make(kind).double()
    assert all(part.dtype == torch.float64 for part in parts(model.initial_state(1)))
    slow, _ = step_through(model, tokens())
    fast, _ = model.forward_sequence(tokens())
    torch.testing.assert_close(model.head(fast), slow, atol=1e-12, rtol=0)


def test_the_start_is_a_token_of_its_own(kind: type[RecurrentModel]) -> None:
    model = make(kind)
    with torch.no_grad():
        model.embedding.start.fill_(3.0)
    seen = model.embedding(torch.tensor([6, 0, 6]))
    assert torch.equal(seen[0], torch.full((8,), 3.0)) and torch.equal(seen[2], seen[0])
    assert torch.equal(seen[1], model.embedding.weight[0])


@pytest.mark.parametrize("token", [-1, 7])
def test_tokens_out_of_range_are_refused(kind: type[RecurrentModel], token: int) -> None:
    model = make(kind)
    with pytest.raises(IndexError):
        model(torch.tensor([token]), model.initial_state(1))


def test_tied_weights_are_one_parameter(kind: type[RecurrentModel], tmp_path: Path) -> None:
    model = make(kind, tied=True)
    assert model.head.weight is model.embedding.weight
    assert len(list(model.parameters())) == len(list(make(kind).parameters())) - 1
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embedding.weight
    assert twin.head.weight is not model.head.weight
    # Input vectors have entries of size 1, rows of the head length 1, whatever the dimension.
    assert 0.7 < model.embedding(torch.arange(6)).std().item() < 1.3
    assert 0.5 < model.head.weight.norm(dim=1).mean().item() < 1.5
    save_state(tmp_path / "m", "model", model.state_dict(), {})
    other = make(kind, tied=True)
    with torch.no_grad():
        other.head.weight.zero_()
    other.load_state_dict(load_state(tmp_path / "m", "model")[0])
    assert torch.equal(step_through(other, tokens())[0], step_through(model, tokens())[0])


def test_tied_needs_equal_sizes(kind: type[RecurrentModel]) -> None:
    with pytest.raises(ConfigError, match="embedding is 5, dim is 8"):
        make(kind, tied=True, embedding=5)


def test_dropout_is_for_training_only(kind: type[RecurrentModel]) -> None:
    model = make(kind, dropout=0.5)
    quiet, _ = model.forward_sequence(tokens())
    assert torch.equal(quiet, model.forward_sequence(tokens())[0])
    model.train()
    h, _ = model.forward_sequence(tokens(40, 9))
    dropped = float((h == 0).float().mean())
    assert 0.4 < dropped < 0.6
    logits = [model(tokens()[:, 0], model.initial_state(3))[0] for _ in range(2)]
    assert not torch.equal(*logits)


def test_every_stream_may_have_weights_of_its_own(kind: type[RecurrentModel]) -> None:
    models = [make(kind, layers=2) for _ in range(3)]
    for index, model in enumerate(models):
        with torch.no_grad():
            model.head.bias.add_(index)
            model.rnn.all_weights[0][0].mul_(index)
    parameters, _ = stack_module_state(models)
    x, state = torch.tensor([6, 2, 3]), models[0].initial_state(3)

    def one(weights: dict[str, Tensor], token: Tensor, own: State) -> Tensor:
        alone = tuple(part[None] for part in parts(own))
        answer = functional_call(
            models[0], weights, (token[None], alone if len(alone) > 1 else alone[0])
        )
        logits: Tensor = answer[0][0]
        return logits

    together = vmap(one)(parameters, x, state)
    for index, model in enumerate(models):
        expected, _ = model(x[index : index + 1], model.initial_state(1))
        torch.testing.assert_close(together[index], expected[0])


def test_steps_can_be_differentiated_twice(kind: type[RecurrentModel]) -> None:
    model = make(kind)
    logits, _ = step_through(model, tokens(2, 3))
    weight = model.rnn.all_weights[0][1]
    (slope,) = torch.autograd.grad(logits.logsumexp(-1).sum(), weight, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.square().sum(), weight)
    assert curvature.isfinite().all() and curvature.abs().sum() > 0


def test_shapes_are_checked(kind: type[RecurrentModel]) -> None:
    model = make(kind)
    with pytest.raises(InputError, match=r"x has shape \(3, 9\).*forward_sequence"):
        model(tokens(), model.initial_state(3))
    for wrong in (tokens()[0], tokens()[:, :0]):
        with pytest.raises(InputError, match="tokens has shape"):
            model.forward_sequence(wrong)


@pytest.mark.parametrize(
    "options",
    [{"labels": 0}, {"dim": 0}, {"embedding": 0}, {"layers": 0}, {"dim": 2.5}, {"dropout": 1.0}],
    ids=str,
)
def test_options_are_checked(kind: type[RecurrentModel], options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        kind(**({"labels": 3} | options))  # type: ignore[arg-type]
