from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from labelmem.errors import InputError
from labelmem.trees import as_tensors, leaves, rebuild, tree_map

CPU = torch.device("cpu")


class Pair(NamedTuple):
    h: Any
    c: Any


def convert(x: Any, dtype: torch.dtype = torch.float32) -> Any:
    return as_tensors(x, CPU, dtype, "the input")


def test_map_keeps_the_form() -> None:
    tree = {"a": (1, [2, 3]), "b": None}
    assert tree_map(lambda x: 10 * x, tree) == {"a": (10, [20, 30]), "b": None}
    assert tree_map(max, tree, {"b": None, "a": (5, [1, 9])}) == {"a": (5, [2, 9]), "b": None}


def test_map_refuses_trees_of_other_forms() -> None:
    with pytest.raises(ValueError):
        tree_map(max, (1, 2), (1, 2, 3))


def test_a_named_tuple_stays_one() -> None:
    mapped = tree_map(lambda x: x + 1, Pair(1, (2, 3)))
    assert mapped == Pair(2, (3, 4)) and type(mapped) is Pair


def test_leaves_and_rebuild_are_inverse() -> None:
    tree = {"a": (1, [2]), "b": {"c": 3}, "d": None}
    assert list(leaves(tree)) == [1, 2, 3]
    assert rebuild(tree, iter([10, 20, 30])) == {"a": (10, [20]), "b": {"c": 30}, "d": None}
    assert list(leaves(None)) == [] and rebuild(None, iter([])) is None


def test_the_order_of_keys_does_not_matter() -> None:
    # A model may build its state in another order than its initial state.
    assert rebuild({"h": 0, "c": 0}, leaves({"c": 1, "h": 2})) == {"h": 2, "c": 1}


@pytest.mark.parametrize(
    "x", [[1.0, 2.0], np.array([1.0, 2.0]), torch.tensor([1.0, 2.0], dtype=torch.float64)]
)
def test_floats_get_the_type_of_the_model(x: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        seen = convert(x, dtype)
        assert seen.dtype == dtype and seen.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("x", [[1, 2], np.array([1, 2]), torch.tensor([1, 2]), [True, False]])
def test_whole_numbers_and_booleans_stay_what_they_are(x: Any) -> None:
    assert not convert(x).is_floating_point()


def test_a_list_of_lists_is_one_array() -> None:
    assert convert([[1.0, 2.0], [3.0, 4.0]]).shape == (2, 2)


def test_inputs_are_copied_and_cut_from_their_graph() -> None:
    x = torch.ones(2, requires_grad=True)
    seen = convert(x)
    assert not seen.requires_grad
    array = np.ones(2, dtype=np.float32)
    seen = convert(array)
    array[:] = 5
    assert seen.tolist() == [1.0, 1.0]


def test_arrays_of_any_layout_are_fine() -> None:
    array = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    assert convert(array[::-1]).tolist() == [3.0, 2.0, 1.0]
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert convert(array).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"a": torch.ones(2), "b": (x,)}])
def test_what_is_not_finite_is_refused(bad: float, wrap: Any) -> None:
    with pytest.raises(InputError, match=r"the input of shape \(3,\) has 2 NaN or infinite"):
        convert(wrap(torch.tensor([bad, 1.0, bad])))


def test_a_value_too_large_for_the_model_is_refused() -> None:
    # Finite in float64, infinite in the model's float32.
    with pytest.raises(InputError, match="NaN or infinite"):
        convert(np.array([1e300]))


@pytest.mark.parametrize("x", ["text", object(), [[1.0], [1.0, 2.0]], np.array(["a"]), {1.0}])
def test_what_is_no_array_is_refused(x: Any) -> None:
    with pytest.raises(InputError, match=r"the input is a \w+ that is not a tensor or array"):
        convert(x)
