"""Arrays by where their bytes lie.

A kernel that is given an address instead of an array spares the making of the array from a tensor,
which takes as long as reading a few dozen cells. Whoever gives it holds the tensor meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import inlined, numba

__all__ = ["pointer_to", "vector_at"]


def _as_pointer() -> Any:
    """A function for kernels that takes a whole number for an address of numbers of any kind."""
    if numba is None:  # then no kernel runs
        return None
    types = numba.types

    def made(_: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.inttoptr(given[0], context.get_value_type(signature.return_type))

        return types.voidptr(types.int64), code

    return numba.extending.intrinsic(made)


pointer_to: Any = _as_pointer()
_carray: Any = getattr(numba, "carray", None)


@inlined
def vector_at(address: int, length: int) -> Any:
    """The vector (length,) that lies there, side by side."""
    return _carray(pointer_to(address), (length,), np.float32)
