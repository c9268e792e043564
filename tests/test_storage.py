from __future__ import annotations

import json
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from labelmem import storage
from labelmem.errors import CorruptFileError, FormatVersionError, MismatchError, StorageError
from labelmem.storage import FORMAT_VERSION, load_state, save_state, write_file

META: dict[str, Any] = {"dim": 3, "name": "é \ud800", "none": None, "nested": {"x": [1, 1.5, True]}}


def example() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    floats = torch.randn(4, 6, generator=generator)
    return {
        "float32": floats,
        "transposed": floats.T,
        "strided": floats[:, ::2],
        "same again": floats,
        "expanded": torch.ones(1, 3).expand(5, 3),
        "float64": floats.double() / 3,
        "bfloat16": floats.bfloat16(),
        "float16": floats.half(),
        "bool": floats > 0,
        "int64": torch.tensor([-(2**63), 2**63 - 1, 0]),
        "uint8": torch.arange(7, dtype=torch.uint8),
        "scalar": torch.tensor(1.5),
        "empty": torch.zeros(0),
        "empty rows": torch.zeros(0, 3, dtype=torch.int64),
        "empty columns": torch.zeros(3, 0, dtype=torch.bool),
        "odd numbers": torch.tensor([float("nan"), float("inf"), -0.0, 1e-45]),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }


def assert_same_bits(seen: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert list(seen) == sorted(expected)
    for name, tensor in expected.items():
        assert seen[name].dtype == tensor.dtype and seen[name].shape == tensor.shape, name
        both = [x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (seen[name], tensor)]
        assert torch.equal(*both), name


def rewrite_document(path: Path, **changes: Any) -> None:
    """Alter the header of a saved file as another program would, leaving the tensors alone."""
    with safe_open(path, "pt") as file:
        document = json.loads(file.metadata()["labelmem"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    save_file(tensors, path, {"labelmem": json.dumps(document | changes)})


def test_round_trip_is_exact_to_the_bit(tmp_path: Path) -> None:
    save_state(tmp_path / "s", "stream", example(), META)
    tensors, meta = load_state(tmp_path / "s", "stream")
    assert_same_bits(tensors, example())
    assert meta == META and meta["nested"]["x"][2] is True
    assert not any(tensor.requires_grad for tensor in tensors.values())


def test_loaded_tensors_are_writable_and_independent(tmp_path: Path) -> None:
    save_state(tmp_path / "s", "stream", {"a": torch.zeros(3), "b": torch.zeros(3)}, {})
    first, _ = load_state(str(tmp_path / "s"), "stream")
    first["a"].add_(1)
    assert first["b"].sum() == 0
    assert load_state(tmp_path / "s", "stream")[0]["a"].sum() == 0


def test_no_tensors_and_a_read_only_meta(tmp_path: Path) -> None:
    save_state(tmp_path / "s", "stream", {}, MappingProxyType({"a": 1}))
    assert load_state(tmp_path / "s", "stream") == ({}, {"a": 1})


def test_equal_states_make_equal_files(tmp_path: Path) -> None:
    save_state(tmp_path / "a", "stream", example(), META)
    save_state(
        tmp_path / "b",
        "stream",
        dict(reversed(example().items())),
        dict(reversed(META.items())),
    )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_file_is_ordinary_safetensors(tmp_path: Path) -> None:
    save_state(tmp_path / "s", "stream", {"alpha": torch.ones(2)}, {"dim": 3})
    with safe_open(tmp_path / "s", "pt") as file:
        document = json.loads(file.metadata()["labelmem"])
        assert file.get_tensor("alpha").tolist() == [1, 1]
    assert document["format"] == FORMAT_VERSION == 1
    assert (document["kind"], document["meta"]) == ("stream", {"dim": 3})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_tensors_are_saved_from_the_cpu(tmp_path: Path) -> None:
    save_state(tmp_path / "s", "stream", {n: t.cuda() for n, t in example().items()}, {})
    assert_same_bits(load_state(tmp_path / "s", "stream")[0], example())


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"there is no file .*gone") as caught:
        load_state(tmp_path / "gone", "stream")
    assert not isinstance(caught.value, CorruptFileError)
    with pytest.raises(StorageError, match="cannot read"):
        load_state(tmp_path, "stream")


def test_another_kind_is_a_mismatch(tmp_path: Path) -> None:
    save_state(tmp_path / "s", "adapter", {}, {})
    with pytest.raises(MismatchError, match=r"s holds a 'adapter', expected a 'stream'"):
        load_state(tmp_path / "s", "stream")


def test_a_newer_file_says_newer_whatever_else_it_holds(tmp_path: Path) -> None:
    save_state(tmp_path / "s", "stream", {"a": torch.ones(2)}, {})
    rewrite_document(tmp_path / "s", format=FORMAT_VERSION + 1, sha256="other", kind=["new"])
    with pytest.raises(FormatVersionError, match=r"s has format version 2.*reads up to 1"):
        load_state(tmp_path / "s", "stream")


@pytest.mark.parametrize(
    "change",
    [
        {"format": 0},
        {"format": True},
        {"format": "1"},
        {"kind": "adapter"},
        {"meta": {"dim": 4}},
        {"labelmem": "99"},
        {"sha256": "0" * 64},
        {"extra": 1},
    ],
    ids=str,
)
def test_an_altered_document_is_corrupt(tmp_path: Path, change: dict[str, Any]) -> None:
    save_state(tmp_path / "s", "stream", {"a": torch.ones(2)}, {"dim": 3})
    rewrite_document(tmp_path / "s")
    load_state(tmp_path / "s", "stream")
    rewrite_document(tmp_path / "s", **change)
    with pytest.raises(CorruptFileError, match="s is not a sound labelmem file"):
        load_state(tmp_path / "s", "stream")


@pytest.mark.parametrize(
    "tensors",
    [
        {"a": torch.tensor([1.0, 3.0])},
        {"b": torch.tensor([1.0, 2.0])},
        {"a": torch.tensor([[1.0, 2.0]])},
        {"a": torch.tensor([1.0, 2.0]).view(torch.int32)},
        {"a": torch.tensor([1.0, 2.0]), "b": torch.zeros(0)},
        {},
    ],
    ids=str,
)
def test_other_tensors_under_the_same_document_are_corrupt(
    tmp_path: Path, tensors: dict[str, Tensor]
) -> None:
    save_state(tmp_path / "s", "stream", {"a": torch.tensor([1.0, 2.0])}, {})
    with safe_open(tmp_path / "s", "pt") as file:
        metadata = file.metadata()
    save_file(tensors, tmp_path / "s", metadata)
    with pytest.raises(CorruptFileError, match="checksum"):
        load_state(tmp_path / "s", "stream")


def test_every_truncation_is_corrupt(tmp_path: Path) -> None:
    save_state(tmp_path / "s", "stream", {"a": torch.ones(5)}, {})
    whole = (tmp_path / "s").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "s").write_bytes(whole[:length])
        with pytest.raises(CorruptFileError):
            load_state(tmp_path / "s", "stream")
    (tmp_path / "s").write_bytes(whole + b"\0")
    with pytest.raises(CorruptFileError):
        load_state(tmp_path / "s", "stream")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" * 30, os.urandom(300)], ids=len)
def test_something_else_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(CorruptFileError, match="s is not a sound labelmem file"):
        load_state(tmp_path / "s", "stream")


def test_foreign_safetensors_are_corrupt(tmp_path: Path) -> None:
    for metadata in (None, {"other": "x"}, {"labelmem": "[1]"}, {"labelmem": "?"}):
        save_file({"a": torch.ones(2)}, tmp_path / "s", metadata)
        with pytest.raises(CorruptFileError):
            load_state(tmp_path / "s", "stream")


def test_no_single_altered_byte_goes_unnoticed(tmp_path: Path) -> None:
    tensors = {"v": torch.arange(40.0), "used": torch.tensor([True, False, True])}
    save_state(tmp_path / "s", "stream", tensors, META)
    whole = (tmp_path / "s").read_bytes()
    rng = random.Random(0)
    for _ in range(150):
        position, change = rng.randrange(len(whole)), rng.randrange(1, 256)
        altered = bytearray(whole)
        altered[position] ^= change
        (tmp_path / "s").write_bytes(altered)
        try:
            seen, meta = load_state(tmp_path / "s", "stream")
        except (CorruptFileError, FormatVersionError):
            continue
        # One blank for another in the padding of the header means nothing to any reader.
        assert whole[position] == ord(" ") and altered[position] in b"\t\r\n"
        assert meta == META
        assert_same_bits(seen, tensors)


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"a": float("nan")}, "meta is not JSON"),
        ({"a": {1, 2}}, "meta is not JSON"),
        ({"a": torch.ones(1)}, "meta is not JSON"),
        ({"a": (1, 2)}, "lists for tuples"),
        ({"a": {1: 2}}, "strings for keys"),
    ],
    ids=str,
)
def test_meta_that_json_would_change_is_refused(
    tmp_path: Path, meta: dict[str, Any], message: str
) -> None:
    write_file(tmp_path / "s", b"old")
    with pytest.raises(StorageError, match=message):
        save_state(tmp_path / "s", "stream", {}, meta)
    assert (tmp_path / "s").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("__metadata__", torch.ones(2)),
        ("\ud800", torch.ones(2)),
        ("a", torch.ones(2, dtype=torch.complex128)),
        ("a", torch.ones(2, 2).to_sparse()),
        ("a", torch.ones(2, device="meta")),
    ],
    ids=["reserved name", "surrogate", "complex128", "sparse", "meta device"],
)
def test_tensors_that_cannot_be_saved_are_refused(
    tmp_path: Path, name: str, tensor: Tensor
) -> None:
    with pytest.raises(StorageError, match="cannot save"):
        save_state(tmp_path / "s", "stream", {name: tensor}, {})
    assert not list(tmp_path.iterdir())


def test_a_header_no_reader_would_accept_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_HEADER_LIMIT", 1000)
    with pytest.raises(StorageError, match="move what is large into tensors"):
        save_state(tmp_path / "s", "stream", {}, {"text": "x" * 1000})
    assert not list(tmp_path.iterdir())


def test_write_file_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    for content in (b"first", b"", b"x" * 100_000):
        write_file(tmp_path / "f", content)
        assert (tmp_path / "f").read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException
) -> None:
    write_file(tmp_path / "f", b"old")

    def fail(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(os, step, fail)
    wrapped = StorageError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(wrapped, match=r"f: No space left|^$"):
        write_file(tmp_path / "f", b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_missing_folder_or_a_folder_as_target_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="folder must exist"):
        write_file(tmp_path / "no" / "f", b"x")
    (tmp_path / "d").mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        write_file(tmp_path / "d", b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["d"]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions and links")
def test_permissions_and_links_survive(tmp_path: Path) -> None:
    write_file(tmp_path / "f", b"old")
    os.chmod(tmp_path / "f", 0o640)
    (tmp_path / "link").symlink_to("f")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "f").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


WRITER = textwrap.dedent(
    """
    import os, sys, torch
    from labelmem.storage import save_state

    torch.set_num_threads(1)
    path = sys.argv[1]
    for _ in sys.stdin:  # importing once and forking many writers keeps the test short
        pid = os.fork()
        while pid == 0:
            for version, size in enumerate((10, 40_000, 3, 9_000)):
                save_state(path, "stream", {"v": torch.full((size,), version)}, {"size": size})
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("dead", flush=True)
    """
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_killed_writer_leaves_a_whole_version(tmp_path: Path) -> None:
    path = tmp_path / "s"
    save_state(path, "stream", {"v": torch.full((10,), 0)}, {"size": 10})
    sizes, rng, seen = (10, 40_000, 3, 9_000), random.Random(0), set()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as helper:
        assert helper.stdin and helper.stdout
        for _ in range(20):
            helper.stdin.write("go\n")
            helper.stdin.flush()
            writer = int(helper.stdout.readline())
            time.sleep(rng.uniform(0.005, 0.06))
            os.kill(writer, signal.SIGKILL)
            assert helper.stdout.readline() == "dead\n"
            tensors, meta = load_state(path, "stream")
            version = sizes.index(meta["size"])
            assert torch.equal(tensors["v"], torch.full((sizes[version],), version))
            seen.add(version)
    assert len(seen) > 1, "the writer never got to write"


def test_the_version_is_read_from_the_header_alone(tmp_path: Path) -> None:
    text = json.dumps({"__metadata__": {"labelmem": json.dumps({"format": 7})}}).encode()
    (tmp_path / "s").write_bytes(struct.pack("<Q", len(text)) + text + b"tensors of the future")
    with pytest.raises(FormatVersionError, match="7"):
        load_state(tmp_path / "s", "stream")
