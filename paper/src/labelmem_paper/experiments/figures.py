"""Figures of a test as a record keeps them."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from labelmem.metrics import MetricsResult, StreamMetrics
from labelmem.online import OnlineMethod
from labelmem_paper.experiments.records import Record

__all__ = ["blocks", "curve", "figures", "parameters"]


def figures(result: MetricsResult) -> Record:
    """Metrics with their intervals, and how much they rest on.

    A group without tokens, say new labels where there are none, has no figure.
    """
    metrics = {name: value for name, value in result.metrics.items() if not math.isnan(value)}
    return {
        "metrics": metrics,
        "interval": {name: _bounds(*result.interval[name]) for name in metrics},
        "streams": result.streams,
        "tokens": result.tokens,
    }


def blocks(metrics: StreamMetrics) -> Record:
    """Tokens and sums of the figures by blocks of streams, for comparing methods in pairs."""
    found = metrics.blocks()
    return {
        "tokens": [block.tokens for block in found],
        "log_perplexity": [round(block.loss, 3) for block in found],
        "mrr": [round(block.reciprocal_rank, 3) for block in found],
    }


def curve(metrics: StreamMetrics) -> list[Record]:
    """The loss by position."""
    return [
        {"start": b.start, "stop": b.stop, "tokens": b.tokens, "loss": b.log_perplexity}
        for b in metrics.by_position()
    ]


def parameters(method: OnlineMethod[Any], *more: nn.Module) -> int:
    """Trained numbers of the method, those of its model and of ``more`` modules included."""
    modules = [value for value in vars(method).values() if isinstance(value, nn.Module)]
    backbone = getattr(method, "backbone", None)
    if backbone is not None:
        modules.append(backbone.model)
    distinct = {id(p): p.numel() for module in (*modules, *more) for p in module.parameters()}
    return sum(distinct.values())


def _bounds(low: float, high: float) -> list[float] | None:
    """An interval as JSON can hold it; a single stream has none."""
    return None if math.isnan(low) or math.isnan(high) else [low, high]
