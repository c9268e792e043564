"""A GRU of your own predicts where users go next; the memory learns each user's favourites."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from labelmem import Adapter
from labelmem.demo.synthetic import SyntheticRecipe, generate
from labelmem.evaluation import evaluate


class NextVenue(nn.Module):
    """A recurrent model: ``initial_state(n)``, and a forward ``(x, state) -> (logits, state)``."""

    def __init__(self, venues: int, dim: int = 48) -> None:
        super().__init__()
        self.vectors = nn.Embedding(venues + 1, dim)  # the last one stands for all it does not know
        self.cell = nn.GRUCell(dim, dim)
        self.head = nn.Linear(dim, venues)

    def initial_state(self, n: int) -> Tensor:
        return self.head.weight.new_zeros(n, self.cell.hidden_size)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = self.cell(self.vectors(x.clamp(max=self.head.out_features)), state)
        return self.head(state), state


def main() -> None:
    torch.manual_seed(0)
    data = generate(SyntheticRecipe(users=200, labels=200, max_length=80), seed=0)
    # The label is where a user goes, the input where they were before; at first that is nowhere.
    Y, Y_test = (torch.tensor(np.stack(data.arrays(part))) for part in ("train", "test"))
    X, X_test = (nn.functional.pad(y, (1, -1), value=data.vocabulary) for y in (Y, Y_test))

    model = NextVenue(data.vocabulary)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-2)
    for _ in range(30):
        state, loss = model.initial_state(len(X)), torch.zeros(())
        for x, y in zip(X.T, Y.T, strict=True):
            logits, state = model(x, state)
            loss = loss + nn.functional.cross_entropy(logits, y)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()

    users = list(zip(X_test, Y_test, strict=True))
    print(f"{len(users)} new users         right about known venues   about new ones")
    for title, theta in (("the model alone", 0.0), ("with memory", 0.7)):
        figures = evaluate(Adapter(model, combiner=theta), users).result().metrics
        print(f"{title:22}{figures['accuracy_seen']:20.1%}{figures['accuracy_new']:19.1%}")


if __name__ == "__main__":
    main()
