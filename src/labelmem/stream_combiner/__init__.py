"""A combiner with one recurrent state per stream, and a correction per label in memory."""

from labelmem.stream_combiner.combiner import StreamCombiner
from labelmem.stream_combiner.state import RATES_32, StreamState

__all__ = ["RATES_32", "StreamCombiner", "StreamState"]
