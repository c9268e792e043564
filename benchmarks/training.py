"""An epoch of combiner training: streams unrolled at once against the loop step by step.

    PYTHONPATH=src python benchmarks/training.py --device cuda --json results/training.json

Random streams of the size of Foursquare NYC's, in which users return to their own places. Nothing
here is asserted.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from labelmem import Adapter, Combiner, MemoryConfig, training
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.models import GRUModel, HistoryModel
from labelmem.online import Recorded

ALWAYS = MemoryConfig(margin=math.inf)


def streams(count: int, length: int, labels: int) -> list[Recorded]:
    """Half of the labels of a stream are new to it, half are places it has been to."""
    g = torch.Generator().manual_seed(0)
    made: list[Recorded] = []
    for _ in range(count):
        y = torch.randint(labels, (length,), generator=g)
        for t in range(1, length):
            if torch.rand((), generator=g) < 0.5:
                y[t] = y[int(torch.randint(t, (), generator=g))]
        made.append((torch.cat([torch.tensor([labels]), y[:-1]]), y))
    return made


def adapters(labels: int, dim: int, device: str) -> dict[str, Adapter]:
    torch.manual_seed(0)
    key = Joined(RecentTokens(last=2, pair=True), Hidden(0.3))
    history = HistoryModel(labels, dim).to(device).eval()
    gru = GRUModel(labels, dim, tied=True).to(device).eval()
    stream = Combiner(kind="stream", hidden=48, rescorer=64)
    return {
        "stream combiner": Adapter(
            history, memory=ALWAYS, key=key, partition=True, combiner=stream
        ),
        "label combiner": Adapter(gru, memory=ALWAYS, combiner=Combiner()),
    }


def epoch(adapter: Adapter, given: argparse.Namespace, step_by_step: bool) -> dict[str, Any]:
    """Seconds to prepare and of an epoch, its tokens a second, and the most memory in use."""
    device = torch.device(given.device)
    count = given.few if step_by_step else given.streams
    data = streams(count, given.length, given.labels)
    options = training.FitOptions(batch_size=given.batch, truncate=16)

    def now() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    can = training.can_unroll
    with patch.object(training, "can_unroll", lambda *a: not step_by_step and can(*a)):
        start = now()
        trainer = training._Trainer(adapter, options, [(adapter, data)], data[:1])
        ready = now()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        if not step_by_step:  # the first one also makes what is made once
            trainer._epoch(1, lambda *_, **__: None, 0.0)
        begun = now()
        trainer._epoch(2, lambda *_, **__: None, 0.0)
        done = now()
    tokens = count * given.length
    peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None
    return {
        "prepare_s": ready - start,
        "epoch_s": done - begun,
        "us_per_token": 1e6 * (done - begun) / tokens,
        "peak_gib": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--streams", type=int, default=600)
    parser.add_argument("--few", type=int, default=32, help="streams of the loop step by step")
    parser.add_argument("--length", type=int, default=90)
    parser.add_argument("--labels", type=int, default=8279)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--only", help="one of the combiners")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, adapter in adapters(given.labels, given.dim, given.device).items():
        if given.only in (None, name):
            slow, fast = epoch(adapter, given, True), epoch(adapter, given, False)
            times = slow["us_per_token"] / fast["us_per_token"]
            rows.append({"combiner": name, "step_by_step": slow, "at_once": fast, "times": times})
            print(json.dumps(rows[-1]))
    if given.json:
        device = torch.cuda.get_device_name() if "cuda" in given.device else "cpu"
        sizes = {k: v for k, v in vars(given).items() if type(v) is int}
        about = {"device": device, "python": platform.python_version(), "torch": torch.__version__}
        given.json.write_text(json.dumps({**about, "sizes": sizes, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
