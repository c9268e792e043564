"""Vectors of 32 bits by where their bytes lie.

A kernel that is given an address instead of an array spares the making of the array from a tensor,
which takes as long as reading a few dozen cells. Whoever gives it holds the tensor meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import inlined, numba

__all__ = ["vector_at"]


def _as_pointer() -> Any:
    """A function for kernels that takes a whole number for an address of 32-bit numbers."""
    if numba is None:  # then no kernel runs
        return None
    types = numba.types

    def made(_: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.inttoptr(given[0], context.get_value_type(signature.return_type))

        return types.CPointer(types.float32)(types.int64), code

    return numba.extending.intrinsic(made)


_pointer: Any = _as_pointer()
_carray: Any = getattr(numba, "carray", None)


@inlined
def vector_at(address: int, length: int) -> Any:
    """The vector (length,) that lies there, side by side."""
    return _carray(_pointer(address), (length,), np.float32)
