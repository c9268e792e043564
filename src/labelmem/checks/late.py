"""Labels that come late, twice, or to the wrong stream."""

from __future__ import annotations

from typing import Any

from labelmem.checks.answers import expect_valid
from labelmem.checks.trial import Trial, all_same, follow, refuses, say, snapshot
from labelmem.errors import ObserveError


def check_naming_the_latest_prediction(trial: Trial) -> None:
    """``observe(y, prediction=p)`` of the latest prediction is ``observe(y)``."""
    method, turns = trial.make(), trial.user(0)
    expected = follow(method.stream(), turns)
    stream, seen = method.stream(), []
    for x, y in turns:
        p = stream.predict(x)
        seen.append(p.probs.clone())
        stream.observe(y, prediction=p)
    say(all_same(seen, expected), "naming the latest prediction gives another result")


def check_late_labels(trial: Trial) -> None:
    """Labels may come late and in another order; the stream stays sound, and repeatable."""
    method, turns = trial.make(), trial.user(0)
    files = []
    for _ in range(2):
        stream = method.stream()
        follow(stream, turns[:3])
        late = [(stream.predict(x), y) for x, y in turns[3:]]
        for p, y in reversed(late):
            stream.observe(y, prediction=p)
            expect_valid(stream.predict(turns[0][0]), nothing_seen=False)
        say(stream.observed == trial.steps, "a late label was not counted as an observation")
        files.append(snapshot(stream))
    say(files[0] == files[1], "the same late labels led to two different states")
    new = dict.fromkeys(y for _, y in [*turns[:3], *turns[:2:-1]] if method.known.find(y) is None)
    say(stream.labels == [*method.known.names, *new], "late labels are not in order of observation")


def check_wrong_observations_are_refused(trial: Trial) -> None:
    """Nothing to observe, observed before, another stream's, older than a reset: refused."""
    method, turns = trial.make(), trial.user(0)
    stream, other = method.stream(), method.stream()
    label = turns[0][1]
    forgotten = stream.predict(turns[0][0])
    stream.reset()

    def refused(**named: Any) -> bool:
        return refuses(lambda: stream.observe(label, **named), ObserveError)

    say(refused(), "observe before any predict was accepted")
    follow(stream, turns[:3])
    p = stream.predict(turns[3][0])
    stream.observe(turns[3][1], prediction=p)
    foreign = other.predict(turns[4][0])
    before = snapshot(stream)
    say(refused(prediction=p), "a label was accepted a second time")
    say(refused(prediction=foreign), "a label was accepted for another stream's prediction")
    say(refused(prediction=forgotten), "a label was accepted for a prediction made before a reset")
    say(refused(), "a label was accepted without a prediction")
    say(snapshot(stream) == before, "a refused observation changed the state")


def check_unusable_labels_are_refused(trial: Trial) -> None:
    """A label that cannot be hashed is refused, the prediction stays open, the state as it was."""
    stream, turns = trial.make().stream(), trial.user(0)
    follow(stream, turns[:3])
    before = snapshot(stream)
    stream.predict(turns[3][0])
    unusable: Any = [1, 2]
    accepted = not refuses(lambda: stream.observe(unusable))
    say(not accepted, "a label that cannot be hashed was accepted")
    say(snapshot(stream) == before, "a refused label changed the state")
    stream.observe(turns[3][1])
