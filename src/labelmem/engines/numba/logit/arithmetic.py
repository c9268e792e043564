"""Arithmetic in 64 bits that runs on many lanes, and products of a few vectors with many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import part

__all__ = [
    "BLOCK",
    "SIX",
    "add_products",
    "exp64",
    "inner",
    "largest64",
    "products",
    "softmax64",
    "solve",
    "total64",
]

SIX = 6
"""Vectors that a row is multiplied with while it is at hand."""
BLOCK = np.uint64(32)
"""Rows of a triangle are taken from where a block begins: what is left over takes long. Places
without a sign are looked up without asking whether they count from the end."""


@part
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


@part
def inner(a: Any, b: Any) -> float:
    """The product of two vectors."""
    found = 0.0
    for i in range(len(a)):
        found += a[i] * b[i]
    return found


@part
def total64(x: Any) -> float:
    """The sum of a vector."""
    found = 0.0
    for i in range(len(x)):
        found += x[i]
    return found


@part
def largest64(x: Any) -> float:
    """The largest of a vector without NaN; minus infinity if it is empty."""
    bits, most = x.view(np.int64), np.int64(0x7FFFFFFFFFFFFFFF)
    found = np.int64(-0x7FF0000000000001)
    for i in range(len(x)):
        found = max(found, bits[i] ^ ((bits[i] >> np.int64(63)) & most))
    return np.int64(found ^ ((found >> np.int64(63)) & most)).view(np.float64)


@part
def softmax64(x: Any) -> None:
    """In place: two arrays that might be one would be gone through one number at a time."""
    top = largest64(x)
    for i in range(len(x)):
        x[i] = exp64(x[i] - top)
    inverse = 1.0 / total64(x)
    for i in range(len(x)):
        x[i] *= inverse


@part
def products(rows: Any, used: Any, x: Any, out: Any) -> None:
    """Into ``out`` (6 J, m) the products of ``x`` (6 J, d) with rows; some may be left out."""
    d, m = x.shape[1], out.shape[1]
    for j in range(0, len(x), SIX):
        x0, x1, x2, x3, x4, x5 = x[j], x[j + 1], x[j + 2], x[j + 3], x[j + 4], x[j + 5]
        for i in range(m):
            a, b, c, e, f, g = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if used[i] != 0:
                for k in range(d):
                    y = rows[i, k]
                    a += y * x0[k]
                    b += y * x1[k]
                    c += y * x2[k]
                    e += y * x3[k]
                    f += y * x4[k]
                    g += y * x5[k]
            out[j, i], out[j + 1, i], out[j + 2, i] = a, b, c
            out[j + 3, i], out[j + 4, i], out[j + 5, i] = e, f, g


@part
def add_products(rows: Any, kept: float, error: Any, x: Any) -> None:
    """Let rows (m, d) be what is kept of them and the products of error (6 J, m) and x (6 J, d)."""
    for j in range(0, len(x), SIX):
        x0, x1, x2, x3, x4, x5 = x[j], x[j + 1], x[j + 2], x[j + 3], x[j + 4], x[j + 5]
        for i in range(error.shape[1]):
            a, b, c = error[j, i], error[j + 1, i], error[j + 2, i]
            e, f, g = error[j + 3, i], error[j + 4, i], error[j + 5, i]
            for k in range(x.shape[1]):
                first = kept * rows[i, k] + a * x0[k] + b * x1[k] + c * x2[k]
                rows[i, k] = first + e * x3[k] + f * x4[k] + g * x5[k]
        kept = 1.0


@part
def solve(a: Any, b: Any, lower: Any, out: Any) -> None:
    """Into ``out`` the x with a x = b, for a small positive definite matrix (Cholesky)."""
    n = len(b)
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
