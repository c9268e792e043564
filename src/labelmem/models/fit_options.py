"""How to train, and how it went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from labelmem.errors import ConfigError

__all__ = ["FitOptions", "FitResult", "Objective"]

Objective = Literal["all", "new"]
"""Which labels of a sequence count."""


_COUNTS = ("epochs", "batch", "window", "patience")
_SHARES = ("weight_decay", "bias_decay", "repeat_share")


@dataclass(frozen=True)
class FitOptions:
    """How to train.

    Examples
    --------
    >>> FitOptions(epochs=5, patience=2).lr
    0.001
    """

    epochs: int = 20
    """The most passes over the training part."""
    batch: int = 32
    """Examples or sequences in one batch."""
    batch_tokens: int | None = None
    """The most labels of a batch, padding included, in place of a number of sequences."""
    objective: Objective = "all"
    """``"all"``: every label of a sequence counts. ``"new"``: only those that are new to their
    sequence do, and the labels it has shown before are taken out of the softmax. That is exactly
    what training through the mixture of ``Adapter(partition=True)`` asks of the model, since there
    the memory answers for every label it holds and the model for the others alone."""
    repeat_share: float = 0.0
    """With ``"new"``: how many times the ordinary loss of repeated labels is added in training. The
    validation loss is that of the new labels in any case."""
    lr: float = 1e-3
    """Step size of Adam."""
    weight_decay: float = 0.0
    """Pull of the weights towards 0, apart from the gradient (AdamW); a model may say which."""
    bias_decay: float = 0.0
    """The same for the bias of the head, in models that keep it apart from other weights."""
    clip: float | None = 1.0
    """The largest norm of a gradient; None leaves gradients as they are."""
    window: int = 64
    """Steps of a sequence through which gradients flow; the state goes on beyond."""
    validation: float = 0.1
    """Share held out to choose the best epoch when no validation data is given; 0 chooses none."""
    patience: int = 3
    """Epochs without a better validation loss after which training stops."""
    seed: int = 0
    """Of the split, the order of the batches and the dropout."""

    def __post_init__(self) -> None:
        tokens = self.batch_tokens
        for name, holds, expected in (
            *((n, getattr(self, n) >= 1, "at least 1") for n in _COUNTS),
            ("batch_tokens", tokens is None or tokens >= 1, "at least 1, or None"),
            ("lr", self.lr > 0, "positive"),
            *((n, getattr(self, n) >= 0, "a number from 0") for n in _SHARES),
            ("objective", self.objective in get_args(Objective), "'all' or 'new'"),
            ("clip", self.clip is None or self.clip > 0, "positive, or None"),
            ("validation", 0 <= self.validation < 1, "in [0, 1)"),
        ):
            if not holds:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be {expected}")
        if self.repeat_share > 0 and self.objective == "all":
            raise ConfigError(
                f"repeat_share is {self.repeat_share} with objective 'all', where repeated labels "
                "count in full; it is for objective 'new'"
            )


@dataclass(frozen=True)
class FitResult:
    """How training went."""

    history: tuple[dict[str, float], ...]
    """For each epoch the mean ``loss`` and, where there is validation data, ``validation``."""
    best_epoch: int
    """The epoch, counted from 1, whose weights the model has now."""

    @property
    def best(self) -> dict[str, float]:
        """The losses of that epoch."""
        return self.history[self.best_epoch - 1]
