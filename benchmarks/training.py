"""An epoch of combiner training: as it is done, against the plain loop step by step.

    PYTHONPATH=src python benchmarks/training.py --device cuda --json results/training.json

Random streams of the size of Foursquare NYC's, in which users return to their own places. Both ways
train on the same streams in the same batches; the loop takes no short way, neither unrolled streams
nor fused kernels. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from labelmem import Adapter, Combiner, MemoryConfig, training
from labelmem.fast import plainly
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
        "label combiner": Adapter(gru, memory=ALWAYS, combiner=Combiner(kind="label")),
    }


def epoch(adapter: Adapter, given: argparse.Namespace, step_by_step: bool) -> dict[str, Any]:
    """Seconds to prepare and of an epoch, its microseconds a token, and the most memory in use."""
    device = torch.device(given.device)
    data = streams(given.streams, given.length, given.labels)
    options = training.FitOptions(batch_size=given.batch, truncate=16)

    def now() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    def trained(sequences: list[Recorded]) -> tuple[float, float]:
        start = now()
        trainer = training._Trainer(adapter, options, [(adapter, sequences)], data[:1])
        ready = now()
        trainer._epoch(1, lambda *_, **__: None, 0.0)
        return ready - start, now() - ready

    can = training.can_unroll
    with (
        patch.object(training, "can_unroll", lambda *a: not step_by_step and can(*a)),
        plainly() if step_by_step else nullcontext(),
    ):
        trained(data[:2])  # makes what is made once
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        prepare, seconds = trained(data)
    tokens = given.streams * given.length
    peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None
    return {
        "prepare_s": prepare,
        "epoch_s": seconds,
        "us_per_token": 1e6 * seconds / tokens,
        "peak_gib": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--streams", type=int, default=600)
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
            times = slow["epoch_s"] / fast["epoch_s"]
            rows.append({"combiner": name, "step_by_step": slow, "as_done": fast, "times": times})
            print(json.dumps(rows[-1]))
    if given.json:
        device = torch.cuda.get_device_name() if "cuda" in given.device else "cpu"
        sizes = {k: v for k, v in vars(given).items() if type(v) is int}
        about = {"device": device, "python": platform.python_version(), "torch": torch.__version__}
        given.json.write_text(json.dumps({**about, "sizes": sizes, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
