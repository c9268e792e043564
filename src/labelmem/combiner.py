"""The combiners: ``Combiner(kind=...)`` makes the one that is asked for."""

from __future__ import annotations

from labelmem.combining import Combiner, CombinerState, CombinerStep, View
from labelmem.label_combiner import LabelCombiner
from labelmem.stream_combiner import StreamCombiner

__all__ = [
    "Combiner",
    "CombinerState",
    "CombinerStep",
    "LabelCombiner",
    "StreamCombiner",
    "View",
]
