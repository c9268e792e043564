"""Task 2: a sequence model meets people with habits, and venues it has never heard of."""

from __future__ import annotations

import numpy as np
import torch

from labelmem.demo.synthetic import SyntheticRecipe, Visitors, generate
from labelmem.demo.task import Size, Task, seeded
from labelmem.keys import RecentTokens
from labelmem.models import FitOptions, GRUModel, fit_sequences
from labelmem.online import Recorded
from labelmem.progress import progress_bar
from labelmem.split import Part

__all__ = ["make_habits", "recorded"]


def make_habits(size: Size, seed: int) -> Task:
    """Train the model on some of the generator's users and keep the others.

    Only the generator's test users visit new venues, so the validation users are a part of those.
    """
    low, high = size.visits
    recipe = SyntheticRecipe(
        users=size.visitors, min_length=low, max_length=high, test_share=0.5, valid_share=0.0
    )
    data = generate(recipe, seed)
    with seeded(seed):
        model = GRUModel(data.vocabulary, dim=48, dropout=0.2)
    options = FitOptions(epochs=size.model_epochs, patience=3, lr=5e-3, seed=seed)
    taught = [torch.from_numpy(visits) for visits in data.arrays("train")]
    with progress_bar("habits: train the model", options.epochs) as report:
        fit_sequences(model, taught, options, progress=lambda *_: report())
    met = recorded(data, "test")
    valid, test = met[: len(met) // 2], met[len(met) // 2 :]
    new = np.concatenate([visits for _, visits in test]) >= data.vocabulary
    return Task(
        name="habits",
        story=(
            f"A recurrent network was trained to predict the next of {data.vocabulary} venues from "
            f"the visits of {len(taught)} made-up people.",
            f"It now meets {len(test)} others. Each has {recipe.favourites} favourites and returns "
            "to them by habit: at a time of the day, one after another, or several times in a row.",
            f"{new.mean():.0%} of their visits go to venues that are new to the model.",
            f"Whatever a method has to choose is chosen on {len(valid)} people of the same kind.",
        ),
        model=model,
        labels=data.vocabulary,
        baselines=("static", "counter", "sgd-head"),
        train=recorded(data, "train"),
        valid=valid,
        test=test,
        adapter={"key": RecentTokens(last=2, fade=0.5, seed=seed)},
    )


def recorded(data: Visitors, part: Part) -> list[Recorded]:
    """Each user's stream: the input of a step is the venue visited before it.

    The first input, and one after a venue that the model has no vector for, is the token that
    stands for "nothing known".

    Examples
    --------
    >>> data = generate(SyntheticRecipe(users=10, labels=20, new_labels=4, favourites=4), seed=1)
    >>> inputs, visits = recorded(data, "test")[0]
    >>> int(inputs[0]), int(inputs.max()) <= data.vocabulary, len(inputs) == len(visits)
    (20, True, True)
    """
    unknown = data.vocabulary
    streams: list[Recorded] = []
    for visits in data.arrays(part):
        before = np.concatenate([[unknown], visits[:-1]])
        inputs = torch.from_numpy(np.minimum(before, unknown))
        streams.append((inputs, visits.tolist()))
    return streams
