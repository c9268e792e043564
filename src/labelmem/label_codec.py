"""Labels as JSON and back, with their types kept."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from labelmem.errors import StorageError

__all__ = ["JSON", "decode_label", "encode_label"]

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
"""What a JSON document can hold."""

_NUMPY_SCALARS = (np.bool_, np.integer, np.floating, np.str_, np.bytes_)


def encode_label(label: Hashable) -> JSON:
    """Write a label as JSON such that ``decode_label`` gives back the same label of the same type.

    None, booleans, whole numbers and strings are themselves in JSON. Everything else becomes an
    object with one key, the name of its type: JSON alone cannot tell ``1.0`` from ``1`` in every
    reader, nor a tuple from a list, and knows neither bytes nor ``nan``.

    Parameters
    ----------
    label
        None, bool, int, float, str or bytes; or tuples and frozensets of these, at any depth.
        NumPy scalars are written as the Python value they stand for.

    Raises
    ------
    StorageError
        The label has another type. Subclasses count as another type, because they would come back
        as something else.

    Examples
    --------
    >>> encode_label(("cafe", 3))
    {'tuple': ['cafe', 3]}
    >>> encode_label(1.0), encode_label(1), encode_label(True)
    ({'float': '1.0'}, 1, True)
    >>> encode_label(2 + 1j)
    Traceback (most recent call last):
    labelmem.errors.StorageError: label (2+1j) of type complex cannot be saved; use None, ...
    """
    return _encode(label, label)


def decode_label(document: JSON) -> Hashable:
    """Read a label that ``encode_label`` wrote.

    Examples
    --------
    >>> decode_label({"tuple": ["cafe", {"float": "3.0"}]})
    ('cafe', 3.0)
    """
    if document is None or type(document) in (bool, int, str):
        return document
    if isinstance(document, Mapping) and len(document) == 1:
        [(kind, content)] = document.items()
        if kind in _DECODERS:
            try:
                return _DECODERS[kind](content)
            except (TypeError, ValueError, binascii.Error) as cause:
                raise _not_a_label(document) from cause
    raise _not_a_label(document)


def _encode(label: object, whole: object) -> JSON:
    """Encode one part of the label ``whole``, which the message names if it cannot be saved."""
    if isinstance(label, _NUMPY_SCALARS):
        label = label.item()
    if label is None or type(label) in (bool, int, str):
        return label  # type: ignore[return-value]  # mypy does not narrow on membership
    if type(label) is float:
        return {"float": repr(label)}
    if type(label) is bytes:
        return {"bytes": base64.b64encode(label).decode("ascii")}
    if type(label) is tuple:
        return {"tuple": [_encode(part, whole) for part in label]}
    if type(label) is frozenset:
        # A set has no order of its own; a fixed one makes equal states equal files.
        return {"frozenset": sorted((_encode(part, whole) for part in label), key=json.dumps)}
    raise _unsavable(label, whole)


def _unsavable(part: object, whole: object) -> StorageError:
    kind = type(part).__qualname__
    if part is whole:
        seen = f"label {whole!r} of type {kind}"
    else:
        seen = f"label {whole!r}, because of its part {part!r} of type {kind},"
    return StorageError(
        f"{seen} cannot be saved; use None, bool, int, float, str, bytes, or tuples and "
        "frozensets of them as labels, for example the object's name or number"
    )


def _not_a_label(document: object) -> StorageError:
    return StorageError(f"{document!r} is not a label written by encode_label")


def _parts(content: JSON) -> list[Hashable]:
    if not isinstance(content, list):
        raise TypeError("expected a list")
    return [decode_label(part) for part in content]


def _text(content: JSON) -> str:
    if not isinstance(content, str):
        raise TypeError("expected a string")
    return content


_DECODERS: dict[str, Callable[[JSON], Hashable]] = {
    "float": lambda content: float(_text(content)),
    "bytes": lambda content: base64.b64decode(_text(content), validate=True),
    "tuple": lambda content: tuple(_parts(content)),
    "frozenset": lambda content: frozenset(_parts(content)),
}
