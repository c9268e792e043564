from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import Recurrent, Stateless

from labelmem.backbone import Backbone, find_head
from labelmem.errors import ClosedError, InputError, ModelError


def test_the_last_linear_layer_is_the_head(stateless: Stateless) -> None:
    assert find_head(stateless, None) is stateless.head
    assert find_head(stateless, "body") is stateless.body
    assert find_head(stateless, stateless.head) is stateless.head
    alone = nn.Linear(2, 3)
    assert find_head(alone, None) is alone


def test_subclasses_of_linear_count() -> None:
    class Mine(nn.Linear):
        pass

    assert isinstance(find_head(nn.Sequential(Mine(2, 3), nn.ReLU()), None), Mine)


@pytest.mark.parametrize(
    "model, head, message",
    [
        (nn.Conv1d(1, 1, 1), None, r"Conv1d has no nn.Linear.*head=.*labels=\(\)"),
        (Stateless(), "haed", r"no module 'haed'; its linear layers are \['body', 'head'\]"),
        (Stateless(), "dropout", r"the head is a Dropout; it must be an nn.Linear.*'head'"),
        (Stateless(), nn.Linear(5, 4), "not a part of the given model"),
    ],
)
def test_a_head_that_cannot_be_is_refused(model: nn.Module, head: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        find_head(model, head)


def test_the_model_must_be_a_module() -> None:
    with pytest.raises(ModelError, match=r"the model is a function; it must be a torch nn.Module"):
        Backbone(lambda x: x)  # type: ignore[arg-type]


def test_a_stateless_step(stateless: Stateless) -> None:
    backbone, x = Backbone(stateless), torch.rand(2, 3)
    assert not backbone.recurrent and backbone.initial_state(2) is None
    h, logits, state = backbone(x, None, 2)
    assert torch.equal(h, stateless.features(x)[0]) and state is None
    assert logits is not None and torch.equal(logits, stateless.head(h))


def test_a_recurrent_step(recurrent: Recurrent) -> None:
    backbone, x = Backbone(recurrent), torch.rand(2, 3)
    assert backbone.recurrent
    state = backbone.initial_state(2)
    h, logits, after = backbone(x, state, 2)
    expected, expected_after = recurrent.features(x, state)
    assert torch.equal(h, expected) and logits is not None
    assert torch.equal(after["upper"][1], expected_after["upper"][1])


def test_an_embedding_is_its_output() -> None:
    backbone, x = Backbone(nn.Identity(), head=False), torch.rand(2, 3)
    h, logits, _ = backbone(x, None, 2)
    assert torch.equal(h, x) and logits is None
    assert (backbone.dtype, backbone.device.type) == (torch.float32, "cpu")


def test_nothing_of_a_step_stays_behind(stateless: Stateless) -> None:
    backbone = Backbone(stateless)
    told = [weakref.ref(x) for x in backbone(torch.rand(1, 3), None, 1)[:2]]
    gc.collect()
    assert [x() for x in told] == [None, None]


def test_device_and_type_are_the_models(stateless: Stateless) -> None:
    backbone = Backbone(stateless)
    stateless.double()
    assert backbone.dtype == torch.float64


def test_a_head_that_takes_no_part_is_told() -> None:
    class Unused(Stateless):
        def forward(self, x: Tensor) -> Tensor:
            return self.body(x)

    with pytest.raises(ModelError, match=r"took no part in the model's forward pass.*head="):
        Backbone(Unused())(torch.rand(1, 3), None, 1)


def test_a_recurrent_model_must_return_its_state() -> None:
    class Forgetful(Recurrent):
        def forward(self, x: Tensor, state: Any) -> Any:
            return super().forward(x, state)[0]

    backbone = Backbone(Forgetful())
    with pytest.raises(ModelError, match=r"must return \(logits, new_state\)"):
        backbone(torch.rand(1, 3), backbone.initial_state(1), 1)


def test_a_time_dimension_is_refused(stateless: Stateless) -> None:
    with pytest.raises(InputError, match=r"came out as \(1, 7, 5\).*without a time dimension"):
        Backbone(stateless)(torch.rand(1, 7, 3), None, 1)


def test_another_number_of_rows_is_refused(stateless: Stateless) -> None:
    for x, seen in ((torch.rand(3), r"\(5,\)"), (torch.rand(4, 3), r"\(4, 5\)")):
        with pytest.raises(InputError, match=rf"for 1 input\(s\).*{seen}; expected \(1, d\)"):
            Backbone(stateless)(x, None, 1)


@pytest.mark.parametrize("x", [torch.rand(1, 4), torch.ones(1, 3, dtype=torch.long)])
def test_what_the_model_cannot_take_is_told_with_its_shape(x: Tensor, stateless: Stateless) -> None:
    with pytest.raises(InputError) as caught:
        Backbone(stateless)(x, None, 1)
    assert str(tuple(x.shape)) in str(caught.value)


def test_a_missing_part_of_the_input_is_told() -> None:
    class Dictionary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(3, 2)

        def forward(self, x: dict[str, Tensor]) -> Tensor:
            return self.head(x["image"])

    with pytest.raises(InputError, match="image"):
        Backbone(Dictionary())({"picture": torch.rand(1, 3)}, None, 1)


@pytest.mark.parametrize("layer, bad", [("body", "nan"), ("head", "nan"), ("head", "inf")])
def test_a_model_that_answers_nonsense_is_told(layer: str, bad: str) -> None:
    model = Stateless()
    with torch.no_grad():
        getattr(model, layer).bias.fill_(float(bad))
    with pytest.raises(ModelError, match="NaN or infinite"):
        Backbone(model)(torch.rand(1, 3), None, 1)


def test_closing_is_final(stateless: Stateless) -> None:
    backbone = Backbone(stateless)
    backbone.close()
    for call in (lambda: backbone.initial_state(1), lambda: backbone(torch.rand(1, 3), None, 1)):
        with pytest.raises(ClosedError, match="closed"):
            call()


def test_a_failed_step_leaves_the_hook_in_order(stateless: Stateless) -> None:
    backbone = Backbone(stateless)
    with pytest.raises(InputError):
        backbone(torch.rand(1, 4), None, 1)
    assert backbone(torch.rand(1, 3), None, 1)[0].shape == (1, 5)
