"""The library's default form for any number of streams: model, memory, and weights learned online.

``P(y) = softmax_y(sum_k theta_k f_k(y))``: what speaks for a label (:mod:`.evidence`) is added in
nats, not mixed in probabilities. So a memory of one label claims only what looks like it. Theta
starts as the model alone with new labels beside it, and learns from the stream's own labels
(:mod:`.weights`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem.explain import ExplainedCell, Explanation
from labelmem.fast import compiled
from labelmem.logit_memory.options import FEATURES, LogitMemoryOptions
from labelmem.logit_memory.user import Belief, User
from labelmem.stepping import Step
from labelmem.trees import leaves, rebuild, tree_map

__all__ = ["LogitMemory", "LogitState", "LogitStep"]

_CELLS = 10
"""Cells that an explanation names."""


@dataclass
class LogitState:
    """All that ``n`` streams remember."""

    users: list[Any]
    """Each a :class:`.user.User`, plain or compiled; None until the first key comes."""
    recurrent: Any
    """The states of model and key."""
    form: Any = "online"

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self.users)

    @property
    def cells(self) -> int:
        """How many examples they remember together."""
        return sum(user.examples for user in self.users if user is not None)

    def repeated(self, n: int) -> LogitState:
        """The one stream ``n`` times over."""
        many = tree_map(lambda leaf: leaf.expand(n, *leaf.shape[1:]), self.recurrent)
        return LogitState(self.users * n, many, self.form)

    def apart(self) -> list[LogitState]:
        """Each stream by itself."""
        return [
            LogitState([user], tree_map(lambda leaf, i=i: leaf[i : i + 1], self.recurrent))
            for i, user in enumerate(self.users)
        ]

    @staticmethod
    def joined(streams: Sequence[LogitState]) -> LogitState:
        """Streams side by side."""
        recurrent = [stream.recurrent for stream in streams]
        together = tree_map(lambda *leaves: torch.cat(leaves), *recurrent)
        return LogitState([user for stream in streams for user in stream.users], together)

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        named = {
            f"user.{i}.{name}": tensor
            for i, user in enumerate(self.users)
            if user is not None
            for name, tensor in user.tensors().items()
        }
        return named | {f"model.{i}": t for i, t in enumerate(leaves(self.recurrent))}


@dataclass(frozen=True, repr=False)
class LogitStep(Step):
    """A step with what each user's memory made of it."""

    beliefs: tuple[Any, ...] = ()
    """Each a :class:`.user.Belief`, plain or compiled."""
    recurrent: Any = field(default=(None, None))


class LogitMemory:
    """Memories that speak in logits beside those of a model.

    Parameters
    ----------
    known
        The number of the model's labels.
    options
        Constants; nobody needs to change them.
    """

    def __init__(self, known: int, options: LogitMemoryOptions) -> None:
        self.known, self.options = known, options
        self.primed: User | None = None
        """What every stream begins with, if training examples were given."""

    def initial_state(self, streams: int, recurrent: Any) -> LogitState:
        """Streams that remember nothing; their users come with the first keys."""
        return LogitState([None] * streams, recurrent)

    def _user(self, state: LogitState, i: int, key: Tensor, fast: bool) -> Any:
        """One of the users, compiled or not; it stays so until it is asked for the other way."""
        user = state.users[i]
        if user is None:
            user = self.new_user(key)
        if user.compiled != fast:
            user = _compiled(user) if fast else user.plain()
        state.users[i] = user
        return user

    def new_user(self, key: Tensor) -> User:
        """Somebody whose keys are like (1, d) this one."""
        if self.primed is None:
            return User(self.known, key.shape[1], self.options, key)
        return copy.deepcopy(self.primed)

    def prime(self, keys: Tensor, labels: Tensor) -> None:
        """Let new streams begin with means and scatter of training examples."""
        user = User(self.known, keys.shape[1], self.options, keys)
        user.prime(keys, labels)
        self.primed = user

    def tensors(self) -> dict[str, Tensor]:
        """What new streams begin with, by name; nothing unless examples were given."""
        return {} if self.primed is None else self.primed.tensors()

    def restore_primed(self, tensors: dict[str, Tensor], like: Tensor) -> None:
        """Take over what :meth:`tensors` gave."""
        self.primed = None
        if tensors:
            user = self.new_user(like.new_zeros(1, len(tensors["statistics.mean"])))
            user.restore(tensors)
            self.primed = user

    def advance(
        self, state: LogitState, x: Any, key: Tensor, logits: Tensor, width: int, recurrent: Any
    ) -> LogitStep:
        """Predict for keys (n, d) and logits (n, L). Pure."""
        width = max(width, self.known)
        fast = key.is_cpu and compiled(key.dtype is logits.dtype is torch.float32)
        rows: list[tuple[Tensor, Tensor]] = [(key, logits)]  # to cut one row out takes time too
        if len(key) > 1:
            rows = [(key[i : i + 1], logits[i : i + 1]) for i in range(len(key))]
        beliefs = tuple(
            self._user(state, i, row[0], fast).believe(*row, width) for i, row in enumerate(rows)
        )
        told = [
            belief.told if belief.compiled else _told(belief, logits[i], width)
            for i, belief in enumerate(beliefs)
        ]
        probs, model, memory = told[0] if len(told) == 1 else torch.cat(told, 1)
        return LogitStep(
            x,
            probs,
            model_probs=model,
            memory_probs=memory,
            beliefs=beliefs,
            recurrent=recurrent,
        )

    def commit(self, state: LogitState, step: LogitStep, y: Tensor, mask: Tensor | None) -> None:
        """Learn the labels (n,) in the streams of the mask."""
        for i, label in enumerate(y.tolist()):
            if mask is None or mask[i]:
                belief = step.beliefs[i]
                fast = belief.compiled and compiled(narrow=True)
                user = self._user(state, i, belief.x, fast)
                user.observe(belief if user.compiled else belief.plain(), label)

    def restore(self, tensors: dict[str, Tensor], state: LogitState, like: Tensor) -> LogitState:
        """The state that was saved."""
        users: list[User | None] = [None] * len(state.users)
        for i in range(len(users)):
            start = f"user.{i}."
            mine = {k.removeprefix(start): t for k, t in tensors.items() if k.startswith(start)}
            if mine:
                user = users[i] = self.new_user(like.new_zeros(1, len(mine["statistics.mean"])))
                user.restore(mine)
        saved = (tensors[f"model.{i}"].to(like.device) for i in range(len(tensors)))
        return LogitState(users, rebuild(state.recurrent, saved))

    def explain(self, step: LogitStep, label: int) -> Explanation:
        """What each feature said for a label, in nats, and the loudest cells."""
        belief: Belief = step.beliefs[0].plain()
        assert step.model_probs is not None
        p, r = float(step.probs[0, label]), float(step.model_probs[0, label])
        column = belief.evidence.column(label)
        nats = belief.evidence.features[0, column].double() * belief.theta
        share = min(1.0, r / p) if p > 0 else 1.0
        return Explanation(
            label=label,
            probability=p,
            theta=None,
            model_share=share,
            memory_share=1 - share,
            cells=tuple(_loudest(belief, column)),
            evidence=dict(zip(FEATURES, nats.tolist(), strict=True)),
        )


def _compiled(user: User) -> Any:
    """The same user with compiled steps, if its tensors are as they should be."""
    from labelmem.engines.numba.logit.user import CompiledUser, fits

    return CompiledUser(user) if fits(user) else user


def _told(belief: Belief, logits: Tensor, width: int) -> Tensor:
    """(3, 1, W) P, what the model believes, and what the memory would believe."""
    model = pad(torch.softmax(logits, 0), (0, width - len(logits)))
    memory = _memory_alone(belief, width).to(model.dtype)
    return torch.stack([belief.probs, model, memory])[:, None]


def _memory_alone(belief: Belief, width: int) -> Tensor:
    """(W,) what would be believed without the model, over the labels in memory; 0 if none are."""
    slots = belief.evidence.means.shape[1]
    row = belief.scores.new_zeros(width)
    if slots:
        features = belief.evidence.features[0, :slots, 2:].double()
        row[belief.evidence.label[:slots]] = torch.softmax(features @ belief.theta[2:], 0)
    return row


def _loudest(belief: Belief, column: int) -> Iterator[ExplainedCell]:
    """The cells that said most for or against a label, with their own labels."""
    said = belief.votes_of_cells(column)
    total = float(said.abs().sum())
    for cell in said.abs().topk(min(_CELLS, len(said))).indices.tolist():
        if heard := float(said[cell]):
            near = float(belief.near[cell])
            label = int(belief.evidence.label[belief.cells.slot[cell]])
            yield ExplainedCell(label, near, heard / near, abs(heard) / total)
