"""State on disk: one safetensors file, written whole or not at all, checked when it is read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_safetensors
from safetensors.torch import save as build_safetensors
from torch import Tensor

from labelmem._version import __version__
from labelmem.errors import CorruptFileError, FormatVersionError, MismatchError, StorageError
from labelmem.label_codec import JSON

__all__ = ["FORMAT_VERSION", "load_state", "save_state", "write_file"]

FORMAT_VERSION = 1
"""Version of the document in the header. Raise it when an older labelmem could misread a file."""

_KEY = "labelmem"  # the entry of the safetensors metadata that holds our document
_HEADER_LIMIT = 100_000_000  # readers of safetensors refuse a longer header

# What parsing a damaged header can raise; anything of it means that the file is not sound.
_PARSE_ERRORS = (
    *(SafetensorError, AttributeError, LookupError, OverflowError),
    *(RuntimeError, TypeError, ValueError, struct.error),
)


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file by new content such that every reader sees all of the old or all of the new.

    The data goes to a temporary file in the same folder, is forced to disk and then renamed over
    the target. If anything fails the old file stays and the temporary one is removed; only a killed
    process or a power cut can leave a ``.labelmem-*.tmp`` behind, which is safe to delete.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder, "note"), b"new")
    ...     Path(folder, "note").read_bytes()
    b'new'
    """
    target = Path(os.path.realpath(path))  # a symbolic link keeps pointing where it did
    temporary = target.with_name(f".labelmem-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(temporary, target)
    except OSError as cause:
        raise StorageError(
            f"cannot write {path}: {cause.strerror or cause}; "
            "its folder must exist, be writable and have room"
        ) from cause
    finally:
        with contextlib.suppress(OSError):  # gone already when all went well
            os.unlink(temporary)
    _sync_folder(target.parent)


def save_state(
    path: str | os.PathLike[str],
    kind: str,
    tensors: Mapping[str, Tensor],
    meta: Mapping[str, JSON],
) -> None:
    """Save named tensors and a JSON document in one file, atomically.

    The file is ordinary safetensors. Its header carries the format version, the kind, the document,
    the version of labelmem and a SHA-256 over all of these and over every tensor's name, type,
    shape and bytes. Equal states make equal files.

    Parameters
    ----------
    path
        Where to save; an existing file is replaced.
    kind
        What the file holds, for instance ``"stream"``; ``load_state`` must ask for the same.
    tensors
        Any shapes, layouts in memory and devices; they may share memory.
    meta
        What JSON can hold exactly: no tuples, no keys other than strings, no nan.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/s", "stream", {"alpha": torch.ones(2)}, {"dim": 3})
    ...     load_state(f"{folder}/s", "stream")
    ({'alpha': tensor([1., 1.])}, {'dim': 3})
    """
    meta = _plain_json(path, meta)
    document = {"format": FORMAT_VERSION, "kind": kind, "labelmem": __version__, "meta": meta}
    try:
        own = {name: _private_copy(tensor) for name, tensor in tensors.items()}
        document["sha256"] = _checksum(document, own)
        header = _canonical(document)
        _check_header(path, own, header)
        data = build_safetensors(own, {_KEY: header})
    except (SafetensorError, KeyError, RuntimeError, TypeError, ValueError) as cause:
        seen = {name: tensor.dtype for name, tensor in tensors.items()}
        raise StorageError(f"cannot save {path}: {cause}; the tensors are {seen}") from cause
    write_file(path, data)


def load_state(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what ``save_state`` wrote: the tensors (on the CPU, sorted by name) and the meta.

    Raises
    ------
    FormatVersionError
        A newer labelmem wrote the file. This is told before the content is looked at.
    CorruptFileError
        The file is truncated, altered or not a labelmem file.
    MismatchError
        The file is sound but of another kind.
    StorageError
        There is no such file or it cannot be read. All of the above are also StorageErrors.

    Examples
    --------
    >>> load_state("nowhere.labelmem", "stream")
    Traceback (most recent call last):
    labelmem.errors.StorageError: there is no file nowhere.labelmem; check the path or save first
    """
    data = _read(path)
    try:
        header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
        document = json.loads(header["__metadata__"][_KEY])
        version = document["format"]
        if type(version) is int and version > FORMAT_VERSION:
            raise FormatVersionError(
                f"{path} has format version {version}, this labelmem {__version__} reads up to "
                f"{FORMAT_VERSION}; update labelmem to read it"
            )
        tensors = parse_safetensors(data)
        claimed = document.pop("sha256")
        sound = version == FORMAT_VERSION and claimed == _checksum(document, tensors)
    except _PARSE_ERRORS as cause:
        raise _corrupt(path, f"it cannot be parsed ({cause})") from cause
    if not sound:
        raise _corrupt(path, "its checksum does not hold")
    if document["kind"] != kind:
        raise MismatchError(
            f"{path} holds a {document['kind']!r}, expected a {kind!r}; "
            f"load it as what it is or choose another file"
        )
    # Copies lie where torch would have put them. Matrix products round by how their operands are
    # aligned, and those in a file lie anywhere, so a loaded stream would not go on bit for bit.
    return {name: tensors[name].clone() for name in sorted(tensors)}, document["meta"]


def _private_copy(tensor: Tensor) -> Tensor:
    """Copy to the CPU: safetensors refuses tensors that share memory or are not contiguous."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _check_header(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], text: str) -> None:
    if "__metadata__" in tensors:
        raise StorageError(f"cannot save {path}: no tensor may be named '__metadata__'; rename it")
    if len(text) > _HEADER_LIMIT:
        raise StorageError(
            f"cannot save {path}: its meta takes {len(text)} bytes, more than the {_HEADER_LIMIT} "
            "a safetensors header may have; move what is large into tensors"
        )


def _checksum(document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Hash the document and all that makes up the tensors, which must be contiguous."""
    shapes = {name: [str(tensor.dtype), *tensor.shape] for name, tensor in tensors.items()}
    digest = hashlib.sha256(_canonical([document, shapes]).encode())
    for name in sorted(tensors):
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain_json(path: str | os.PathLike[str], meta: Mapping[str, JSON]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(_canonical(dict(meta)))
    except (RecursionError, TypeError, ValueError) as cause:
        raise StorageError(f"cannot save {path}: meta is not JSON ({cause})") from cause
    if plain != meta:
        raise StorageError(
            f"cannot save {path}: meta would not come back from JSON as it is; "
            "use lists for tuples and strings for keys"
        )
    return plain


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as cause:
        raise StorageError(f"there is no file {path}; check the path or save first") from cause
    except OSError as cause:
        raise StorageError(f"cannot read {path}: {cause.strerror or cause}") from cause


def _corrupt(path: str | os.PathLike[str], why: str) -> CorruptFileError:
    return CorruptFileError(
        f"{path} is not a sound labelmem file: {why}. It was truncated, altered or written by "
        "something else; use a backup or save it again"
    )


def _sync_folder(folder: Path) -> None:
    # The new file is complete and in place, so there is nothing left to undo: a system that cannot
    # force a folder to disk (Windows, some network drives) only loses the guarantee on power cuts.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
