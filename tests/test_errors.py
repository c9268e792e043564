"""Bad input: one error of the package's own, which says what was seen, and nothing is changed."""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from toys import (
    Bare,
    Stateless,
    make_adapter,
    random_combiner,
    random_stream,
    run,
    snapshot,
    unchanged,
)

from labelmem import Adapter, LabeledMemory, LabelMemError, MemoryConfig, Stream, StreamBatch
from labelmem.errors import (
    ClosedError,
    ConfigError,
    CorruptFileError,
    FormatVersionError,
    InputError,
    MismatchError,
    ModelError,
    ObserveError,
    StorageError,
)
from labelmem.storage import load_state, save_state

NAN, INF = math.nan, math.inf


def warmed(adapter: Adapter) -> Stream:
    stream = adapter.stream()
    run(stream, *random_stream(1, 15, range(4), ["emu", "owl"]))
    return stream


def warmed_batch(adapter: Adapter, n: int = 2) -> StreamBatch:
    batch = adapter.streams(n)
    batch.predict(torch.eye(3)[:n])
    batch.observe(["emu", 1][:n])
    return batch


def test_every_error_is_the_packages_and_a_standard_one() -> None:
    errors = import_module("labelmem.errors")
    for name in errors.__all__:
        error = getattr(errors, name)
        if issubclass(error, Warning):
            continue
        assert issubclass(error, LabelMemError)
        if error is not LabelMemError:
            standard = [base for base in error.__mro__ if base.__module__ == "builtins"]
            assert standard[0] not in (Exception, BaseException), name


# ---------------------------------------------------------------- one stream


@pytest.mark.parametrize(
    "x, message",
    [
        ([NAN, 0.0, 0.0], r"shape \(3,\) has 1 NaN or infinite.*must be finite"),
        (torch.tensor([INF, 0.0, -INF]), r"shape \(3,\) has 2 NaN or infinite"),
        (np.array([0.0, NAN, 0.0]), "1 NaN or infinite"),
        ([1.0, 0.0], r"shape \(1, 2\)"),
        (torch.ones(1, 3), r"\(1, 1, 5\); expected \(1, d\).*without a time dimension"),
        (torch.tensor(1.0), r"shape \(1,\)|\(1,"),
        ([1, 0, 0], r"shape \(1, 3\)"),
        ("text", "str that is not a tensor"),
        (None, "None"),
        ({"a": torch.ones(3)}, r"'a': \(1, 3\)"),
    ],
)
def test_a_bad_input_changes_nothing(x: Any, message: str) -> None:
    stream = warmed(make_adapter("dense"))
    waiting = stream.predict(torch.ones(3))
    with unchanged(stream), pytest.raises(InputError, match=message):
        stream.predict(x)
    stream.observe("emu")  # still belongs to the prediction that was made
    with pytest.raises(ObserveError, match="already"):
        stream.observe("emu", prediction=waiting)


@pytest.mark.parametrize("label", [["a"], {"a": 1}, {1, 2}, ([],)])
def test_an_unhashable_label_changes_nothing(adapter: Adapter, label: Any) -> None:
    stream, batch = warmed(adapter), warmed_batch(adapter)
    stream.predict(torch.ones(3))
    with unchanged(stream), pytest.raises(InputError, match="cannot be hashed"):
        stream.observe(label)
    batch.predict(torch.ones(2, 3))
    with unchanged(batch), pytest.raises(InputError, match="cannot be hashed"):
        batch.observe(["never seen", label])
    stream.observe("emu")  # the prediction still waits
    batch.observe(["never seen", label], mask=[True, False])  # nobody looks at a masked label


def test_an_input_that_breaks_the_model_changes_nothing(kind: str) -> None:
    adapter = make_adapter(kind)
    stream, batch = warmed(adapter), warmed_batch(adapter)
    adapter.backbone.model.head.bias.data.fill_(NAN)
    with unchanged(stream), pytest.raises(ModelError, match="NaN or infinite"):
        stream.predict(torch.ones(3))
    with unchanged(batch), pytest.raises(ModelError, match="NaN or infinite"):
        batch.predict(torch.ones(2, 3))


def test_a_closed_adapter_changes_nothing(adapter: Adapter) -> None:
    stream, batch = warmed(adapter), warmed_batch(adapter)
    late = stream.predict(torch.ones(3))
    stream.predict(torch.ones(3))
    stream.observe(0)
    adapter.close()
    for one in (stream, batch):
        with unchanged(one), pytest.raises(ClosedError, match="closed"):
            one.reset()
    with unchanged(stream), pytest.raises(ClosedError, match="closed"):
        stream.observe("new", prediction=late)
    with unchanged(stream), pytest.raises(ClosedError, match="closed"):
        stream.predict(torch.ones(3))


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize(
    "X, message",
    [
        (torch.ones(3, 3), r"shape \(3, 3\); its first dimension must be 2"),
        (torch.ones(3), r"shape \(3,\); its first dimension must be 2"),
        (torch.tensor(1.0), r"shape \(\); its first dimension must be 2"),
        (torch.ones(2, 4), r"shape \(2, 4\)"),
        (torch.ones(2, 2, 3), r"\(2, 2, 5\)"),
        ([[1.0, 2.0, NAN], [0.0, 0.0, 0.0]], "1 NaN"),
    ],
)
def test_a_bad_batch_changes_nothing(X: Any, message: str) -> None:
    batch = warmed_batch(make_adapter("dense"))
    with unchanged(batch), pytest.raises(InputError, match=message):
        batch.predict(X)


@pytest.mark.parametrize(
    "mask, message",
    [
        ([True], r"shape \(1,\).*expected 2 booleans"),
        ([True, False, True], r"shape \(3,\).*expected 2 booleans"),
        ([[True, False]], r"shape \(1, 2\)"),
        (True, r"shape \(\)"),
        ([1, 0], "int64"),
        (torch.ones(2), "float32"),
        (["yes", "no"], "expected 2 booleans"),
        ([True, None], "expected 2 booleans"),
    ],
)
def test_a_bad_mask_changes_nothing(mask: Any, message: str) -> None:
    batch = warmed_batch(make_adapter("dense"))
    batch.predict(torch.ones(2, 3))
    with unchanged(batch), pytest.raises(InputError, match=message):
        batch.observe([0, 1], mask=mask)
    batch.observe([0, 1], mask=[True, False])


@pytest.mark.parametrize(
    "Y, message",
    [
        ([0], r"got 1 labels; expected 2"),
        ([0, 1, 2], r"got 3 labels; expected 2"),
        (torch.tensor([0, 1, 2]), r"got 3 labels; expected 2"),
        (torch.tensor([[0], [1]]), "expected 2"),
        (torch.tensor(1), "expected 2"),
        (3, "expected 2"),
        (None, "expected 2"),
    ],
)
def test_labels_of_another_number_change_nothing(Y: Any, message: str) -> None:
    batch = warmed_batch(make_adapter("dense"))
    batch.predict(torch.ones(2, 3))
    with unchanged(batch), pytest.raises(InputError, match=message):
        batch.observe(Y)
    batch.observe([0, 1])


# ---------------------------------------------------------------- model, labels, options


@pytest.mark.parametrize(
    "model, options, error, message",
    [
        (nn.ReLU(), {}, ModelError, r"ReLU has no nn.Linear.*head="),
        (Stateless(), {"head": "nowhere"}, ModelError, r"no module 'nowhere'.*\['body', 'head'\]"),
        (Stateless(), {"head": "dropout"}, ModelError, "head is a Dropout"),
        (Stateless(), {"head": nn.Linear(5, 4)}, ModelError, "not a part"),
        (Stateless(), {"labels": "abc"}, ModelError, r"got 3 labels for a head with 4 outputs"),
        (Stateless(), {"labels": "abca"}, ConfigError, r"label 'a' is listed twice"),
        (Stateless(), {"labels": [[1], [2], [3], [4]]}, LabelMemError, r"\[1\].*hash"),
        (Stateless(), {"combiner": -0.5}, ConfigError, r"combiner is -0.5.*\[0, 1\]"),
        (Stateless(), {"combiner": random_combiner(9)}, ModelError, r"length 9.*has 5"),
        ("model", {}, ModelError, r"the model is a str; it must be a torch nn.Module"),
    ],
)
def test_an_adapter_that_cannot_be(
    model: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Adapter(model, **options)


def test_a_head_that_takes_no_part_changes_nothing() -> None:
    stream = Adapter(Stateless(labels=5), head="head").stream()
    stream.method.backbone.model.forward = lambda x: x  # type: ignore[attr-defined]
    with unchanged(stream), pytest.raises(ModelError, match="took no part"):
        stream.predict(torch.ones(3))


@pytest.mark.parametrize(
    "options",
    [
        {"lam": -1.0},
        {"lam": NAN},
        {"delta": -0.1},
        {"delta": INF},
        {"margin": NAN},
        {"margin": -INF},
        {"decay": 0.0},
        {"decay": 1.1},
        {"cells_per_label": 0},
        {"cells_per_label": 1.5},
        {"cells_per_label": True},
        {"capacity": 0},
        {"capacity": -3},
        {"capacity": INF},
        {"evict": "newest"},
    ],
)
def test_options_of_the_memory_are_checked(options: dict[str, Any]) -> None:
    [(name, value)] = options.items()
    with pytest.raises(ConfigError, match=f"{name} is {value!r}"):
        MemoryConfig(**options)


def test_a_whole_number_as_a_float_is_refused_or_works() -> None:
    try:
        config = MemoryConfig(capacity=2.0, cells_per_label=2.0)  # type: ignore[arg-type]
    except ConfigError:
        return
    memory = LabeledMemory(2, config)
    for y in range(3):
        memory.write(torch.ones(1, 2), torch.tensor([y]))
    assert len(memory) == 2


@pytest.mark.parametrize(
    "h, y, options",
    [
        (torch.ones(1, 3), torch.tensor([0]), {}),
        (torch.ones(2, 2), torch.tensor([0]), {}),
        (torch.ones(2), torch.tensor([0]), {}),
        (torch.full((1, 2), NAN), torch.tensor([0]), {}),
        (torch.tensor([[INF, 0.0]]), torch.tensor([0]), {}),
        (torch.ones(1, 2), torch.tensor([-1]), {}),
        (torch.ones(1, 2), torch.tensor([0, 1]), {}),
        (torch.ones(1, 2), torch.tensor([0.5]), {}),
        (torch.ones(1, 2), torch.tensor([0]), {"P": torch.ones(2, 3)}),
        (torch.ones(1, 2), torch.tensor([0]), {"mask": torch.tensor([True, False])}),
        (torch.ones(1, 2), torch.tensor([0]), {"mask": torch.tensor([1])}),
    ],
)
def test_a_bad_write_leaves_the_memory_alone(h: Any, y: Any, options: dict[str, Any]) -> None:
    memory = LabeledMemory(2)
    memory.write(torch.tensor([[1.0, 2.0]]), torch.tensor([0]))
    before = {name: tensor.clone() for name, tensor in memory.tensors().items()}
    with pytest.raises(InputError):
        memory.write(h, y, **options)
    assert all(torch.equal(t, before[name]) for name, t in memory.tensors().items())


# ---------------------------------------------------------------- files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    warmed(make_adapter("dense")).save(tmp_path / "stream")
    return tmp_path / "stream"


def refuses(file: Path, error: type[Exception], message: str, adapter: Adapter) -> None:
    content = file.read_bytes()
    with pytest.raises(error, match=message):
        adapter.load_stream(file)
    assert file.read_bytes() == content


def test_a_truncated_or_altered_stream_is_corrupt(file: Path) -> None:
    whole = file.read_bytes()
    for content in (whole[:-1], whole[: len(whole) // 2], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(content)
        refuses(file, CorruptFileError, "truncated, altered", make_adapter("dense"))


def test_a_newer_stream_says_so(file: Path) -> None:
    with safe_open(file, "pt") as opened:
        document = json.loads(opened.metadata()["labelmem"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}
    save_file(tensors, file, {"labelmem": json.dumps(document | {"format": 99})})
    refuses(file, FormatVersionError, r"version 99.*update labelmem", make_adapter("dense"))


@pytest.mark.parametrize(
    "other, key",
    [
        (lambda: make_adapter("fixed"), "method|combiner"),
        (lambda: make_adapter("sparse"), "combiner"),
        (lambda: make_adapter("dense", labels="abcd"), "label"),
        (lambda: Adapter(Stateless(labels=5), combiner=random_combiner()), "labels"),
        (lambda: Adapter(Stateless(dim=6), combiner=random_combiner(6)), "dim"),
        (lambda: Adapter(Stateless(), combiner=random_combiner(hidden=5)), "combiner"),
        (lambda: make_adapter("dense", MemoryConfig(cells_per_label=1)), "cells_per_label"),
        (lambda: make_adapter("dense", MemoryConfig(cells_per_label=2, capacity=2)), "capacity"),
    ],
)
def test_a_stream_of_another_adapter_is_a_mismatch(file: Path, other: Any, key: str) -> None:
    refuses(file, MismatchError, rf"({key})", other())


def test_a_stream_of_another_precision_continues_or_is_a_mismatch(file: Path) -> None:
    adapter = Adapter(
        Stateless().double(),
        memory=MemoryConfig(cells_per_label=2, capacity=6),
        combiner=random_combiner().double(),
    )
    try:
        stream = adapter.load_stream(file)
    except MismatchError:
        return
    run(stream, *random_stream(2, 5, range(4)))


def test_a_stream_of_labels_given_by_name_or_number_is_the_same(tmp_path: Path) -> None:
    stream = Adapter(Bare()).stream()
    stream.predict([1.0, 0.0, 0.0])
    stream.observe(1)
    stream.save(tmp_path / "s")
    assert Adapter(Bare(), labels=[0, 1, 2]).load_stream(tmp_path / "s").labels == [0, 1, 2]


def test_a_file_of_another_kind_is_a_mismatch(file: Path, tmp_path: Path) -> None:
    adapter = make_adapter("dense")
    adapter.save(tmp_path / "adapter")
    refuses(tmp_path / "adapter", MismatchError, "expected a 'stream'", adapter)
    with pytest.raises(MismatchError, match="expected a 'adapter'"):
        adapter.load(file)
    with pytest.raises(StorageError, match="there is no file"):
        adapter.load_stream(tmp_path / "gone")


@pytest.mark.parametrize("missing", ["memory.v", "memory.used", "combiner.mu", "model.0"])
def test_a_sound_file_that_lacks_a_part_is_corrupt(missing: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    warmed(make_adapter("recurrent dense")).save(path)
    tensors, meta = load_state(path, "stream")
    del tensors[missing]
    save_state(path, "stream", tensors, meta)
    refuses(path, CorruptFileError, "lacks", make_adapter("recurrent dense"))


def test_a_failed_load_leaves_the_adapter_as_it_was(tmp_path: Path) -> None:
    Adapter(Stateless(labels=5), combiner=random_combiner()).save(tmp_path / "other")
    adapter = make_adapter("fixed")
    stream = warmed(adapter)
    before, memory = snapshot(stream), adapter.memory
    with pytest.raises(MismatchError, match="labels"):
        adapter.load(tmp_path / "other")
    assert (adapter.combiner, adapter.memory, adapter.name) == (0.4, memory, "lmn-fixed")
    assert snapshot(stream).keys() == before.keys()
    stream.predict(torch.ones(3))


def test_a_label_that_cannot_be_saved_keeps_the_old_file(tmp_path: Path) -> None:
    stream = warmed(make_adapter("fixed"))
    stream.save(tmp_path / "s")
    content = (tmp_path / "s").read_bytes()
    stream.predict(torch.ones(3))
    stream.observe(2 + 1j)
    with unchanged(stream), pytest.raises(StorageError, match="complex"):
        stream.save(tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == content
