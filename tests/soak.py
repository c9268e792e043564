"""`make soak`: the stress of ``test_threads.py`` for hours, every form with and without kernels.

    python tests/soak.py --seconds 3600 --seed 0

Each round draws a form, how many threads, how long their streams are, whether they are saved
and loaded on the way, and whether they are compiled. It ends at the first thing that differs.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
from threads import EVERY_FORM, assert_alike, crowd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    faulthandler.enable()
    torch.set_num_threads(1)
    drawn, rounds, steps = random.Random(given.seed), Counter[str](), 0
    begun = said = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - begun < given.seconds:
            kind, plain = drawn.choice(EVERY_FORM), drawn.random() < 0.4
            threads, length = drawn.randint(2, 8), drawn.choice([5, 20, 60, 150])
            users = [kind.recorded(drawn.randrange(10**6), length) for _ in range(threads)]
            where = Path(folder) if drawn.random() < 0.5 else None
            together = drawn.random() < 0.2
            kept = "saved" if where else "not saved"
            round_ = f"{kind}, {threads} threads of {length} steps, plain={plain}, {kept}"
            try:
                if together:
                    stream = crowd(kind.build(), users, Path(folder) / "one", plain)
                    assert stream.observed == threads * length
                else:
                    assert_alike(kind.build(), users, where, plain)
            except BaseException:
                print(f"failed: {round_}, {'one stream' if together else 'a stream each'}")
                raise
            rounds[f"{'one stream' if together else 'a stream each'}, plain={plain}"] += 1
            steps += threads * length
            if time.monotonic() - said > 60:
                said = time.monotonic()
                print(f"{said - begun:.0f} s, {sum(rounds.values())} rounds, {steps} steps")
    print(f"{steps} steps in threads, nothing differed; rounds: {dict(sorted(rounds.items()))}")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    main()
