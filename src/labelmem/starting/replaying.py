"""Recorded streams replayed in the default form, or measured as they are replayed in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labelmem.logit_memory import LogitMemory, LogitState
from labelmem.metrics import FLOOR
from labelmem.progress import Report
from labelmem.replay import Features
from labelmem.starting.outcome import Outcome

__all__ = ["Replayed", "measured", "replay_users"]


@dataclass(frozen=True)
class Replayed:
    """What came of streams in the default form, and what their users ended with."""

    outcome: Outcome
    weights: Tensor
    """(n, k) theta of each user."""
    noise: Tensor
    """(n,) the share of labels that each takes to be wrong."""


def measured(
    features: Features, loss: Sequence[Tensor], hit: Sequence[Tensor], known: int
) -> Outcome:
    """The outcome of a lockstep whose steps had these losses and hits, (n,) each."""
    mask, is_known = features.batch.mask, features.batch.y < known
    nats, hits = (torch.stack(list(steps), dim=1)[mask] for steps in (loss, hit))
    return Outcome(nats.detach().double().cpu(), hits.cpu(), is_known[mask].cpu())


@torch.no_grad()
def replay_users(
    online: LogitMemory, head: nn.Module, recorded: Iterable[Features], report: Report
) -> Replayed:
    """Let one user after another predict and learn step by step."""
    outcomes, weights, noise = [], [], []
    for features in recorded:
        for row, length in enumerate(features.batch.mask.sum(1).tolist()):
            state = online.initial_state(1, None)
            steps = list(_steps(online, head, state, features, row, length))
            known = features.batch.y[row, :length] < online.known
            outcomes.append(
                Outcome(
                    torch.tensor([loss for loss, _ in steps], dtype=torch.float64),
                    torch.tensor([hit for _, hit in steps]),
                    known.cpu(),
                )
            )
            (user,) = state.users
            assert user is not None
            weights.append(user.theta)
            noise.append(user.noise)
            report(length)
    noises = torch.tensor(noise, dtype=torch.float64)
    return Replayed(Outcome.joined(outcomes), torch.stack(weights), noises)


def _steps(
    online: LogitMemory,
    head: nn.Module,
    state: LogitState,
    features: Features,
    row: int,
    length: int,
) -> Iterator[tuple[float, bool]]:
    """Loss and hit of each step of one stream."""
    batch = features.batch
    for t in range(length):
        h, key = features.h[row, t][None], features.key[row, t][None]
        step = online.advance(state, None, key, head(h), batch.width, None)
        y = batch.y[row, t][None]
        p = step.probs[0, y].clamp(min=FLOOR)
        hit = (step.probs[0].argmax() == y) & (p > FLOOR)
        online.commit(state, step, y, None)
        yield -float(p.log()), bool(hit)
