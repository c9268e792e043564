"""One step of an online method: a pure prediction, and the commit of its label."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from labelmem.errors import MismatchError, StorageError, UnsupportedError
from labelmem.explain import Explanation
from labelmem.label_codec import encode_label
from labelmem.labels import KnownLabels
from labelmem.scoring import Worth, worth_of
from labelmem.showing import Facts, line

__all__ = ["Places", "Step", "Stepping"]

S = TypeVar("S")


@dataclass(frozen=True, repr=False)
class Step:
    """A prediction for ``n`` streams that has not been committed."""

    x: Any
    """The inputs, kept so that a late label can be committed from a later state."""
    probs: Tensor
    """(n, W) probabilities over the labels known when the prediction was made."""
    theta: Tensor | None = None
    """(n, W) weight of the memory for every label, where there is a memory."""
    model_probs: Tensor | None = None
    """(n, W) what the model alone believed."""
    memory_probs: Tensor | None = None
    """(n, W) what the memory alone believed."""
    lazy: ClassVar[bool] = False
    """Whether rows of all labels are made only when they are asked for."""

    def worth(self, y: Tensor, widths: Tensor | None = None, top: int = 0) -> Worth:
        """What the prediction is worth where y (n,) is true, and the ``top`` most likely labels.

        Where an engine can, no rows of all labels are made for it.

        Parameters
        ----------
        y
            Label ids; one outside of the prediction is a label without a column.
        widths
            (n,) how many labels each stream has; all W if None.
        """
        return worth_of(self.probs, y, widths, top)

    def __repr__(self) -> str:
        streams, labels = self.probs.shape
        return line(self, {"streams": streams, "labels": labels})


class Places(Protocol):
    """Where a state lies, for steps that are recorded: see :mod:`labelmem.lockstep`."""

    @property
    def usable(self) -> Callable[[], bool]:
        """Whether recorded steps still do what the method would: nobody changed or watches it."""
        ...

    def make_room(self, width: int) -> None:
        """Make sure that a step over ``width`` labels needs no new tensors for the state."""

    def wrote(self) -> None:
        """A recorded step was taken."""

    def disturbed(self) -> None:
        """A step that was not recorded was taken."""

    def tensors(self) -> dict[str, Tensor]:
        """All of the state, by name, as it lies."""
        ...

    def put(self, tensors: dict[str, Tensor]) -> None:
        """Let the state consist of these."""


class Stepping(ABC, Generic[S]):
    """How a method predicts and learns, for any number of streams at once.

    A subclass says what one stream's state is and how a step reads and changes it, always for ``n``
    streams in lockstep. Labels are whole numbers here: 0..L-1 are the model's, those above are a
    stream's own and may appear at any time.
    """

    name: str
    """The method's name in records and tables."""
    known: KnownLabels
    """The labels it was trained on."""
    device: torch.device
    """Where its tensors live."""
    dtype: torch.dtype = torch.float32
    """What floating point inputs are converted to."""
    _latest_signature: dict[str, Any] = {}

    @abstractmethod
    def initial_state(self, streams: int) -> S:
        """The state of ``streams`` streams that have seen nothing."""

    @abstractmethod
    def advance(self, state: S, x: Any, width: int) -> Step:
        """Predict over ``width`` labels. Pure: the state is as before."""

    @abstractmethod
    def commit(self, state: S, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Learn the labels y (n,) of ``step`` in the streams of the mask, changing ``state``.

        An id at or above the step's width is a label that the stream meets for the first time.
        """

    def engine_of(self, streams: int) -> str:
        """The name of the engine that takes the steps of so many streams."""
        return "reference"

    @abstractmethod
    def tensors(self, state: S) -> dict[str, Tensor]:
        """All of a state, as tensors that can be saved."""

    @abstractmethod
    def restore(self, tensors: dict[str, Tensor], streams: int) -> S:
        """The state that :meth:`tensors` described."""

    def places(self, state: S) -> Places | None:
        """Where the state lies, if steps can be recorded for a device; most methods cannot."""
        return None

    def rebase(self, state: S, step: Step, width: int) -> Step:
        """Move a step whose label came late onto a state that other labels have changed since."""
        return self.advance(state, step.x, width)

    def facts(self, state: S) -> Facts:
        """What people are told of a state."""
        return {"form": self.name}

    def signature(self) -> dict[str, Any]:
        """What a saved stream must agree on to be continued by this method."""
        return {"method": self.name, "labels": len(self.known), "label_digest": self._digest()}

    def shared_signature(self) -> dict[str, Any]:
        """The signature as it is now; one object for all streams that begin with the same."""
        now, latest = self.signature(), self._latest_signature
        if latest == now:
            return latest
        self._latest_signature = now
        return now

    def explain(self, step: Step, label: int) -> Explanation:
        """Say which cells stand behind a prediction; only methods with a memory can."""
        raise UnsupportedError(f"{self.name} keeps no cells, so it cannot explain a prediction")

    def check_signature(self, saved: dict[str, Any], path: str | Path) -> None:
        """Refuse state that belongs to another method, model or label set."""
        ours = self.signature()
        for key in ours | saved:
            if ours.get(key) != saved.get(key):
                raise MismatchError(
                    f"{path} was saved with {key} = {saved.get(key)!r}, here it is "
                    f"{ours.get(key)!r}; load it with the adapter it was saved from"
                )

    def _digest(self) -> str | None:
        """A fingerprint of the label names, where they can be written down."""
        if self.known.are_ids:
            return None
        try:
            names = [encode_label(name) for name in self.known.names]
        except StorageError:
            return None
        return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:16]
