"""Streams share the method and nothing else."""

from __future__ import annotations

from labelmem.checks.trial import Trial, all_same, follow, say, snapshot


def check_making_is_repeatable(trial: Trial) -> None:
    """Two methods made the same way behave the same; the other checks rely on it."""
    first, second = trial.make(), trial.make()
    turns = trial.user(0)
    equal = all_same(follow(first.stream(), turns), follow(second.stream(), turns))
    say(equal, "two calls of make gave methods that predict differently; seed what is random")


def check_streams_are_independent(trial: Trial) -> None:
    """A stream is not moved by what another one of the same method learns."""
    method, turns, others = trial.make(), trial.user(0), trial.user(1)
    expected = follow(method.stream(), turns)
    stream, noise, seen = method.stream(), method.stream(), []
    for turn, other in zip(turns, others, strict=True):
        follow(noise, [other])
        seen += follow(stream, [turn])
        follow(method.stream(), [other])
    say(all_same(seen, expected), "what one stream observed changed another one's predictions")


def check_new_labels_are_private(trial: Trial) -> None:
    """A label that one stream met first is unknown everywhere else."""
    method, turns = trial.make(), trial.user(0)
    quiet, busy = method.stream(), method.stream()
    x = turns[0][0]
    before = quiet.predict(x).labels
    follow(busy, turns)
    for stream in (quiet, method.stream()):
        p = stream.predict(x)
        known = list(method.known.names)
        say(p.labels == before == known, "a new label of one stream is visible in another")
        say(p.probs.shape == (len(known),), "probs has columns for another stream's labels")


def check_reset_is_as_new(trial: Trial) -> None:
    """After a reset a stream does exactly what a new one does."""
    method = trial.make()
    new, used = method.stream(), method.stream()
    follow(used, trial.user(1))
    used.reset()
    say(snapshot(used) == snapshot(new), "reset left something of the old state behind")
    say(used.labels == new.labels, "reset left labels of the old stream behind")
    turns = trial.user(0)
    say(all_same(follow(used, turns), follow(new, turns)), "a reset stream is not as a new one")
