"""The paper's combiner: a recurrent state for every label (Eq. 4)."""

from labelmem.label_combiner.combiner import LabelCombiner
from labelmem.label_combiner.state import LabelState

__all__ = ["LabelCombiner", "LabelState"]
