"""Labels come back late and out of order: how much does waiting cost?"""

from __future__ import annotations

import random

import torch

from labelmem import Adapter, MemoryConfig, Prediction
from labelmem.models import MLP

KINDS, FEATURES, STEPS = 20, 16, 400


def accuracy(adapter: Adapter, longest_wait: int) -> float:
    """One user, whose answers to a question come up to ``longest_wait`` questions later."""
    dice = random.Random(0)
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(KINDS, FEATURES, generator=generator)
    stream = adapter.stream()
    waiting: list[tuple[int, Prediction, str]] = []  # when it is answered, and what
    right = 0
    for step in range(STEPS):
        kind = dice.randrange(KINDS)
        x = centres[kind] + 0.5 * torch.randn(FEATURES, generator=generator)
        p = stream.predict(x)  # keep it: it is what the late label belongs to
        truth = f"kind {kind}"
        right += p.label == truth
        waiting.append((step + dice.randint(0, longest_wait), p, truth))
        for answered in [entry for entry in waiting if entry[0] <= step]:
            _, prediction, label = answered
            stream.observe(label, prediction=prediction)
            waiting.remove(answered)
    return right / STEPS  # what was never answered has changed nothing


def main() -> None:
    torch.manual_seed(0)
    model = MLP(FEATURES, labels=4, hidden=(), dim=32)  # it knows none of the user's kinds
    adapter = Adapter(model, combiner=0.5, memory=MemoryConfig(lam=20.0))
    print(f"{KINDS} kinds that the model does not know, {STEPS} questions")
    print("longest wait   right")
    for wait in (0, 1, 5, 20, 100):
        print(f"{wait:12}  {accuracy(adapter, wait):6.1%}")


if __name__ == "__main__":
    main()
