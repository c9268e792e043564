"""What the baselines share: options, saving, and the two kinds, with and without a model."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
from torch import Tensor

from labelmem.baselines.state import TensorState
from labelmem.errors import ConfigError, InputError
from labelmem.labels import KnownLabels
from labelmem.online import OnlineMethod

__all__ = [
    "Baseline",
    "FromLabels",
    "NoOptions",
    "masked_softmax",
    "refuse_infinite",
    "refuse_options",
    "require",
]

S = TypeVar("S", bound=TensorState)
O = TypeVar("O")  # noqa: E741  # the type of the options


@dataclass(frozen=True)
class NoOptions:
    """A method without anything to choose."""


class Baseline(OnlineMethod[S], Generic[S, O]):
    """An online method with validated options and a state of tensors."""

    Options: type[O]
    """The frozen dataclass of its options; every field has a default."""
    options: O
    needs_model: ClassVar[bool]
    """Whether it is made as ``(model, head, labels, options)`` or ``(labels, options, device)``."""

    def variant(self, **changes: Any) -> Self:
        """The same method, sharing all that was fitted, with some options changed.

        Searching for options this way costs nothing but the evaluation.
        """
        other = copy.copy(self)
        other.options = self.chosen_options(**{**self.config(), **changes})
        return other

    @classmethod
    def chosen_options(cls, **options: Any) -> O:
        """Options from plain values; one that does not exist is refused with those that do.

        Raises
        ------
        ConfigError
            An option does not exist, or has a value it cannot have.
        """
        known = [field.name for field in fields(cls.Options)]  # type: ignore[arg-type]
        wrong = [option for option in options if option not in known]
        if wrong:
            raise ConfigError(f"{cls.name} has no option {wrong}; it has {known}")
        return cls.Options(**options)

    def config(self) -> dict[str, Any]:
        """The options as plain values, for records."""
        return asdict(self.options)  # type: ignore[call-overload, no-any-return]

    def tensors(self, state: S) -> dict[str, Tensor]:
        """All of a state, by name."""
        return state.tensors()

    def restore(self, tensors: dict[str, Tensor], streams: int) -> S:
        """The state that was saved."""
        return self.initial_state(streams).restored(tensors, self.device)


class FromLabels(Baseline[S, O]):
    """Needs to know which labels there are, and nothing else.

    Parameters
    ----------
    labels
        The known labels, or how many there are (0..L-1).
    options
        What can be chosen; None takes the defaults.
    device
        Where to compute.
    """

    needs_model = False

    def __init__(
        self,
        labels: Iterable[Hashable] | int,
        options: O | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.known = KnownLabels(labels)
        self.options = self.Options() if options is None else options
        self.device = torch.device(device)


def require(holds: bool, name: str, value: object, expected: str) -> None:
    """Refuse the value of an option.

    Examples
    --------
    >>> require(0 <= 1.5 <= 1, "theta", 1.5, "must lie in [0, 1]")
    Traceback (most recent call last):
    labelmem.errors.ConfigError: theta is 1.5; it must lie in [0, 1]
    """
    if not holds:
        raise ConfigError(f"{name} is {value!r}; it {expected}")


def refuse_options(method: str, options: Mapping[str, Any]) -> None:
    """Refuse options of a fit that has none; passing over them would look as if they mattered."""
    if options:
        raise ConfigError(f"{method} knows no option {list(options)} of fit; leave it out")


def refuse_infinite(logits: Tensor) -> None:
    """Refuse to go on with weights that have run away."""
    if not bool(torch.isfinite(logits).all()):
        raise InputError(
            "the adapted logits have NaN or infinite values: the weights have run away, or the "
            "input is too large for the model; use a smaller lr"
        )


def masked_softmax(scores: Tensor, valid: Tensor) -> Tensor:
    """Softmax over the valid entries of each row; zeros elsewhere, and in rows without any.

    Examples
    --------
    >>> valid = torch.tensor([[True, True, False], [False, False, False]])
    >>> masked_softmax(torch.zeros(2, 3), valid)
    tensor([[0.5000, 0.5000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    if not scores.shape[1]:
        return scores
    scores = scores.masked_fill(~valid, -torch.inf)
    return torch.softmax(scores, dim=1).masked_fill(~valid, 0.0)
