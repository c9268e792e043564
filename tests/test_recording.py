from __future__ import annotations

from typing import Any

import pytest
import torch

from labelmem.errors import InputError
from labelmem.labels import KnownLabels
from labelmem.recording import Lockstep, lockstep_batches, split_streams

SEQUENCES: list[Any] = [
    ([[1.0], [2.0]], ["a", "new"]),
    (torch.tensor([[3.0], [4.0], [5.0], [6.0]]), ["x", "b", "x", "y"]),
    (torch.tensor([[7.0]]), ("b",)),
]


def batches(sequences: Any, batch_size: int = 10, labels: Any = "ab") -> list[Lockstep]:
    device = torch.device("cpu")
    return list(lockstep_batches(sequences, KnownLabels(labels), batch_size, device, torch.float32))


def test_streams_are_padded_to_the_longest() -> None:
    [batch] = batches(SEQUENCES)
    assert batch.order == (1, 0, 2) and batch.streams == 3
    assert batch.x[..., 0].tolist() == [[3, 4, 5, 6], [1, 2, 2, 2], [7, 7, 7, 7]]
    assert batch.mask.long().tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]
    assert batch.at(1).tolist() == [[4.0], [2.0], [7.0]]


def test_each_stream_numbers_its_own_new_labels() -> None:
    [batch] = batches(SEQUENCES)
    assert batch.y.tolist() == [[2, 1, 2, 3], [0, 2, 0, 0], [1, 0, 0, 0]]
    assert batch.width == 4


def test_batches_hold_streams_of_like_length() -> None:
    found = batches(iter(SEQUENCES), batch_size=2)
    assert [batch.order for batch in found] == [(1, 0), (2,)]
    assert [batch.y.shape for batch in found] == [(2, 4), (1, 1)]
    assert [batch.width for batch in found] == [4, 2]


def test_streams_of_equal_length_keep_their_order() -> None:
    same = [(torch.full((2, 1), float(i)), [0, 1]) for i in range(5)]
    assert batches(same, labels=2)[0].order == (0, 1, 2, 3, 4)


def test_labels_may_be_a_tensor() -> None:
    [batch] = batches([(torch.zeros(3, 1), torch.tensor([1, 5, 1]))], labels=2)
    assert batch.y.tolist() == [[1, 2, 1]]


def test_inputs_may_be_trees() -> None:
    x = {"a": torch.arange(3.0)[:, None], "b": (torch.arange(3),)}
    short = {"a": torch.ones(1, 1), "b": (torch.tensor([9]),)}
    [batch] = batches([(x, "aba"), (short, "b")])
    assert batch.at(2)["b"][0].tolist() == [2, 9]
    assert batch.x["b"][0].dtype == torch.int64


@pytest.mark.parametrize(
    "sequence, message",
    [
        ((torch.zeros(2, 1), ["a"]), r"sequence 1 has inputs of shape \(2, 1\) and 1 labels"),
        ((torch.zeros(0, 1), []), r"sequence 1 has .* and 0 labels.*at least one"),
        ((torch.tensor(1.0), ["a"]), r"sequence 1 has inputs of shape \(\)"),
        ((torch.full((1, 1), torch.nan), ["a"]), r"inputs of sequence 1 .* NaN"),
        ((torch.zeros(1, 1), [["a"]]), r"\['a'\].*cannot be hashed"),
        ((torch.zeros(1, 1),), r"sequence 1 is not a pair of inputs and labels"),
        (5, r"sequence 1 is not a pair"),
        (("text", ["a"]), r"inputs of sequence 1 is a str"),
        ((torch.zeros(4, 2), [*"abab"]), r"shape"),
    ],
)
def test_bad_sequences_are_named(sequence: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        batches([SEQUENCES[0], sequence])


def test_there_must_be_sequences() -> None:
    with pytest.raises(InputError, match="no sequences; expected pairs"):
        batches([])


def test_a_seeded_part_is_held_out() -> None:
    sequences: list[Any] = [(torch.tensor([[float(i)]]), [i]) for i in range(10)]
    train, held = split_streams(sequences, 0.3, seed=1)
    assert (len(train), len(held)) == (7, 3)
    assert sorted(s[1][0] for s in train + held) == list(range(10))
    again = split_streams(sequences, 0.3, seed=1)
    assert [s[1] for s in again[1]] == [s[1] for s in held]
    others = [split_streams(sequences, 0.3, seed)[1] for seed in range(2, 6)]
    assert any([s[1] for s in other] != [s[1] for s in held] for other in others)


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.9, 1.0])
def test_both_parts_have_at_least_one_stream(fraction: float) -> None:
    train, held = split_streams([([[0.0]], [i]) for i in range(3)], fraction, seed=0)
    assert train and held


def test_one_stream_cannot_be_split() -> None:
    with pytest.raises(InputError, match=r"got 1 sequence\(s\); two are needed"):
        split_streams([([[0.0]], [0])], 0.5, seed=0)
