"""Methods that are a network of their own over the labels of a stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from labelmem.baselines.base import FromLabels, refuse_infinite, require
from labelmem.baselines.label_method import label_ids
from labelmem.baselines.state import TensorState
from labelmem.errors import ConfigError
from labelmem.models.batches import split
from labelmem.models.fit_options import FitOptions, FitResult
from labelmem.models.training import Progress
from labelmem.online import Recorded, Step
from labelmem.trees import chosen
from labelmem_paper.methods.window_passes import UNSCORED
from labelmem_paper.methods.windows import fit_windows

__all__ = ["SequenceMethod", "SequenceOptions", "SequenceState", "SequenceStep", "scored_loss"]


@dataclass(frozen=True)
class SequenceOptions:
    """What all of them can choose; these make the network, so they cannot change later."""

    dim: int = 50
    """Size of the LSTM; the paper's baselines have 50."""
    dropout: float = 0.0
    """Share of the labels' vectors and of h that is dropped in training."""
    tied: bool = False
    """Whether the output layer's weight is the labels' vectors: fewer parameters."""
    seed: int = 0
    """Seeds the weights before training."""

    def __post_init__(self) -> None:
        require(self.dim >= 1, "dim", self.dim, "must be at least 1")
        require(0 <= self.dropout < 1, "dropout", self.dropout, "must lie in [0, 1)")


@dataclass
class SequenceState(TensorState):
    """What a stream needs to go on: its latest label and the state of the network."""

    last: Tensor
    """(n,) the token to feed: the latest label, or the start where there is none that is known."""
    model: Any


@dataclass(frozen=True)
class SequenceStep(Step):
    """A step with the network's state after it."""

    after: Any = None


O = TypeVar("O", bound=SequenceOptions)  # noqa: E741  # the type of the options


class SequenceMethod(FromLabels[SequenceState, O]):
    """A network that is fed y(t-1) and predicts y(t), and may learn from y(t).

    The input of a step is the latest label that the stream has observed; what is passed to
    ``predict`` is not looked at. A label that is not among the known ones is fed as the start of a
    stream is, never predicted, and nothing is learned from it.

    Parameters are those of :class:`labelmem.baselines.base.FromLabels`.
    """

    online_options: ClassVar[tuple[str, ...]] = ()
    """Options that can change when the network is trained; the others make it."""
    training: ClassVar[dict[str, Any]] = {"epochs": 5}
    """Defaults of :meth:`fit` that differ from those of :class:`labelmem.models.FitOptions`."""
    network: nn.Module

    def __init__(
        self,
        labels: Iterable[Hashable] | int,
        options: O | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(labels, options, device)
        # Forked, so that the weights depend on the seed and on nothing else.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.options.seed)
            self.network = self.made_network().to(self.device).eval()

    @abstractmethod
    def made_network(self) -> nn.Module:
        """The untrained network of the options."""

    @abstractmethod
    def begin(self, streams: int) -> Any:
        """The network's state of streams that have seen nothing."""

    @abstractmethod
    def respond(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits (n, L) after the tokens (n,), and the network's state after them."""

    @abstractmethod
    def window(self, tokens: Tensor, y: Tensor, state: Any) -> tuple[Tensor, Any]:
        """What a window costs; see :class:`labelmem_paper.methods.window_passes.WindowLearner`."""

    def learned(self, tokens: Tensor, y: Tensor, before: Any, after: Any) -> Any:
        """The state ``after`` a step, changed by its labels y (n,), UNSCORED where not known."""
        return after

    def variant(self, **changes: Any) -> Self:
        """The same network with other options; those that made the network must stay."""
        for name, value in changes.items():
            if name not in self.online_options and self.config().get(name, value) != value:
                raise ConfigError(
                    f"{name} is {self.config()[name]!r} in this {self.name} and cannot become "
                    f"{value!r}; make another one and train it"
                )
        return super().variant(**changes)

    @property
    def start_token(self) -> int:
        """The token that is fed where there is no label, or none that is known."""
        return len(self.known)

    def signature(self) -> dict[str, Any]:
        """A saved stream must agree on the options that made the network."""
        made = {k: v for k, v in self.config().items() if k not in self.online_options}
        return super().signature() | {"network": made}

    def fit(
        self,
        sequences: Iterable[Recorded],
        validation: Iterable[Recorded] | None = None,
        checkpoint: Path | None = None,
        progress: Progress | None = None,
        **training: Any,
    ) -> FitResult:
        """Train the network on recorded streams, from the weights it has now.

        Parameters
        ----------
        validation
            Streams to choose the best epoch by; None holds out a part of ``sequences``.
        checkpoint
            A file to continue from if it exists, brought up to date after every epoch.
        progress
            Called after each epoch.
        training
            Fields of :class:`labelmem.models.FitOptions`.
        """
        options = FitOptions(**(self.training | training))
        train = [label_ids(labels, self.known) for _, labels in sequences]
        if validation is None:
            rows, others = split(len(train), max(options.validation, 1e-9), options.seed)
            valid, train = [train[row] for row in others], [train[row] for row in rows]
        else:
            valid = [label_ids(labels, self.known) for _, labels in validation]
        return fit_windows(self, train, valid, options, checkpoint, progress)

    def initial_state(self, streams: int) -> SequenceState:
        """Nothing seen."""
        last = torch.full((streams,), self.start_token, device=self.device)
        return SequenceState(streams, last, self.begin(streams))

    @torch.no_grad()
    def advance(self, state: SequenceState, x: Any, width: int) -> SequenceStep:
        """What the network says after the latest label."""
        self.network.eval()
        logits, after = self.respond(state.last, state.model)
        refuse_infinite(logits)
        probs = pad(torch.softmax(logits, dim=1), (0, width - logits.shape[1]))
        return SequenceStep(x, probs, after=after)

    @torch.no_grad()
    def commit(self, state: SequenceState, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Move the network on, let it learn, and keep the label for the next step."""
        assert isinstance(step, SequenceStep)
        known = y < len(self.known)
        scored = torch.where(known, y, UNSCORED)
        model = self.learned(state.last, scored, state.model, step.after)
        state.model = chosen(mask, model, state.model)
        state.last = chosen(mask, torch.where(known, y, self.start_token), state.last)


def scored_loss(logits: Tensor, y: Tensor) -> Tensor:
    """-log P(y) (n,) of logits (n, L); 0 where there is no label to score.

    Examples
    --------
    >>> scored_loss(torch.zeros(2, 4), torch.tensor([3, UNSCORED]))
    tensor([1.3863, 0.0000])
    """
    return cross_entropy(logits, y, ignore_index=UNSCORED, reduction="none")
