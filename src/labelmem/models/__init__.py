"""Classifiers to adapt: some for label sequences, feed-forward ones for inputs.

Any model of your own works as well; these are what the experiments and examples use.
"""

from labelmem.models.feed_forward import MLP, ConvNet
from labelmem.models.fit_options import FitOptions, FitResult
from labelmem.models.history import HistoryModel
from labelmem.models.recurrent import GRUModel, LSTMModel, RecurrentModel, SequenceModel, State
from labelmem.models.training import fit_classifier, fit_sequences

__all__ = [
    "MLP",
    "ConvNet",
    "FitOptions",
    "FitResult",
    "GRUModel",
    "HistoryModel",
    "LSTMModel",
    "RecurrentModel",
    "SequenceModel",
    "State",
    "fit_classifier",
    "fit_sequences",
]
