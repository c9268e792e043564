"""Many streams in lockstep are the same streams one by one."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.checks.trial import Trial, refuses, say, stacked
from labelmem.trees import tree_map

_NEAR = 1e-5  # a batch may add in another order than a single stream


def check_lockstep_equals_one_by_one(trial: Trial) -> None:
    """Streams of unequal length, with gaps, predict in a batch what they predict alone."""
    method = trial.make()
    users = [trial.user(k)[: trial.steps - 2 * k] for k in range(3)]
    alone, batch = [method.stream() for _ in users], method.streams(len(users))
    position = [0] * len(users)
    generator = torch.Generator().manual_seed(trial.seed)
    while any(at < len(user) for at, user in zip(position, users, strict=True)):
        turns = [user[min(at, len(user) - 1)] for at, user in zip(position, users, strict=True)]
        inputs, labels = stacked(turns)
        probs = batch.predict(inputs)
        awake = (torch.rand(len(users), generator=generator) < 0.7).tolist()
        seen = [a and at < len(u) for a, at, u in zip(awake, position, users, strict=True)]
        for k, (x, y) in enumerate(turns):
            _agree(probs[k], alone[k].predict(x).probs, f"stream {k} at step {position[k]}")
            if seen[k]:
                alone[k].observe(y)
                position[k] += 1
        batch.observe(labels, mask=seen)
        for k, stream in enumerate(alone):
            say(batch.labels(k) == stream.labels, f"stream {k} lists other labels in a batch")


def check_full_mask_is_no_mask(trial: Trial) -> None:
    """A mask that is true everywhere is the same as none."""
    method, users = trial.make(), [trial.user(k) for k in range(2)]
    plain, masked = method.streams(2), method.streams(2)
    for turns in zip(*users, strict=True):
        x, y = stacked(turns)
        _agree(masked.predict(x), plain.predict(x), "a batch observed with a full mask")
        plain.observe(y)
        masked.observe(y, mask=[True, True])


def check_masked_streams_are_untouched(trial: Trial) -> None:
    """What is masked out of an observation neither predicts differently nor learns the label."""
    batch, users = trial.make().streams(2), [trial.user(k) for k in range(2)]
    probe, _ = stacked(user[0] for user in users)
    for t, turns in enumerate(zip(*users, strict=True)):
        x, y = stacked(turns)
        before, labels = batch.predict(probe)[1].clone(), batch.labels(1)
        batch.predict(x)
        batch.observe(y, mask=[True, False])
        _agree(batch.predict(probe)[1], before, "a stream that was masked out")
        say(batch.labels(1) == labels, "a stream that was masked out learned a label")
        if t % 2:  # now and then the other one learns, so that it has something to lose
            batch.predict(x)
            batch.observe(y, mask=[False, True])


def check_padding_has_no_probability(trial: Trial) -> None:
    """Columns of labels that only other streams own have probability zero."""
    batch, users = trial.make().streams(3), [trial.user(k) for k in range(3)]
    for t, turns in enumerate(zip(*users, strict=True)):
        x, y = stacked(turns)
        probs = batch.predict(x)
        say(probs.shape == (3, batch.width), f"probs has shape {tuple(probs.shape)}")
        for k in range(3):
            beyond = probs[k, len(batch.labels(k)) :]
            say(not bool(beyond.any()), f"stream {k} gives probability to a label it never met")
        batch.observe(y, mask=[True, t % 2 == 0, False])


def check_wrong_batches_are_refused(trial: Trial) -> None:
    """Too few inputs, labels or mask entries: refused, and the batch predicts as before."""
    batch, users = trial.make().streams(2), [trial.user(k) for k in range(2)]
    x, y = stacked(user[0] for user in users)
    say(refuses(lambda: batch.observe(y)), "observe before predict was accepted")
    before = batch.predict(x).clone()
    one = tree_map(lambda leaf: leaf[:1], x)
    say(refuses(lambda: batch.predict(one)), "a batch with too few inputs was accepted")
    say(refuses(lambda: batch.observe(y[:1])), "a batch with too few labels was accepted")
    wrong = refuses(lambda: batch.observe(y, mask=[True]))
    say(wrong, "a mask of the wrong length was accepted")
    say(torch.equal(batch.predict(x), before), "a refused call changed the batch")
    batch.observe(y)
    say(bool(torch.isfinite(batch.predict(x)).all()), "the batch is unusable after a refusal")


def _agree(seen: Tensor, expected: Tensor, what: str) -> None:
    """Equal up to rounding over the columns both have, and zero beyond them."""
    width = min(seen.shape[-1], expected.shape[-1])
    off = (seen[..., :width] - expected[..., :width]).abs()
    worst = float(off.max()) if off.numel() else 0.0
    say(worst < _NEAR, f"{what} predicts otherwise, by up to {worst:.2g}")
    beyond = [seen[..., width:], expected[..., width:]]
    say(not any(bool(part.any()) for part in beyond), f"{what} gives weight to labels it lacks")
