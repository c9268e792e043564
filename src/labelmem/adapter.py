"""The adapter: what a user wraps around a trained classifier."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelmem.combiner import Combiner
from labelmem.config import MemoryConfig
from labelmem.errors import InputError, UnsupportedError
from labelmem.labels import plain
from labelmem.lmn import LMN
from labelmem.online import Recorded
from labelmem.starting import saved_start, with_start
from labelmem.storage import load_state, save_state
from labelmem.training import FitResult, fit
from labelmem.trees import as_tensors, leaves, tree_map
from labelmem.tuning import TuneResult, tune

__all__ = ["Adapter"]


class Adapter(LMN):
    """Let a trained classifier learn from every revealed label, without retraining it.

    The adapter reads the hidden vector h that enters the model's last linear layer. Each stream
    keeps a memory of such vectors under their labels, written where the prediction was weak. A
    prediction combines what the model says with what the memory says. The model's weights are
    never touched.

    How the two are combined is a choice of forms. By default the memory speaks in logits beside
    the model's, with weights learned online from the stream's own labels: nothing is to be tuned,
    and a known label is given up only for good reasons. The forms of the paper mix probabilities
    (Eq. 1 to 5), with a fixed weight of the memory or with one that a trained network decides.

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
        How the memory reads, writes and forgets. The default form takes its capacity alone.
    combiner
        None is the library's default form. A number is the fixed weight of the memory (the paper's
        LMN-fixed); a :class:`Combiner` decides it (LMN), once :meth:`fit` has trained it.
    key
        What the memory stores and compares: a function of the input and h, or a
        :class:`labelmem.keys.Key` that also remembers earlier inputs; None is h itself.
    partition
        Beyond the paper: whether the labels are divided, those in memory left to the memory and
        only the others to the model. Theta is then the probability of an old label. For streams
        of habits and novelties; off in the paper's form.
    engine
        What takes the steps: ``auto`` is the fastest that fits, ``reference`` plain torch;
        :meth:`engines` lists all, with the reason why one does not fit.

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
    >>> stream.predict(-torch.ones(4)).label == "dog"     # an unlike input stays what it was
    False

    References
    ----------
    Labeled Memory Networks for Online Model Adaptation (AAAI 2018).
    """

    def tune(self, sequences: Iterable[Recorded], **options: Any) -> TuneResult:
        """Choose what suits recorded users; it is kept only where it is better.

        See :func:`labelmem.tuning.tune`.
        """
        return tune(self, sequences, **options)

    def fit(self, sequences: Iterable[Recorded], **options: Any) -> FitResult:
        """Learn from recorded streams that are new to the model: the combiner, if there is one.

        See :func:`labelmem.training.fit`.
        """
        return fit(self, sequences, **options)

    @torch.no_grad()
    def prime(self, X: Any, y: Sequence[Hashable] | Tensor, batch_size: int = 256) -> None:
        """Let new streams begin with what some training examples say of the known labels.

        A few examples of each label are enough: the default form takes their means and their
        scatter, so it knows from the first step what known labels look like. Streams that have
        begun stay as they are.

        Parameters
        ----------
        X
            Inputs, first dimension N, as the model takes them in a batch.
        y
            N labels that the model knows.

        Examples
        --------
        >>> adapter = Adapter(torch.nn.Linear(2, 2), labels=["cat", "dog"])
        >>> adapter.prime(torch.randn(20, 2), ["cat", "dog"] * 10)
        """
        if self.online is None or self.backbone.recurrent or self.key is not None:
            raise UnsupportedError(
                "prime is for the default form (combiner=None) around a model without a recurrent "
                "state and without a key of its own"
            )
        ids = [self.known.find(plain(label)) for label in y]
        unknown = next((label for label, i in zip(y, ids, strict=True) if i is None), None)
        if unknown is not None:
            raise InputError(f"{unknown!r} is no label of the model; prime with known ones")
        X = as_tensors(X, self.device, self.dtype, "the examples")
        if not ids or any(len(leaf) != len(ids) for leaf in leaves(X)):
            raise InputError(f"{len(ids)} labels came with another number of examples")
        starts = range(0, len(ids), batch_size)
        parts = [tree_map(lambda leaf, i=i: leaf[i : i + batch_size], X) for i in starts]
        sizes = [min(batch_size, len(ids) - i) for i in starts]
        keys = [self.backbone(x, None, n)[0] for x, n in zip(parts, sizes, strict=True)]
        self.online.prime(torch.cat(keys), torch.tensor(ids, device=self.device))

    def save(self, path: str | Path) -> None:
        """Write what was tuned and trained, not the model itself, to one file."""
        combiner = self.combiner
        meta: dict[str, Any] = {"signature": self.signature(), "memory": self.memory.plain()}
        weights: dict[str, Tensor] = {}
        if isinstance(combiner, Combiner):
            weights, meta["theta"] = combiner.state_dict(), combiner.start
        else:
            meta["theta"] = combiner
        if self.online is not None:
            weights, meta["start"] = self.online.tensors(), saved_start(self.online)
        save_state(path, "adapter", weights, meta)

    def load(self, path: str | Path) -> None:
        """Take over what :meth:`save` wrote; model and labels must be the same."""
        tensors, meta = load_state(path, "adapter")
        form = meta["signature"]["combiner"]
        combiner: float | Combiner | None = meta["theta"]
        if form not in ("fixed", "online"):
            combiner = Combiner(theta=meta["theta"], **form)
        previous = self.memory, self._combiner, self._form, self.online
        self.memory = MemoryConfig.from_plain(meta["memory"])
        try:
            self.combiner = combiner
            self.check_signature(meta["signature"], path)
            if isinstance(combiner, Combiner):
                combiner.load_state_dict(tensors)
            if self.online is not None:
                self.online = with_start(self.online, meta.get("start", {}))
                self.online.restore_primed(tensors, self._like())
        except Exception:
            self.memory, self._combiner, self._form, self.online = previous
            raise
