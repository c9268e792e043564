from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from labelmem.errors import ConfigError, InputError, LabelMemError
from labelmem.labels import KnownLabels, LabelSpace, plain


def test_a_number_of_labels_means_their_ids() -> None:
    known = KnownLabels(3)
    assert known.are_ids and len(known) == 3 and list(known.names) == [0, 1, 2]
    found = [known.find(label) for label in (0, 2, 3, -1, "0", 1.5, None, (1,))]
    assert found == [0, 2, None, None, None, None, None, None]


def test_names_are_found_by_position() -> None:
    names = ["b", ("a", 1), b"c", 2.5]
    known = KnownLabels(iter(names))
    assert not known.are_ids and list(known.names) == names
    assert [known.find(name) for name in names] == [0, 1, 2, 3]
    assert known.find("missing") is None


@pytest.mark.parametrize("labels", [np.arange(4), torch.arange(4)])
def test_names_given_as_arrays_are_the_numbers_in_them(labels: Any) -> None:
    known = KnownLabels(labels)
    assert [known.find(i) for i in range(5)] == [0, 1, 2, 3, None]


def test_names_must_be_distinct_and_hashable() -> None:
    with pytest.raises(ConfigError, match=r"label 'a' is listed twice"):
        KnownLabels(["a", "b", "a"])
    with pytest.raises(ConfigError, match="listed twice"):
        KnownLabels([1, True])
    with pytest.raises(LabelMemError, match=r"\['a'\].*hash"):
        KnownLabels([["a"], ["b"]])


def test_a_space_adds_new_labels_after_the_known_ones() -> None:
    space = LabelSpace(KnownLabels(["x", "y"]))
    assert [space.add(label) for label in ("q", "x", "p", "q")] == [2, 0, 3, 2]
    assert (space.own, len(space)) == (["q", "p"], 4)
    assert [space.name(i) for i in range(4)] == ["x", "y", "q", "p"]
    assert space.names(3) == ["x", "y", "q"] and space.names(2) == ["x", "y"]
    assert space.find("z") is None and len(space) == 4


def test_a_space_can_be_rebuilt_from_its_own_labels() -> None:
    known = KnownLabels(2)
    space = LabelSpace(known, ["q", 7])
    assert [space.find(label) for label in (1, "q", 7, 2)] == [1, 2, 3, None]


def test_spaces_are_private() -> None:
    known = KnownLabels(2)
    one, two = LabelSpace(known), LabelSpace(known)
    one.add("q")
    assert two.find("q") is None and known.find("q") is None


@pytest.mark.parametrize(
    "label, expected",
    [
        (np.int32(3), 3),
        (np.array(3), 3),
        (torch.tensor(3), 3),
        (torch.tensor(True), True),
        (np.str_("a"), "a"),
        (np.float64(0.5), 0.5),
        ("a", "a"),
        ((1, "b"), (1, "b")),
        (None, None),
    ],
)
def test_scalars_become_plain(label: Any, expected: Any) -> None:
    seen = plain(label)
    assert seen == expected and type(seen) is type(expected)


@pytest.mark.parametrize("label", [[1], {"a": 1}, {1}, ([1], 2)])
def test_what_cannot_be_hashed_is_refused(label: Any) -> None:
    kind = type(label).__name__
    with pytest.raises(InputError, match=rf"\({kind}\) cannot be hashed; use a number, a string"):
        plain(label)


@pytest.mark.parametrize("label", [torch.tensor([1]), torch.tensor([1, 2]), np.array([1])])
def test_an_array_of_labels_is_not_a_label(label: Any) -> None:
    # A tensor can be hashed, but by identity: every one of them would be another label.
    with pytest.raises(InputError):
        plain(label)
