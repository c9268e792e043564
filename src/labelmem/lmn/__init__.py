"""The labeled memory network: a trained model, a memory and the combiner between them."""

from labelmem.lmn.method import LMN
from labelmem.lmn.state import LMNState, LMNStep, Recurrent

__all__ = ["LMN", "LMNState", "LMNStep", "Recurrent"]
