from __future__ import annotations

import enum
import json
import math
from collections import namedtuple
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labelmem.errors import StorageError
from labelmem.label_codec import decode_label, encode_label

Colour = enum.IntEnum("Colour", ["RED"])
Point = namedtuple("Point", ["x", "y"])

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(alphabet=st.characters()),
    st.binary(),
)
labels = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple) | st.lists(inner, max_size=4).map(frozenset)
    ),
    max_leaves=12,
)


def through_json(label: Hashable) -> Hashable:
    return decode_label(json.loads(json.dumps(encode_label(label), allow_nan=False)))


def fingerprint(label: Any) -> Any:
    """Tell labels apart by type and value at any depth; nan is nan and -0.0 is not 0.0."""
    if isinstance(label, tuple):
        return ("tuple", *map(fingerprint, label))
    if isinstance(label, frozenset):
        return ("frozenset", *sorted(map(repr, map(fingerprint, label))))
    return (type(label).__name__, repr(label))


@given(labels)
def test_every_label_comes_back_with_its_type(label: Hashable) -> None:
    assert fingerprint(through_json(label)) == fingerprint(label)


@given(labels, labels)
def test_different_labels_have_different_documents(a: Hashable, b: Hashable) -> None:
    same = fingerprint(a) == fingerprint(b)
    assert (json.dumps(encode_label(a)) == json.dumps(encode_label(b))) == same


@pytest.mark.parametrize(
    "label",
    [
        *(True, 1, 1.0, "1", b"1", None, "", b"", (), (1,), ((1,),), frozenset()),
        *(-0.0, math.inf, -math.inf, math.nan, 2**200, "\ud800", "é\x00"),
        (None, (b"\xff", frozenset({1, "a", (2.0,)}))),
    ],
    # Not repr: the order in which a set shows its members differs between processes.
    ids=lambda label: type(label).__name__,
)
def test_telling_labels_come_back(label: Hashable) -> None:
    assert fingerprint(through_json(label)) == fingerprint(label)


@pytest.mark.parametrize(
    ("label", "python"),
    [
        (np.int64(7), 7),
        (np.uint8(7), 7),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        ((np.int32(1), "x"), (1, "x")),
    ],
    ids=repr,
)
def test_numpy_scalars_become_python_values(label: Hashable, python: Hashable) -> None:
    assert fingerprint(through_json(label)) == fingerprint(python)


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        (2j, "complex"),
        (object, "type"),
        (Colour.RED, "Colour"),
        (Point(1, 2), "Point"),
        (np.datetime64("2020-01-01"), "datetime64"),
        (torch.tensor(3), "Tensor"),
        (np.longdouble(1), "longdouble"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_types_are_refused_by_name(label: Hashable, kind: str) -> None:
    with pytest.raises(StorageError, match=rf"of type {kind}.*use None, bool"):
        encode_label(label)


def test_a_bad_part_is_named_with_its_label() -> None:
    with pytest.raises(StorageError, match=r"label \('a', 2j\), because of its part 2j of type"):
        encode_label(("a", 2j))


@pytest.mark.parametrize(
    "document",
    [
        [1],
        1.5,
        {},
        {"tuple": [1], "float": "1"},
        {"list": [1]},
        {"tuple": 3},
        {"tuple": "ab"},
        {"float": 1},
        {"float": "one"},
        {"bytes": "?"},
        {"bytes": None},
        {"frozenset": [[1]]},
    ],
    ids=str,
)
def test_foreign_documents_are_refused(document: Any) -> None:
    with pytest.raises(StorageError, match="not a label written by encode_label"):
        decode_label(document)


def test_equal_sets_have_equal_documents() -> None:
    names = [f"label {i}" for i in range(50)]
    assert encode_label(frozenset(names)) == encode_label(frozenset(reversed(names)))
