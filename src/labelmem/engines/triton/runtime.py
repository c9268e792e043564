"""Triton, where it is installed.

Elsewhere a stand-in, so that the modules of kernels can be imported and looked at; nothing calls a
kernel there (:func:`labelmem.engines.triton.fused`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

__all__ = ["INTERPRETED", "tl", "triton"]

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether kernels run in Triton's interpreter, which is for tests and knows no device code."""


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


triton: Any = SimpleNamespace(jit=_as_it_is)
tl: Any = SimpleNamespace()
if find_spec("triton") is not None:
    triton, tl = import_module("triton"), import_module("triton.language")
