"""Microseconds of kernels alone, for several ways to cut them into programs: gpu.py --forms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from labelmem.engines.triton import label as kernels_label
from labelmem.engines.triton import mix as kernels_mix
from labelmem.engines.triton import past as kernels_past

Row = dict[str, Any]
_TIMES = 20


def compared_forms(n: int, labels: int, dim: int, cells: int, device: torch.device) -> list[Row]:
    """Rows of each kernel, its fastest form first."""

    def drawn(*shape: int) -> torch.Tensor:
        return 0.3 * torch.randn(shape, device=device)

    mu, scores, hidden = drawn(n, labels + 1, 16), drawn(n, labels + 1), 16
    out, shared = torch.empty_like(mu), drawn(n, 3 * hidden)
    gates = (drawn(3 * hidden, hidden), drawn(3 * hidden), drawn(3 * hidden, 2))
    weights = (*gates, drawn(hidden), drawn())
    r, s, theta = (drawn(n, labels).abs() for _ in range(3))
    v, h = drawn(n, cells + 56, 4 * dim), drawn(n, 4 * dim)
    used = torch.full((n,), cells, device=device)
    kernels: list[tuple[str, Any, list[Row], Callable[[], Any]]] = [
        (
            "label step",
            kernels_label,
            [
                {"BLOCK": block, "TILES": tiles, "STAGES": stages, "num_warps": 1}
                for block, tiles, stages in (
                    (32, 13, 3), (32, 13, 4), (32, 13, 2), (32, 26, 3), (16, 26, 3), (16, 26, 4),
                    (16, 52, 3), (64, 7, 3),
                )
            ],
            lambda: kernels_label.label_step(mu, scores, scores, shared, weights, out),
        ),
        ("mix", kernels_mix, _rows(), lambda: kernels_mix.mixed(r, s, theta, False)),
        ("softmax", kernels_mix, _rows(), lambda: kernels_mix.believed_by_model(r, labels)),
        (
            "cosines",
            kernels_past,
            [
                {"TILE": tile, "num_warps": warps}
                for tile in (1024, 2048, 4096, 8192)
                for warps in (2, 4, 8)
            ],
            lambda: kernels_past.block_cosines(v, used, cells + 56, h, (dim,) * 4),
        ),
    ]  # fmt: skip
    found: list[Row] = []
    for name, module, forms, work in kernels:
        rows = ({"method": name, "us": us, **form} for form, us in _timed(module, forms, work))
        found += sorted(rows, key=lambda row: float(row["us"]))
    return found


def _rows() -> list[Row]:
    """Ways to go over long rows: held as they are, or a piece at a time."""
    held = [{"WHOLE": 16384, "BLOCK": 1024, "num_warps": warps} for warps in (4, 8, 16, 32)]
    cuts = ((512, 4), (1024, 4), (1024, 8), (2048, 4), (2048, 8), (2048, 16), (4096, 8), (4096, 16))
    return held + [{"WHOLE": 0, "BLOCK": block, "num_warps": warps} for block, warps in cuts]


def _timed(module: Any, forms: list[Row], work: Callable[[], Any]) -> Iterator[tuple[Row, float]]:
    """Microseconds of some work with each form in the place of the module's own."""
    usual = module._FORM
    try:
        for form in forms:
            module._FORM = form
            run, each = _many(work), []
            for _ in range(4):
                start = _now()
                run()
                each.append(1e6 * (_now() - start) / _TIMES)
            yield form, min(each[1:])
    finally:
        module._FORM = usual


def _many(work: Callable[[], Any]) -> Callable[[], None]:
    """The work done many times; on a GPU recorded, as starting a kernel may outlast it."""

    def plainly() -> None:
        for _ in range(_TIMES):
            work()

    if not torch.cuda.is_available():
        return plainly
    work()  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plainly()
    return graph.replay


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
