"""Many streams that advance in lockstep, with the results they would have one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labelmem.copies import Forked
from labelmem.errors import ConfigError, InputError, ObserveError
from labelmem.labels import LabelSpace, new_label, plain
from labelmem.locks import Lock, one_at_a_time
from labelmem.lockstep.recorded import RecordedLockstep
from labelmem.showing import Facts, Shown
from labelmem.stepping import Step, Stepping
from labelmem.trees import as_tensors, leaves

__all__ = ["StreamBatch"]


class StreamBatch(Forked, Shown):
    """``n`` independent streams; one call predicts or observes for all of them.

    Streams of unequal length are run with a mask: a stream that is masked out of ``observe`` is
    left exactly as it was. Threads that use one batch wait for each other.

    Examples
    --------
    >>> from labelmem import Adapter
    >>> batch = Adapter(torch.nn.Linear(2, 2), labels=["cat", "dog"]).streams(3)
    >>> batch.predict(torch.zeros(3, 2)).shape
    torch.Size([3, 2])
    >>> batch.observe(["dog", "emu", "cat"], mask=[True, True, False])
    >>> batch.labels(0), batch.labels(1)
    (['cat', 'dog'], ['cat', 'dog', 'emu'])
    """

    method: Stepping[Any]
    _own = ("_recorded",)

    def __init__(self, method: Stepping[Any], n: int) -> None:
        if n < 1:
            raise ConfigError(f"asked for {n} streams; there must be at least one")
        self.method, self.n, self._lock = method, n, Lock()
        # Streams without labels of their own share one space until they meet one.
        self._shared = LabelSpace(method.known)
        self._spaces: dict[int, LabelSpace] = {}
        self._begin()
        self.last: Step | None = None
        """The prediction that waits for its labels: theta, model_probs, memory_probs. On a GPU they
        are good until the next prediction."""

    @torch.inference_mode(False)  # what is kept must be usable outside of that mode too
    def _begin(self) -> None:
        self._now = self.method.initial_state(self.n)
        self._make_own()

    def _make_own(self) -> None:
        # On a GPU starting the many small operations of a step takes longer than the work.
        places = self.method.places(self._now)
        self._recorded: RecordedLockstep | None = None
        if places is not None:
            self._recorded = RecordedLockstep(self.method, self._now, places)

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        if self._recorded is not None and self.last is not None:
            self.last = self._recorded.certain(self.last)
        return super().__getstate__()

    @property
    def _state(self) -> Any:
        """All that the streams remember, once it is known that the last step went well."""
        self._settle()
        return self._now

    def _settle(self) -> None:
        """See to what was not waited for when labels were observed by a recorded step."""
        own = None if self._recorded is None else self._recorded.settle()
        if own is not None:
            self._number(own)

    @property
    def engine(self) -> str:
        """The name of the engine that takes the steps, and whether a GPU repeats a recording."""
        name = self.method.engine_of(self.n)
        return name if self._recorded is None else f"{name}, recorded as CUDA graphs"

    def __len__(self) -> int:
        return self.n

    @property
    @one_at_a_time
    def width(self) -> int:
        """The number of label columns: the model's, and the most new labels of any stream."""
        self._settle()
        return self._most_labels()

    def _most_labels(self) -> int:
        spaces = self._spaces.values()
        return max([len(self._shared), *(len(space) for space in spaces)])

    @property
    @one_at_a_time
    def widths(self) -> Tensor | None:
        """(n,) the number of labels of each stream; None while all know just the model's."""
        self._settle()
        if not self._spaces:
            return None
        each = [len(self._spaces.get(stream, self._shared)) for stream in range(self.n)]
        return torch.tensor(each, device=self.method.device)

    @one_at_a_time
    def labels(self, stream: int) -> list[Any]:
        """The labels of one stream; columns beyond them are padding with probability 0."""
        self._settle()
        space = self._spaces.get(stream, self._shared)
        return space.names(len(space))

    def predict(self, X: Any) -> Tensor:
        """Predict for one input per stream, first dimension n; (n, L) probabilities. Pure.

        On a GPU nobody waits for the device: what was wrong with a prediction, such as a model that
        gives NaN, or with its labels is raised when the streams are next asked for something.
        Nothing was learned of that step then.
        """
        return self.look(X).probs

    @one_at_a_time
    @torch.inference_mode(False)
    def look(self, X: Any) -> Step:
        """The same as a :class:`Step`, which can tell what the prediction is worth.

        Many streams on a CPU make rows of all labels only when they are asked for.

        Examples
        --------
        >>> from labelmem import Adapter
        >>> batch = Adapter(torch.nn.Linear(2, 2), combiner=0.5).streams(3)
        >>> worth = batch.look(torch.zeros(3, 2)).worth(torch.tensor([0, 1, 1]))
        >>> worth.figures.shape
        torch.Size([4, 3])
        """
        X = as_tensors(X, self.method.device, self.method.dtype, "the batch of inputs")
        for leaf in leaves(X):
            if leaf.ndim == 0 or leaf.shape[0] != self.n:
                raise InputError(
                    f"the batch has shape {tuple(leaf.shape)}; its first dimension must be "
                    f"{self.n}, one input per stream"
                )
        if self._recorded is not None:
            self._recorded.begin(X)  # before the width is asked for: that waits for the device
            self.last = self._recorded.advance(X, self.width)
        else:
            self.last = self.method.advance(self._now, X, self.width)
        return self.last

    @one_at_a_time
    @torch.inference_mode(False)
    def observe(self, Y: Sequence[Any] | Tensor, mask: Any = None) -> None:
        """Reveal the labels of the latest predictions, in the streams where ``mask`` is true."""
        if self.last is None:
            raise ObserveError("there is no prediction waiting for its labels; call predict first")
        seen = self._as_mask(mask)
        y, new = self._resolve(Y, seen)
        self._commit(self.last, y, None if mask is None else seen)
        for stream, label in new:
            self._spaces.setdefault(stream, LabelSpace(self.method.known)).add(label)

    @one_at_a_time
    @torch.inference_mode(False)
    def observe_ids(self, y: Tensor, mask: Tensor | None = None) -> None:
        """Reveal labels by id, for replaying recordings: new labels are numbered, not named.

        An id above a stream's labels adds labels named by their own id up to it.
        """
        if self.last is None:
            raise ObserveError("there is no prediction waiting for its labels; call predict first")
        if not self._commit(self.last, y, mask):
            self._number(y if mask is None else y.where(mask, -1))

    def _number(self, y: Tensor) -> None:
        """Give streams that have met ids (n,) above their labels those labels."""
        for stream in (y >= len(self._shared)).nonzero()[:, 0].tolist():
            space = self._spaces.setdefault(stream, LabelSpace(self.method.known))
            for index in range(len(space), int(y[stream]) + 1):
                space.add(("id", index))

    def _commit(self, step: Step, y: Tensor, mask: Tensor | None) -> bool:
        """Learn; whether that was recorded, so that it is not yet known how it went."""
        recorded = False
        if self._recorded is not None:
            recorded = self._recorded.commit(step, y, mask)
        else:
            self.method.commit(self._now, step, y, mask)
        self.last = None
        return recorded

    @one_at_a_time
    @torch.inference_mode(False)
    def tensors(self) -> dict[str, Tensor]:
        """All that the streams remember, by name: detached copies.

        Examples
        --------
        >>> from labelmem import Adapter
        >>> batch = Adapter(torch.nn.Linear(2, 2), labels=["cat", "dog"], combiner=0.5).streams(2)
        >>> _ = batch.predict(torch.eye(2))
        >>> batch.observe(["emu", "cat"], mask=[True, False])
        >>> batch.tensors()["memory.used"]  # cells of each stream
        tensor([1, 0])
        """
        held = self.method.tensors(self._state)
        return {name: tensor.detach().clone() for name, tensor in held.items()}

    @one_at_a_time
    def reset(self) -> None:
        """Forget everything: all streams are as new."""
        try:
            self._settle()
        finally:
            self._begin()
            self._spaces.clear()
            self.last = None

    def _facts(self) -> Facts:
        # Not by the width, which says what was wrong with the last step: this must never fail.
        labels = f"at most {self._most_labels()} labels"
        return {"streams": self.n, "labels": labels, **self.method.facts(self._now)}

    def _as_mask(self, mask: Any) -> Tensor:
        device = self.method.device
        if mask is None:
            return torch.ones(self.n, dtype=torch.bool, device=device)
        try:
            seen = torch.as_tensor(mask, device=device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                f"the mask cannot be read, expected {self.n} booleans: {error}"
            ) from None
        if seen.shape != (self.n,) or seen.dtype != torch.bool:
            raise InputError(
                f"the mask has shape {tuple(seen.shape)} and type {seen.dtype}; expected {self.n} "
                "booleans, one per stream"
            )
        return seen

    def _resolve(
        self, Y: Sequence[Any] | Tensor, seen: Tensor
    ) -> tuple[Tensor, list[tuple[int, Any]]]:
        """Label ids (n,), and (stream, label) for the labels that are new to their stream."""
        count = _count(Y)
        if count != self.n:
            raise InputError(f"got {count} labels; expected {self.n}, one per stream")
        if isinstance(Y, Tensor) and self.method.known.are_ids and not Y.is_floating_point():
            y = Y.to(self.method.device, torch.int64)
            known = (y >= 0) & (y < len(self.method.known))
            if bool((known | ~seen).all()):  # labels that are their own ids need no look-up
                return torch.where(seen, y, torch.zeros_like(y)), []
        ids, new = [0] * self.n, []
        for stream in seen.nonzero()[:, 0].tolist():
            label = plain(Y[stream])
            space = self._spaces.get(stream, self._shared)
            found = space.find(label)
            ids[stream] = len(space) if found is None else found
            if found is None:
                new.append((stream, new_label(label)))
        return torch.tensor(ids, device=self.method.device), new


def _count(Y: Any) -> Any:
    """How many labels there are, or what was given in their place."""
    if isinstance(Y, str) or not hasattr(Y, "__len__") or getattr(Y, "ndim", 1) != 1:
        shape = f" of shape {tuple(Y.shape)}" if hasattr(Y, "shape") else ""
        return f"a {type(Y).__name__}{shape} in place of the"
    return len(Y)
