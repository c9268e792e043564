from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from labelmem.errors import InputError
from labelmem.interop.features import Features


def test_places_do_not_depend_on_the_order_within_an_event() -> None:
    one, other = Features(), Features()
    one.meet({"b": 1, "a": 2, 3: 4})
    other.meet({3: 4, "a": 2, "b": 1})
    assert one.places == other.places
    one.meet({"0": 5, "b": 1})
    assert one.places["0"] == 3  # a place once given stays


def test_missing_values_are_zero_and_not_counted() -> None:
    features = Features(["a", "b", "c", "d"])
    values, known = features.vector({"a": None, "b": float("nan"), "d": np.float32(2), "e": 9})
    assert (values.tolist(), known) == ([0.0, 0.0, 0.0, 2.0], 1)


@pytest.mark.parametrize("value", [True, np.int64(1), Decimal(1), 1.0], ids=str)
def test_numbers_of_all_kinds(value: Any) -> None:
    assert Features(["a"]).vector({"a": value})[0].tolist() == [1.0]


@pytest.mark.parametrize("value", ["red", "12", float("inf"), [1.0, 2.0], 1j], ids=str)
def test_what_is_no_finite_number_is_refused_by_name(value: Any) -> None:
    with pytest.raises(InputError, match=r"'colour' is .*; expected a finite number"):
        Features(["colour"]).vector({"colour": value})


def test_numbers_whose_sum_is_not_finite_are_still_numbers() -> None:
    values, known = Features(["a", "b"]).vector({"a": 1e308, "b": 1e308})
    assert (values.tolist(), known) == ([1e308, 1e308], 2)
