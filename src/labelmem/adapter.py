"""The adapter: what a user wraps around a trained classifier."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import Tensor

from labelmem.combiner import Combiner
from labelmem.config import MemoryConfig
from labelmem.lmn import LMN
from labelmem.online import Recorded
from labelmem.storage import load_state, save_state
from labelmem.training import FitResult, fit
from labelmem.tuning import TuneResult, tune

__all__ = ["Adapter"]


class Adapter(LMN):
    """Let a trained classifier learn from every revealed label, without retraining it.

    The adapter reads the hidden vector h that enters the model's last linear layer, scores it
    against a labeled memory (Eq. 2 and 3), and mixes the two beliefs (Eq. 4 and 5). When the truth
    is observed and the mixture was not ahead by the margin, h is written under that label. The
    model's weights are never touched.

    Parameters
    ----------
    model
        Any module whose last linear layer gives the logits. One with a method ``initial_state(n)``
        is recurrent: see :class:`labelmem.backbone.Backbone`.
    head
        That layer or its name; None finds the last ``nn.Linear``.
    labels
        Names of the logits, any hashables; None means 0..L-1. ``()`` means that the model knows no
        label at all: its output is h, and the memory alone decides (few-shot).
    memory
        How the memory reads, writes and forgets.
    combiner
        A number is the fixed weight of the memory (LMN-fixed); a :class:`Combiner` learns it (LMN).
    key
        What the memory stores and compares: a function of the input and h, or a
        :class:`labelmem.keys.Key` that also remembers earlier inputs; None is h itself.
    partition
        Beyond the paper: whether the labels are divided, those in memory left to the memory and
        only the others to the model. Theta is then the probability of an old label. For streams
        of habits and novelties; off in the paper's form.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(4, 3)                       # your trained classifier
    >>> adapter = Adapter(model, labels=["ant", "bee", "cat"])
    >>> stream = adapter.stream()                     # one user
    >>> p = stream.predict(torch.ones(4))
    >>> stream.observe("dog")                         # a label the model has never heard of
    >>> stream.predict(torch.ones(4)).label
    'dog'

    References
    ----------
    Labeled Memory Networks for Online Model Adaptation (AAAI 2018).
    """

    def tune(self, sequences: Iterable[Recorded], **options: Any) -> TuneResult:
        """Choose lam, delta, margin, theta on validation streams: :func:`labelmem.tuning.tune`."""
        return tune(self, sequences, **options)

    def fit(self, sequences: Iterable[Recorded], **options: Any) -> FitResult:
        """Train the combiner on recorded streams that are new to the model.

        See :func:`labelmem.training.fit`.
        """
        return fit(self, sequences, **options)

    def save(self, path: str | Path) -> None:
        """Write what was tuned and trained, not the model itself, to one file."""
        combiner = self.combiner
        meta: dict[str, Any] = {"signature": self.signature(), "memory": self.memory.plain()}
        weights: dict[str, Tensor] = {}
        if isinstance(combiner, Combiner):
            weights, meta["theta"] = combiner.state_dict(), combiner.start
        else:
            meta["theta"] = combiner
        save_state(path, "adapter", weights, meta)

    def load(self, path: str | Path) -> None:
        """Take over what :meth:`save` wrote; model and labels must be the same."""
        tensors, meta = load_state(path, "adapter")
        form = meta["signature"]["combiner"]
        combiner: float | Combiner = meta["theta"]
        if form != "fixed":
            combiner = Combiner(theta=meta["theta"], **form)
        previous = self.combiner, self.memory
        self.combiner, self.memory = combiner, MemoryConfig.from_plain(meta["memory"])
        try:
            self.check_signature(meta["signature"], path)
            if isinstance(combiner, Combiner):
                combiner.load_state_dict(tensors)
        except Exception:
            self.combiner, self.memory = previous
            raise
