"""A digit classifier that knows 0 to 6 meets somebody who also draws 7, 8 and 9.

It needs the extra: pip install 'labelmem[demo]'
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits

from labelmem import Adapter, MemoryConfig
from labelmem.models import MLP, FitOptions, fit_classifier

KNOWN = 7  # the digits below it are trained


def drawings() -> tuple[torch.Tensor, torch.Tensor]:
    """Drawings of 8 x 8 pixels and their digits, shuffled."""
    X, y = load_digits(return_X_y=True)
    order = torch.randperm(len(y))
    return torch.tensor(X, dtype=torch.float32)[order] / 16 - 0.3, torch.tensor(y)[order]


def main() -> None:
    torch.manual_seed(0)
    X, y = drawings()
    train, recorded, user = slice(0, 700), slice(700, 1000), slice(1000, None)
    known = y[train] < KNOWN
    model = MLP(features=64, labels=KNOWN, hidden=(), dim=256)  # stands for your own network
    fit_classifier(model, X[train][known], y[train][known], FitOptions(epochs=30, lr=3e-3))

    # The memory reads what enters the model's last linear layer. Several cells for each label hold
    # several ways of drawing it. The rest is chosen on users that the model has not seen.
    adapter = Adapter(model, combiner=0.5, memory=MemoryConfig(lam=20.0, cells_per_label=8))
    users = list(zip(X[recorded].split(60), y[recorded].split(60), strict=True))
    chosen = adapter.tune(users, trials=20, show=False)
    print("chosen:", chosen.best)

    stream = adapter.stream()
    right, count = torch.zeros(2, 2), torch.zeros(2)
    for x, digit in zip(X[user], y[user].tolist(), strict=True):
        p = stream.predict(x)
        new = int(digit >= KNOWN)
        if new and digit not in stream.labels:
            print(f"the first {digit} is taken for a {p.label}")
        right[0, new] += int(p.model_probs.argmax()) == digit
        right[1, new] += p.label == digit
        count[new] += 1
        stream.observe(digit)  # the user says what it was

    print(f"\nright of {int(count.sum())} drawings   digits 0-6   digits 7-9")
    for title, (seen, new) in zip(("the model alone", "with memory"), right / count, strict=True):
        print(f"{title:24}{seen:10.1%}{new:13.1%}")
    print(f"\nwhy is the last one a {p.label}?\n{stream.explain(p)}")


if __name__ == "__main__":
    main()
