"""Train, tune and measure a model of a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelmem.adapter import Adapter
from labelmem.baselines.static import Static
from labelmem.baselines.unigram import Unigram
from labelmem.combiner import Combiner
from labelmem.logs.methods import scored, tuned_counter
from labelmem.logs.model import LogModel, adapter_around, made
from labelmem.logs.parts import Parts, known_only, within
from labelmem.logs.recipe import VARIANTS, Recipe
from labelmem.logs.scores import Scores
from labelmem.logs.words import counted
from labelmem.logs.workshop import Workshop
from labelmem.models import FitOptions, fit_sequences
from labelmem.models.batches import sequence_losses
from labelmem.online import OnlineMethod
from labelmem.progress import progress_bar
from labelmem.tuning import GRID

__all__ = ["Fit", "Fitter"]

Recorded = tuple[Tensor, Tensor]
_LR, _TOKENS, _WINDOW, _PATIENCE = 3e-3, 3000, 1000, 3  # of row lmn of Table 2


@dataclass(frozen=True)
class Fit:
    """A fitted adapter and how well it does on users it has never seen."""

    adapter: Adapter
    variant: int
    """Which of the settings of the model was best."""
    scores: dict[str, Scores]
    """By method: ``lmn``, ``counter``, ``static`` (the model that is not adapted), ``unigram``."""
    facts: dict[str, Any]
    """How it came about, for the card."""


@dataclass
class Fitter:
    """Goes through the stages of a fit; each is kept in the workshop as soon as it is done."""

    parts: Parts
    recipe: Recipe
    shop: Workshop
    seed: int
    device: torch.device
    tell: Callable[[str], None]
    """Is told in words what comes next."""
    show: bool | None = None
    """Whether to show progress; None does where a person watches."""

    def __post_init__(self) -> None:
        self.labels = len(self.parts.vocabulary)
        self.train, self.valid = (self.parts.streams(part) for part in ("train", "valid"))
        self.facts: dict[str, Any] = {}

    def run(self) -> Fit:
        """All stages."""
        model, variant = self._best_model()
        adapter = adapter_around(model, self.seed)
        self._tune(adapter)
        self._fit_combiner(adapter, variant)
        return Fit(adapter, variant, self._measure(adapter), self.facts)

    def _best_model(self) -> tuple[LogModel, int]:
        """The variant whose predictions of new items are best on validation users."""
        used = self._share(self.recipe.share)
        self.facts["model_users"] = len(used)
        found = []
        for variant in range(self.recipe.variants):
            self.tell(f"training the model on {counted(len(used), 'user')} ({self.labels:,} items)")
            model = self._trained(f"model-{variant}", variant, used, self.recipe.epochs)
            found.append((self._loss_of_new(model), variant, model))
        _, variant, model = min(found, key=lambda each: each[:2])
        return model, variant

    def _share(self, share: float) -> list[Recorded]:
        streams = self.train[: max(2, round(share * len(self.train)))]
        return [(x[: self.recipe.steps], y[: self.recipe.steps]) for x, y in streams]

    def _trained(
        self,
        name: str,
        variant: int,
        streams: Sequence[Recorded],
        epochs: int,
        objective: str = "new",
    ) -> LogModel:
        shape, decays = VARIANTS[variant]
        model = made(self.labels, shape, self.seed, self.device)
        options = FitOptions(
            epochs=epochs,
            patience=_PATIENCE,
            lr=_LR,
            batch_tokens=_TOKENS,
            window=_WINDOW,
            objective=objective,  # type: ignore[arg-type]
            seed=self.seed,
            **(decays if objective == "new" else {}),
        )
        train = known_only(streams, self.labels)

        def work(checkpoint: Path) -> None:
            with progress_bar(name, epochs, self.show) as report:
                fit_sequences(
                    model,
                    train,
                    options,
                    validation=self._stopping(),
                    checkpoint=checkpoint,
                    progress=lambda epoch, most, losses: report(
                        note=f"validation {losses['validation']:.3f} nats"
                    ),
                )

        self.shop.keep(name, model, work)
        return model.eval().requires_grad_(False)

    def _stopping(self) -> list[Tensor]:
        """Validation streams for early stopping; training ones where they have nothing known."""
        some = within(self.valid, self.recipe.stopping_events, self.recipe.steps)
        return known_only(some, self.labels) or known_only(self.train, self.labels)[:1]

    @torch.no_grad()
    def _loss_of_new(self, model: LogModel) -> float:
        """Nats of items new to their validation users, where there is a choice to be made."""
        if self.recipe.variants == 1:
            return 0.0
        options = FitOptions(objective="new", batch_tokens=_TOKENS, window=_WINDOW)
        batches = sequence_losses(model, self._stopping(), options, None)
        losses = [(float(loss) * count, count) for loss, count in batches]
        return sum(loss for loss, _ in losses) / max(sum(count for _, count in losses), 1)

    def _tune(self, adapter: Adapter) -> None:
        self.tell("choosing the settings of the memory")
        search = within(self.valid, self.recipe.search_events, self.recipe.steps)
        grid = {name: values for name, values in GRID.items() if name != "margin"}
        chosen = adapter.tune(search, trials=self.recipe.trials, grid=grid, show=self.show).best
        self.facts["memory"] = {name: chosen[name] for name in grid}

    def _fit_combiner(self, adapter: Adapter, variant: int) -> None:
        recipe, theta = self.recipe, adapter.combiner
        assert isinstance(theta, float)
        others = [self._fold(fold, variant) for fold in range(recipe.folds)]
        adapter.combiner = Combiner(
            kind="stream", hidden=48, rescorer=64, dropout=0.2, theta=theta, seed=self.seed
        )
        cells = recipe.combiner_cells
        own = self._some(self.valid, cells // (4 if others else 1))
        users = sum(len(streams) for _, streams in others) or len(own)
        self.facts["combiner_users"] = users
        self.tell(f"training the combiner on {counted(users, 'user')} that its model has not seen")
        result = adapter.fit(
            [] if others else own,
            validation=own if others else None,
            others=others,
            checkpoint=self.shop.checkpoint("combiner"),
            show=self.show,
            seed=self.seed,
            epochs=recipe.combiner_epochs,
            patience=5,
            lr=3e-3,
            anneal=0.05,
            weight_decay=1e-3,
            batch_size=16,  # streams of a batch are padded to the longest
            window=recipe.window,
            windows=recipe.windows,
            held_out=0.33,
        )
        self.facts["combiner"] = {"before": result.before, "best": result.best}

    def _fold(self, fold: int, variant: int) -> tuple[LogModel, list[Recorded]]:
        """A model that has not seen a part of the training users, and that part."""
        folds = self.recipe.folds
        rest = [stream for i, stream in enumerate(self.train) if i % folds != fold]
        self.tell(f"training the model without a part of the users ({fold + 1} of {folds})")
        model = self._trained(f"fold-{fold}", variant, rest, self.recipe.epochs)
        return model, self._some(self.train[fold::folds], self.recipe.combiner_cells // folds)

    def _some(self, streams: Sequence[Recorded], cells: int) -> list[Recorded]:
        """Streams for the combiner."""
        recipe = self.recipe
        seen = recipe.window * recipe.windows

        def cost(y: Tensor) -> int:  # events × distinct items
            return min(len(y), seen) * len(torch.unique(y))

        return within(streams, cells, recipe.steps, cost, least=2)  # so that one can be held out

    def _measure(self, adapter: Adapter) -> dict[str, Scores]:
        """Figures of all methods on the same test users."""
        recipe, test = self.recipe, within(self.parts.streams("test"), self.recipe.test_events)
        used = self._share(recipe.static_share)
        self.facts |= {"static_users": len(used), "test_users": len(test)}
        self.tell("training a model that is not adapted, to compare with")
        static = self._trained("static", 0, used, recipe.static_epochs, "all")
        search = within(self.valid, recipe.search_events, recipe.steps)
        counter = tuned_counter(
            self.labels, self.train, search, 2 * recipe.trials, self.device, self.show
        )
        self.facts["counter"] = counter.config()
        self.tell(f"measuring on {counted(len(test), 'user')} that nothing was trained on")
        methods: dict[str, OnlineMethod[Any]] = {
            "lmn": adapter,
            "counter": counter,
            "static": Static(static),
            "unigram": Unigram(self.labels, device=self.device).fit(self.train),
        }
        return {name: scored(method, test, self.show) for name, method in methods.items()}
