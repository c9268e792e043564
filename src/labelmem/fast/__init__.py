"""When the short way is taken: one stream, on the CPU, with no gradient asked for.

``functional.py`` and the combiners are the specification; they work for any number of streams on
any device. A single stream on a CPU spends most of its time on the overhead of small tensor
operations and on passes over labels that nothing has happened to. The modules ``fast.*`` say the
same in fewer passes, in numpy, which looks at the very bytes of the tensors. Where numba is
installed and numbers have 32 bits, the modules ``compiled.*`` say it in fewer calls still.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, overload
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["TINY", "Array", "addressable", "allowed", "alone", "answer", "array", "arrays"]
__all__ += [
    "bounded",
    "compiled",
    "once",
    "places",
    "plainly",
    "row",
    "softmax",
    "tensor",
    "uncompiled",
]
__all__ += ["visible", "whole_number"]

Array = NDArray[Any]
T = TypeVar("T")

_ON: ContextVar[bool] = ContextVar("labelmem_fast", default=True)
_COMPILED: ContextVar[bool] = ContextVar("labelmem_compiled", default=True)
_Tensors = dict[str, Any]
_SEEN: WeakKeyDictionary[nn.Module, tuple[list[tuple[_Tensors, str, int]], dict[str, Array]]]
_SEEN = WeakKeyDictionary()  # by module: where its tensors lay, and what numpy sees there
_places: Array = np.arange(1024)
_TYPES = (torch.float32, torch.float64)
_answers: dict[bool, list[Tensor]] = {False: [], True: []}
TINY = {np.dtype(kind): np.finfo(kind).tiny for kind in (np.float32, np.float64)}
"""The smallest ordinary number of each type."""


@contextmanager
def plainly() -> Iterator[None]:
    """Take no short way inside: everything runs as the specification has it.

    Examples
    --------
    >>> with plainly():
    ...     alone(torch.zeros(1, 2))
    False
    """
    before = _ON.set(False)
    try:
        yield
    finally:
        _ON.reset(before)


@contextmanager
def uncompiled() -> Iterator[None]:
    """Take no compiled kernel inside: one stream on a CPU takes the ways of numpy.

    Examples
    --------
    >>> with uncompiled():
    ...     compiled(narrow=True)
    False
    """
    before = _COMPILED.set(False)
    try:
        yield
    finally:
        _COMPILED.reset(before)


def compiled(narrow: bool) -> bool:
    """Whether what is :func:`alone` goes through compiled kernels; ``narrow`` if it has 32 bits."""
    return narrow and _COMPILED.get() and _has_numba()


@cache
def _has_numba() -> bool:
    """Whether numba is installed and fits this numpy; only now is it imported."""
    return find_spec("numba") is not None and import_module("labelmem.compiled").numba is not None


def allowed() -> bool:
    """Whether short ways are taken at all; not inside of :func:`plainly`."""
    return _ON.get()


def alone(h: Tensor) -> bool:
    """Whether ``h`` (n, d) is one stream's, on the CPU, and no gradient goes through it.

    Examples
    --------
    >>> alone(torch.zeros(1, 2)), alone(torch.zeros(2, 2))
    (True, False)
    """
    return _ON.get() and h.shape[0] == 1 and h.is_cpu and h.dtype in _TYPES and not h.requires_grad


def addressable(x: Tensor) -> bool:
    """Whether kernels may take the numbers of ``x`` from where they lie, just now.

    They are of 32 bits and side by side on the CPU, nothing is done to them when they are looked
    at, no gradient goes through them, and kernels that are known are not to be passed by.

    Examples
    --------
    >>> x = torch.zeros(2, 2)
    >>> addressable(x), addressable(x.T[:1]), addressable(x.double())
    (True, False, False)
    """
    return (
        type(x) is Tensor
        and x.dtype is torch.float32
        and x.is_cpu
        and not x.requires_grad
        and x.is_contiguous()
        and not x.is_neg()
        and _ON.get()
        and _COMPILED.get()
    )


def visible(*tensors: Tensor) -> bool:
    """Whether numpy can look at the bytes of all of these.

    It cannot inside of :func:`torch.func.vmap`, where a tensor stands for many, nor while a model
    is being compiled, where it stands for none yet.

    Examples
    --------
    >>> visible(torch.zeros(2))
    True
    >>> _ = torch.func.vmap(lambda x: print(visible(x)) or x)(torch.zeros(2))
    False
    """
    if torch.compiler.is_compiling():
        return False
    try:
        for x in tensors:
            x.data_ptr()
    except RuntimeError:
        return False
    return True


def array(x: Tensor) -> Array:
    """The same bytes, as numpy sees them."""
    seen: Array = x.numpy() if not x.requires_grad else x.detach().numpy()
    return seen


def bounded(x: Tensor) -> bool:
    """Whether the squares of all numbers have a finite sum; then none is NaN or infinite.

    Examples
    --------
    >>> bounded(torch.tensor([[1.0, -2.0]])), bounded(torch.tensor([[1.0, -torch.inf]]))
    (True, False)
    """
    flat = array(x).reshape(-1)
    return math.isfinite(flat.dot(flat))  # unlike a sum, it does not warn


def row(x: Tensor) -> Array:
    """One stream's row of ``x`` (1, …), its numbers side by side as kernels want them."""
    return np.ascontiguousarray(array(x)[0])


def tensor(x: Array) -> Tensor:
    """The same bytes as a tensor of one stream: the stream dimension is put in front."""
    return torch.from_numpy(x[None])


def whole_number(x: int, device: torch.device) -> Tensor:
    """(1,) one stream's token or label.

    Examples
    --------
    >>> whole_number(3, torch.device("cpu"))
    tensor([3])
    """
    if device.type == "cpu":  # several times as fast as a tensor that torch fills
        return torch.from_numpy(np.array([x]))
    return torch.full((1,), x, device=device)


def answer(yes: bool) -> Tensor:
    """(1,) whether, on the CPU: a tensor that nobody else has.

    Many are made at a time: one by one each takes as long as a write.

    Examples
    --------
    >>> answer(True), answer(False)
    (tensor([True]), tensor([False]))
    """
    if torch.is_inference_mode_enabled():  # of such tensors none must be left for others
        return torch.full((1,), yes, device="cpu")
    try:
        return _answers[yes].pop()
    except IndexError:
        made = list(torch.full((256, 1), yes, device="cpu").unbind())
        last = made.pop()
        _answers[yes] += made
        return last


def places(k: int) -> Array:
    """The positions 0 to k - 1; never to be changed, as all share them."""
    global _places
    if k > len(_places):
        _places = np.arange(max(k, 2 * len(_places)))
    return _places[:k]


class once(cached_property[T]):  # noqa: N801
    """A property that is found when it is first asked for, without a lock around that.

    What it is used for is the same whoever finds it, and the lock would take as long as the rest.
    """

    @overload
    def __get__(self, held: None, owner: type[Any] | None = None) -> once[T]: ...

    @overload
    def __get__(self, held: object, owner: type[Any] | None = None) -> T: ...

    def __get__(self, held: Any, owner: type[Any] | None = None) -> once[T] | T:
        if held is None:
            return self
        found = self.func(held)
        held.__dict__[self.attrname] = found
        return found


def softmax(x: Array) -> Array:
    """Over the first dimension; ``x`` is used up."""
    if len(x):
        x -= np.maximum.reduce(x, axis=0)
        np.exp(x, out=x)
        x /= np.add.reduce(x, axis=0)
    return x


def arrays(module: nn.Module) -> Mapping[str, Array]:
    """The weights and buffers of a module and of its parts, by name, as numpy sees them.

    They are looked at again where some moved to other bytes; training changes them in place.
    """
    known = _SEEN.get(module)
    if known is not None:
        for tensors, name, place in known[0]:
            if _place(tensors.get(name)) != place:
                break
        else:
            return known[1]
    places: list[tuple[_Tensors, str, int]] = []
    found: dict[str, Array] = {}
    for prefix, part in (("", module), *((f"{name}.", m) for name, m in module.named_children())):
        for tensors in (part._parameters, part._buffers):
            for name, x in tensors.items():
                places.append((tensors, name, _place(x)))
                if x is not None:
                    found[prefix + name] = array(x)
    _SEEN[module] = places, found
    return found


def _place(x: Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()
