"""How to train, and how it went."""

from __future__ import annotations

from dataclasses import dataclass

from labelmem.errors import ConfigError

__all__ = ["FitOptions", "FitResult"]


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
    lr: float = 1e-3
    """Step size of Adam."""
    weight_decay: float = 0.0
    """Pull of the weights towards 0, apart from the gradient (AdamW)."""
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
        for name in ("epochs", "batch", "window", "patience"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.lr > 0 or not self.weight_decay >= 0:
            raise ConfigError(
                f"lr is {self.lr}, weight_decay is {self.weight_decay}; "
                "expected a positive number and one from 0"
            )
        if self.clip is not None and not self.clip > 0:
            raise ConfigError(f"clip is {self.clip}; it must be positive, or None")
        if not 0 <= self.validation < 1:
            raise ConfigError(f"validation is {self.validation}; it must lie in [0, 1)")


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
