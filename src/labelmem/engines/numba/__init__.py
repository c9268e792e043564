"""Numba, where it is installed, and the small functions that all kernels of one stream share.

These modules do each part of a step in one call instead of dozens, in 32 bits. They
are imported when the first stream takes a step, never before: see :func:`labelmem.fast.compiled`.
Without numba the modules can still be imported, but nothing in them is compiled.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

__all__ = ["copy", "dot", "exp", "fill", "inlined", "kernel"]
__all__ += ["kernel_of_rows", "largest", "log", "part", "softmax", "total"]

_log = logging.getLogger("labelmem")

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be taken in any order and products fused: that is what lets them run on many lanes. NaN
# and infinities keep their meaning.
_SUMS = {"reassoc", "contract", "nsz"}

try:
    numba: Any = import_module("numba")
    event: Any = import_module("numba.core.event")
except ImportError:  # not installed, or not made for this numpy
    numba = None


def kernel(function: F, **more: Any) -> F:
    """Compile a function when it is first called; the result is kept beside the package.

    Where no folder can be written to, it is compiled anew in each process.
    """
    return _compiled(function, more)


def part(function: F) -> F:
    """The same for what only kernels call: it takes less time without a way in from Python."""
    return _compiled(function, {"no_cpython_wrapper": True, "no_cfunc_wrapper": True})


def _compiled(function: F, more: dict[str, Any]) -> F:
    if numba is None:
        return function
    options: dict[str, Any] = {"fastmath": _SUMS, "error_model": "numpy", **more}
    # Or a kernel that calls another would take the one compiled by itself in the process that
    # compiles both, and its own copy in all that find it in a cache; these may round differently.
    options["forceinline"] = True
    try:
        made: F = numba.njit(cache=True, **options)(function)
        _guard(made._cache._cache_file)  # type: ignore[attr-defined]
    except (RuntimeError, AttributeError):  # no folder to keep it in, or another numba
        made = numba.njit(**options)(function)
    return made


def kernel_of_rows(function: F) -> F:
    """The same for a function over a range of streams: other threads may run beside it."""
    return kernel(function, nogil=True)


def _say_that_it_compiles() -> None:
    """Write one line when the first kernel is compiled; one that is found in a cache is not."""

    class Listener(event.Listener):  # type: ignore[misc]  # numba has no types
        told = False

        def on_start(self, begun: Any) -> None:
            function = begun.data["dispatcher"].py_func
            if not self.told and function.__module__.startswith(__name__):
                self.told = True
                _log.warning("compiling kernels for this machine, once: this takes some seconds")

        def on_end(self, ended: Any) -> None:
            """Nothing to say."""

    event.register("numba:compile", Listener())


def _guard(cache: Any) -> None:
    """Let a kernel's cache notice what numba would not.

    Numba compiles again if the function's own file changes. But kernels call each other across
    files, and an old one that calls a new one would read the wrong bytes. And a file that a full
    disk cut short must not be an error in every process that comes after.
    """
    cache._source_stamp = _stamp()
    for name, nothing in (("_load_index", dict), ("load", lambda: None)):
        setattr(cache, name, _or_nothing(getattr(cache, name), nothing))


def _or_nothing(read: Callable[..., Any], nothing: Callable[[], Any]) -> Callable[..., Any]:
    """The same where a file that cannot be read counts as none."""

    def tried(*arguments: Any) -> Any:
        try:
            return read(*arguments)
        except Exception:  # whatever the bytes there make of unpickling
            return nothing()

    return tried


def inlined(function: F) -> F:
    """Make a function a part of each kernel that calls it: it is not compiled by itself."""
    if numba is None:
        return function
    made: F = numba.njit(fastmath=_SUMS, error_model="numpy", inline="always")(function)
    return made


@cache
def _stamp() -> str:
    """A fingerprint of all kernels, here and below, and of the files they take constants from."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*here.rglob("*.py"), *here.parents[1].glob("logit_memory/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


if numba is not None:
    _say_that_it_compiles()


@kernel
def exp(x: np.float32) -> np.float32:
    """The exponential of x up to 88, within two units of the last place; 0 below -87.

    Made of plain operations, so that a loop over it runs on many lanes.
    """
    inside = max(x, np.float32(-87.0))
    whole = np.floor(inside * np.float32(1.44269504) + np.float32(0.5))
    # log 2 in two parts: the first has few digits, so that its multiples are exact.
    rest = (inside - whole * np.float32(0.693359375)) + whole * np.float32(2.12194440e-4)
    p = np.float32(1.9875691e-4)
    p = p * rest + np.float32(1.3981999e-3)
    p = p * rest + np.float32(8.3334519e-3)
    p = p * rest + np.float32(4.1665795e-2)
    p = p * rest + np.float32(1.6666665e-1)
    p = p * rest + np.float32(5.0000001e-1)
    p = (p * rest * rest + rest) + np.float32(1.0)
    power = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return p * power if x >= np.float32(-87.0) else np.float32(0.0)


@inlined
def log(x: np.float32) -> np.float32:
    """The logarithm of an ordinary number above zero, within two units of the last place."""
    bits = np.float32(x).view(np.int32)
    # x is m 2^e with m in [sqrt(1/2), sqrt(2)).
    e = (bits - np.int32(0x3F3504F3)) >> np.int32(23)
    m = np.int32(bits - (e << np.int32(23))).view(np.float32) - np.float32(1.0)
    power = np.float32(e)
    square = m * m
    p = np.float32(7.0376836e-2)
    p = p * m + np.float32(-1.1514610e-1)
    p = p * m + np.float32(1.1676998e-1)
    p = p * m + np.float32(-1.2420140e-1)
    p = p * m + np.float32(1.4249322e-1)
    p = p * m + np.float32(-1.6668057e-1)
    p = p * m + np.float32(2.0000714e-1)
    p = p * m + np.float32(-2.4999993e-1)
    p = p * m + np.float32(3.3333331e-1)
    small = p * m * square - power * np.float32(2.12194440e-4) - np.float32(0.5) * square
    return (m + small) + power * np.float32(0.693359375)


@inlined
def dot(a: Any, b: Any) -> np.float32:
    """The product of two vectors."""
    found = np.float32(0.0)
    for i in range(len(a)):
        found += a[i] * b[i]
    return found


@inlined
def fill(x: Any, value: np.float32) -> None:
    """Let all of ``x`` be ``value``: a loop compiles in less time than an assignment to a slice."""
    for i in range(len(x)):
        x[i] = value


@inlined
def copy(x: Any, out: Any) -> None:
    """Copy a vector to the beginning of another."""
    for i in range(len(x)):
        out[i] = x[i]


@inlined
def total(x: Any) -> np.float32:
    """The sum of a vector."""
    found = np.float32(0.0)
    for i in range(len(x)):
        found += x[i]
    return found


@kernel
def largest(x: Any) -> np.float32:
    """The largest of a vector without NaN; minus infinity if it is empty."""
    # As whole numbers, in the same order: only of these is a maximum taken on many lanes.
    bits, most = x.view(np.int32), np.int32(0x7FFFFFFF)
    found = np.int32(-0x7F800001)
    for i in range(len(x)):
        found = max(found, bits[i] ^ ((bits[i] >> np.int32(31)) & most))
    return np.int32(found ^ ((found >> np.int32(31)) & most)).view(np.float32)


@kernel
def softmax(x: Any, out: Any) -> tuple[np.float32, np.float32]:
    """Into ``out``, which may be ``x`` itself; the largest of x, and the log of the sum beyond."""
    top = largest(x)
    # The sum has a loop of its own. One that stores and sums runs on many lanes only if the two
    # arrays lie far enough apart in memory, so that its rounding would depend on where they lie.
    for i in range(len(x)):
        out[i] = exp(x[i] - top)
    inverse = np.float32(1.0) / total(out)
    for i in range(len(x)):
        out[i] *= inverse
    return top, -np.float32(math.log(inverse))
