"""Arithmetic in 64 bits that runs on many lanes, and products of a few vectors with many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import kernel

__all__ = ["exp64", "inner", "largest64", "products", "softmax64", "solve", "total64"]


@kernel
def exp64(x: float) -> float:
    """The exponential of x up to 700, within 1e-13 of it; 0 below -700."""
    inside = max(x, -700.0)
    whole = np.floor(inside * 1.4426950408889634 + 0.5)
    rest = inside - whole * 0.6931471805599453
    p = 2.505210838544172e-8
    p = p * rest + 2.755731922398589e-7
    p = p * rest + 2.7557319223985893e-6
    p = p * rest + 2.48015873015873e-5
    p = p * rest + 1.984126984126984e-4
    p = p * rest + 1.388888888888889e-3
    p = p * rest + 8.333333333333333e-3
    p = p * rest + 4.1666666666666664e-2
    p = p * rest + 0.16666666666666666
    p = p * rest + 0.5
    p = p * rest + 1.0
    p = p * rest + 1.0
    power = np.int64((np.int64(np.int32(whole)) + 1023) << 52).view(np.float64)
    return p * power if x >= -700.0 else 0.0


@kernel
def inner(a: Any, b: Any) -> float:
    """The product of two vectors."""
    found = 0.0
    for i in range(len(a)):
        found += a[i] * b[i]
    return found


@kernel
def total64(x: Any) -> float:
    """The sum of a vector."""
    found = 0.0
    for i in range(len(x)):
        found += x[i]
    return found


@kernel
def largest64(x: Any) -> float:
    """The largest of a vector without NaN; minus infinity if it is empty."""
    bits, most = x.view(np.int64), np.int64(0x7FFFFFFFFFFFFFFF)
    found = np.int64(-0x7FF0000000000001)
    for i in range(len(x)):
        found = max(found, bits[i] ^ ((bits[i] >> np.int64(63)) & most))
    return np.int64(found ^ ((found >> np.int64(63)) & most)).view(np.float64)


@kernel
def softmax64(x: Any, out: Any) -> None:
    """Into ``out``, which may be ``x`` itself."""
    top = largest64(x)
    for i in range(len(x)):
        out[i] = exp64(x[i] - top)
    inverse = 1.0 / total64(out)
    for i in range(len(x)):
        out[i] *= inverse


@kernel
def products(rows: Any, used: int, x: Any, out: Any) -> None:
    """Into ``out`` (J, used) the products of ``x`` (J, d) with the first rows, three at a time."""
    few, d = len(x) - len(x) % 3, x.shape[1]
    for i in range(used):
        row = rows[i]
        for j in range(0, few, 3):
            x0, x1, x2 = x[j], x[j + 1], x[j + 2]
            a, b, c = 0.0, 0.0, 0.0
            for k in range(d):
                a += row[k] * x0[k]
                b += row[k] * x1[k]
                c += row[k] * x2[k]
            out[j, i], out[j + 1, i], out[j + 2, i] = a, b, c
        for j in range(few, len(x)):
            out[j, i] = inner(row, x[j])


@kernel
def solve(a: Any, b: Any, out: Any) -> None:
    """Into ``out`` the x with a x = b, for a small positive definite matrix (Cholesky)."""
    n = len(b)
    lower = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            found = a[i, j]
            for k in range(j):
                found -= lower[i, k] * lower[j, k]
            lower[i, j] = math.sqrt(found) if i == j else found / lower[j, j]
    for i in range(n):
        found = b[i]
        for k in range(i):
            found -= lower[i, k] * out[k]
        out[i] = found / lower[i, i]
    for back in range(n):
        i = n - 1 - back
        found = out[i]
        for k in range(i + 1, n):
            found -= lower[k, i] * out[k]
        out[i] = found / lower[i, i]
