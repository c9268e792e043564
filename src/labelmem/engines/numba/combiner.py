"""What the kernels of the combiners are given: weights and reads, as arrays by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor, nn

from labelmem.engines.numba.cells import CompiledRead
from labelmem.engines.numba.grouped import GroupedRead
from labelmem.engines.numba.label import LabelWeights
from labelmem.engines.numba.stream import Cells, Weights
from labelmem.fast import Array, array
from labelmem.reading import FADES

__all__ = ["cells_of", "label_weights", "weights_of"]

_NONE = {1: np.empty(0, np.float32), 2: np.empty((0, 0), np.float32)}
_SCORER = {"score_plain": 1, "score_inner": 2, "score_stream": 2, "score_bias": 1}
_SCORER |= {"score_middle": 2, "score_outer": 1, "score_moved": 2}
_GRU = {"from_input": "weight_ih_l0", "from_mu": "weight_hh_l0"}
_GRU |= {"bias_input": "bias_ih_l0", "bias_mu": "bias_hh_l0"}

_Parts = Sequence[Mapping[str, Tensor]]
_FADED = np.zeros(len(FADES), np.float32)
_known: WeakKeyDictionary[nn.Module, tuple[list[int], Any]] = WeakKeyDictionary()


def weights_of(combiner: Any) -> Weights:
    """The weights of a stream combiner."""
    parts = (combiner._parameters, combiner.gru._parameters, combiner._buffers)
    return _kept(combiner, parts, _stream_weights)  # type: ignore[no-any-return]


def label_weights(combiner: Any) -> LabelWeights:
    """The weights of a label combiner."""
    return _kept(combiner, (combiner._parameters,), _label_weights)  # type: ignore[no-any-return]


def _kept(combiner: nn.Module, parts: _Parts, made: Callable[[dict[str, Array]], Any]) -> Any:
    """Weights as kernels take them, looked at again where they moved to other bytes."""
    pointers = [x.data_ptr() for part in parts for x in part.values()]
    known = _known.get(combiner)
    if known is None or known[0] != pointers:
        named = {name: array(x) for part in parts for name, x in part.items()}
        named["bias_theta"] = named["bias_theta"].reshape(1)
        known = _known[combiner] = (pointers, made(named))
    return known[1]


def _stream_weights(named: dict[str, Array]) -> Weights:
    named |= {name: named[there] for name, there in _GRU.items()}
    missing = {name: _NONE[n] for name, n in _SCORER.items() if name not in named}
    return Weights(**{name: (named | missing)[name] for name in Weights._fields})


def _label_weights(named: dict[str, Array]) -> LabelWeights:
    return LabelWeights(**named)


def cells_of(read: CompiledRead | GroupedRead) -> tuple[Cells, int, Array]:
    """What the read saw of each label, its time, and how the rates of writes fade."""
    if isinstance(read, GroupedRead):
        return _labels_of(read), read.moment.time, _FADED
    told, moment = read.told, read.moment
    cells = Cells(
        told("label"),
        read.scores_of_cells,
        told("alpha"),
        told("written"),
        told("born"),
        told("writes"),
        told("rates"),
        told("size"),
        read.parts,
    )
    return cells, moment.time, moment.cells.log_fades


def _labels_of(read: GroupedRead) -> Cells:
    """The same of labels that may own several cells; their rates are those of now."""
    past, lead, time = read.past, read.lead, read.moment.time
    assert past is not None
    writes, age, first, rates, cosine, size = (
        array(x)[0, lead]
        for x in (past.writes, past.age, past.since_first, past.rates, past.cosine, past.size)
    )
    own = (read.told("label"), read.scores_of_cells, read.of_labels[0, read.by_position])
    return Cells(*own, time + 1 - age, time + 1 - first, writes, rates, size, cosine)
