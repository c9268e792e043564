"""A stream that was saved and loaded goes on as if nothing had happened."""

from __future__ import annotations

import tempfile
from pathlib import Path

from labelmem.checks.trial import Trial, all_same, follow, played, say, snapshot


def check_save_and_load(trial: Trial) -> None:
    """Loaded by another instance at any point, a stream continues bit for bit."""
    method, turns = trial.make(), trial.user(0)
    stream = method.stream()
    for start in (0, 1, trial.steps // 2, trial.steps):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "stream")
            stream.reset()
            follow(stream, turns[:start])
            stream.save(path)
            before = path.read_bytes()
            loaded = trial.make().load_stream(path)
            say(loaded.labels == stream.labels, "a loaded stream lists other labels")
            say(loaded.observed == stream.observed, "a loaded stream counts other observations")
            rest = [*turns[start:], *trial.user(1)]
            equal = all_same(follow(loaded, rest), follow(stream, rest))
            say(equal, f"saved after {start} labels, a stream does not continue as it was")
            say(path.read_bytes() == before, "using a loaded stream changed its file")


def check_saving_is_pure(trial: Trial) -> None:
    """Saving changes nothing, and saving the same state twice gives the same file."""
    method, turns = trial.make(), trial.user(0)
    expected = follow(method.stream(), turns)
    stream, seen = method.stream(), []
    for t, p in enumerate(played(stream, turns)):
        if t in (1, trial.steps // 2):
            say(snapshot(stream) == snapshot(stream), "the same state made two different files")
        seen.append(p.probs.clone())
    say(all_same(seen, expected), "saving changed what a stream predicts")
