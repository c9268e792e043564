"""One user's stream: predict, then observe the truth."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem import notebooks
from labelmem.copies import Forked
from labelmem.errors import CorruptFileError, InputError, ObserveError
from labelmem.explain import Explanation
from labelmem.label_codec import decode_label, encode_label
from labelmem.labels import LabelSpace, new_label, plain
from labelmem.locks import Lock, one_at_a_time
from labelmem.showing import Facts, Shown
from labelmem.stepping import Step, Stepping
from labelmem.storage import load_state, save_state
from labelmem.trees import as_tensors, tree_map

__all__ = ["Prediction", "Stream"]

_WHOLE = 2**63  # whole numbers up to here fit into a tensor


class Prediction:
    """What a stream believes about one input; nothing about it changes later.

    ``labels`` lists the model's labels in their order, then the stream's own in the order they were
    first observed; the tensors are aligned with it.
    """

    def __init__(self, step: Step, space: LabelSpace, made_at: int) -> None:
        # The label space tells which stream it belongs to: no other has the same.
        self._step, self._space, self._made_at = step, space, made_at
        self._observed = False

    @property
    def probs(self) -> Tensor:
        """(L,) probabilities; they sum to one, unless nothing at all is known yet (few-shot)."""
        return self._step.probs[0]

    @property
    def theta(self) -> Tensor | None:
        """(L,) the memory's weight for every label; None where there is no mixture."""
        return _first(self._step.theta)

    @property
    def model_probs(self) -> Tensor | None:
        """(L,) the model's own belief."""
        return _first(self._step.model_probs)

    @property
    def memory_probs(self) -> Tensor | None:
        """(L,) the memory's own belief; zeros while it is empty."""
        return _first(self._step.memory_probs)

    @property
    def labels(self) -> list[Any]:
        """The labels that the tensors are aligned with."""
        return self._space.names(self._step.probs.shape[1])

    @property
    def label(self) -> Any:
        """The most probable label; None when no label is known at all."""
        return self._space.name(int(self.probs.argmax())) if len(self.probs) else None

    def top(self, k: int = 5) -> list[tuple[Any, float]]:
        """The ``k`` most probable labels with their probabilities."""
        best = torch.topk(self.probs, min(k, len(self.probs)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(self._space.name(i), p) for i, p in pairs]

    def __repr__(self) -> str:
        if not len(self.probs):
            return "Prediction(no label known yet)"
        return f"Prediction({self.label!r}, p={float(self.probs.max()):.3f})"

    def _repr_html_(self) -> str:
        return notebooks.bars("Prediction" if len(self.probs) else repr(self), self.top())


class Stream(Forked, Shown):
    """A user, a session or a document: its memory, combiner state and recurrent state.

    Made by :meth:`Adapter.stream`. Predicting is pure, as often as one likes; only
    :meth:`observe` changes anything. Threads that use one stream wait for each other.

    Examples
    --------
    >>> from labelmem import Adapter
    >>> stream = Adapter(torch.nn.Linear(2, 2), labels=["cat", "dog"]).stream()
    >>> _ = stream.predict([1.0, 0.0])
    >>> stream.observe("emu")
    >>> stream.predict([1.0, 0.0]).label
    'emu'
    """

    method: Stepping[Any]

    def __init__(self, method: Stepping[Any]) -> None:
        self.method, self._lock = method, Lock()
        self.space = LabelSpace(method.known)
        self.observed = 0
        # A stream keeps the options it began with, whatever the method becomes.
        self._signature = method.shared_signature()
        self._latest: Prediction | None = None
        with torch.inference_mode(False):
            self._state = method.initial_state(1)

    @property
    @one_at_a_time
    def labels(self) -> list[Any]:
        """All labels this stream knows now."""
        return self.space.names(len(self.space))

    @property
    def engine(self) -> str:
        """The name of the engine that takes the steps: see :meth:`Adapter.engines`."""
        return self.method.engine_of(1)

    @one_at_a_time
    def predict(self, x: Any) -> Prediction:
        """Predict the label of one input (without a batch dimension). Changes nothing."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):  # what is kept must be usable outside of it too
                return self.predict(x)
        if type(x) is int and -_WHOLE <= x < _WHOLE:  # a token, as most sequences have them
            x = _whole_number(x, self.method.device)
        else:
            x = as_tensors(x, self.method.device, self.method.dtype, "the input")
            x = tree_map(lambda leaf: leaf[None], x)
        step = self.method.advance(self._state, x, len(self.space))
        self._latest = Prediction(step, self.space, self.observed)
        return self._latest

    @one_at_a_time
    def observe(self, y: Hashable, prediction: Prediction | None = None) -> None:
        """Reveal the true label of the latest prediction, or of an earlier one.

        Parameters
        ----------
        y
            The truth; it may be a label that nobody has seen before.
        prediction
            Which prediction it belongs to. Labels may arrive late and in any order: the memory
            learns from what was predicted then, recurrent states move on from where they are now.
        """
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self.observe(y, prediction)
        prediction = self._to_observe(prediction)
        y = plain(y)
        step = prediction._step
        if prediction._made_at != self.observed:
            step = self.method.rebase(self._state, step, len(self.space))
        known = self.space.find(y)
        if known is None:
            new_label(y)
        index = len(self.space) if known is None else known
        ids = _whole_number(index, step.probs.device)
        self.method.commit(self._state, step, ids, None)
        self.space.add(y)
        self.observed += 1
        prediction._observed = True
        if self._latest is prediction:
            self._latest = None

    @one_at_a_time
    def explain(self, prediction: Prediction, label: Any = None) -> Explanation:
        """Say why: the cells behind the predicted label, or behind another one."""
        self._check_mine(prediction)
        index = self.space.find(prediction.label if label is None else plain(label))
        if index is None or index >= len(prediction.probs):
            raise InputError(f"the label {label!r} was not known when the prediction was made")
        return self.method.explain(prediction._step, index).named(self.space)

    @one_at_a_time
    @torch.inference_mode(False)
    def reset(self) -> None:
        """Forget everything: the stream is as new."""
        self._state = self.method.initial_state(1)
        self.space = LabelSpace(self.method.known)
        self.observed, self._latest = 0, None

    @one_at_a_time
    @torch.inference_mode(False)
    def tensors(self) -> dict[str, Tensor]:
        """The tensors that :meth:`save` would write, by name: detached copies.

        Examples
        --------
        >>> from labelmem import Adapter
        >>> stream = Adapter(torch.nn.Linear(2, 2), labels=["cat", "dog"], combiner=0.5).stream()
        >>> _ = stream.predict([1.0, 0.0])
        >>> stream.observe("emu")
        >>> stream.tensors()["memory.label"]  # of one cell: the third label
        tensor([[2]])
        """
        held = self.method.tensors(self._state)
        return {name: tensor.detach().clone() for name, tensor in held.items()}

    @one_at_a_time
    def save(self, path: str | Path) -> None:
        """Write the committed state to one file, atomically; a pending prediction is not part."""
        meta: dict[str, Any] = {
            "signature": self._signature,
            "own_labels": [encode_label(label) for label in self.space.own],
            "observed": self.observed,
        }
        save_state(path, "stream", self.method.tensors(self._state), meta)

    @classmethod
    def load(cls, method: Stepping[Any], path: str | Path) -> Stream:
        """Continue a saved stream; :meth:`Adapter.load_stream` is the usual way."""
        tensors, meta = load_state(path, "stream")
        method.check_signature(meta["signature"], path)
        stream = cls(method)
        own = [decode_label(label) for label in meta["own_labels"]]
        try:
            stream._state = method.restore(tensors, 1)
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            raise CorruptFileError(f"{path} lacks a part of the state: {error}") from error
        stream.space = LabelSpace(method.known, own)
        stream.observed = int(meta["observed"])
        return stream

    def _facts(self) -> Facts:
        counts = {"observed": self.observed, "labels": len(self.space)}
        if new := len(self.space) - len(self.space.known):
            counts["of them new"] = new
        return {**counts, **self.method.facts(self._state)}

    def _to_observe(self, prediction: Prediction | None) -> Prediction:
        if prediction is None:
            if self._latest is None:
                raise ObserveError(
                    "there is no prediction waiting for its label; call predict before observe"
                )
            return self._latest
        self._check_mine(prediction)
        if prediction._observed:
            raise ObserveError("this prediction's label was observed already; each has one truth")
        return prediction

    def _check_mine(self, prediction: Prediction) -> None:
        if not isinstance(prediction, Prediction):
            raise InputError(
                f"got a {type(prediction).__name__}; expected a Prediction made by this stream"
            )
        if prediction._space is not self.space:
            raise ObserveError(
                "this prediction was made by another stream, or before a reset; "
                "give it to the stream that made it"
            )


def _first(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor[0]


def _whole_number(x: int, device: torch.device) -> Tensor:
    """(1,) one stream's token or label."""
    if device.type == "cpu":  # several times as fast as a tensor that torch fills
        return torch.from_numpy(np.array([x]))
    return torch.full((1,), x, device=device)
