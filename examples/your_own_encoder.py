"""Few-shot with any encoder: no classifier at all, every label is learned while it is used.

The encoder is trained on the digits 0 to 4 only; users sort drawings of 5 to 9.

It needs the extra: pip install 'labelmem[demo]'
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits

from labelmem import Adapter, MemoryConfig
from labelmem.models import ConvNet, FitOptions, fit_classifier

KNOWN, USERS = 5, 5
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def main() -> None:
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    order = torch.randperm(len(y))
    images = torch.tensor(X, dtype=torch.float32)[order].view(-1, 1, 8, 8) / 16
    digits = torch.tensor(y)[order]

    model = ConvNet(labels=KNOWN, dim=64, size=8, channels=(16, 16), gain=5.0)
    train = digits < KNOWN
    fit_classifier(model, images[train], digits[train], FitOptions(epochs=6, lr=3e-3))
    encoder = model.body  # without its last layer: an image goes in, a vector comes out

    # labels=() says that the model knows no label: its output is h, the memory alone decides.
    adapter = Adapter(encoder, labels=(), memory=MemoryConfig(lam=20.0, cells_per_label=8))
    print("before the first label:", adapter.stream().predict(images[0]))

    mine = (~train).nonzero()[:, 0]
    hits: list[list[bool]] = []
    for _ in range(USERS):
        stream = adapter.stream()
        hits.append([])
        for i in mine[torch.randperm(len(mine))][:200].tolist():
            name = NAMES[int(digits[i])]
            hits[-1].append(stream.predict(images[i]).label == name)
            stream.observe(name)

    print("the last user's labels:", ", ".join(stream.labels))
    print(f"\ndrawings      right, {USERS} users")
    for first, last in ((0, 5), (5, 20), (20, 50), (50, 100), (100, 200)):
        part = [hit for user in hits for hit in user[first:last]]
        print(f"{first + 1:3} to {last:3}   {sum(part) / len(part):7.1%}")


if __name__ == "__main__":
    main()
