"""Two thousand users in lockstep, each with names of their own for what they see."""

from __future__ import annotations

import time

import torch

from labelmem import Adapter, MemoryConfig
from labelmem.models import MLP

USERS, STEPS, KINDS, FEATURES = 2_000, 40, 12, 16


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    centres = torch.randn(KINDS, FEATURES, generator=generator)
    # A model that was trained for nobody in particular: here not at all, it only gives features.
    model = MLP(FEATURES, labels=4, hidden=(), dim=32)
    names = [[f"user {u}'s {kind}" for kind in range(KINDS)] for u in range(USERS)]

    batch = Adapter(model, combiner=0.5, memory=MemoryConfig(lam=20.0)).streams(USERS)
    shown = {1, 5, 10, 20, 40}
    start = time.perf_counter()
    print("step   right")
    for step in range(1, STEPS + 1):
        kinds = torch.randint(KINDS, (USERS,), generator=generator)
        noise = 0.5 * torch.randn(USERS, FEATURES, generator=generator)
        probs = batch.predict(centres[kinds] + noise)  # (users, labels), one row for each user
        truth = [names[user][kind] for user, kind in enumerate(kinds.tolist())]
        if step in shown:
            best = probs.argmax(1).tolist()
            hits = sum(batch.labels(u)[best[u]] == truth[u] for u in range(USERS))
            print(f"{step:4}  {hits / USERS:6.1%}")
        # One in ten users does not answer: a stream that is masked out stays as it was.
        batch.observe(truth, mask=torch.rand(USERS, generator=generator) < 0.9)

    seconds = time.perf_counter() - start
    print(f"\n{USERS * STEPS:,} predictions in {seconds:.1f} s")
    print("labels that only user 7 has:", len(batch.labels(7)) - 4)


if __name__ == "__main__":
    main()
