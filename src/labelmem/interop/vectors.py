"""Short vectors of numpy: what all classifiers here do with them, in as few calls as possible.

On vectors this short a call costs far more than what it computes. The method ``dot`` is much
quicker than the operator ``@``, and than a sum, which is a product with ones; slow are reductions
along an axis, operands of different shapes and Python's numbers as operands.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "length", "softmax"]

Array = npt.NDArray[np.float64]


def length(h: Array) -> float:
    """Length of one vector; one for a zero vector, so that its cosines are zero.

    Examples
    --------
    >>> length(np.array([3.0, 4.0])), length(np.zeros(2))
    (5.0, 1.0)
    """
    return math.sqrt(h.dot(h)) or 1.0


def softmax(x: Array) -> Array:
    """Of one vector. Python finds the largest and the sum of a few numbers faster than numpy.

    Examples
    --------
    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    e: Array = np.exp(x - max(x.tolist()))
    e /= sum(e.tolist())
    return e
