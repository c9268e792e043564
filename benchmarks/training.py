"""An epoch of combiner training: as it is done, against the plain loop step by step.

    PYTHONPATH=src python benchmarks/training.py --device cuda --json results/training.json

Random streams of the size of Foursquare NYC's, in which users return to their own places. Both ways
train on the same streams in the same batches; the loop takes no short way, neither steps at once
nor fused kernels, and only the first steps of each stream: its time is counted by tokens. Then the
gradients of both are compared, and the most memory that training takes with many labels is found.
Nothing here is asserted. Products have all bits, unless ``--tf32`` lets cuDNN round.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from labelmem import Adapter, Combiner, MemoryConfig, training
from labelmem.combiner import StreamCombiner
from labelmem.fast import plainly
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.models import GRUModel, HistoryModel
from labelmem.online import Recorded

KINDS = {"stream": math.inf, "label": math.inf, "label, margin 3": 3.0}
"""The combiners that are trained, and the margins of their memories."""


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


def adapter(kind: str, labels: int, dim: int, device: str) -> Adapter:
    torch.manual_seed(0)
    memory = MemoryConfig(margin=KINDS[kind])
    if kind == "stream":
        history = HistoryModel(labels, dim).to(device).eval()
        key = Joined(RecentTokens(last=2, pair=True), Hidden(0.3))
        combiner = Combiner(kind="stream", hidden=48, rescorer=64)
        return Adapter(history, memory=memory, key=key, partition=True, combiner=combiner)
    gru = GRUModel(labels, dim, tied=True).to(device).eval()
    return Adapter(gru, memory=memory, combiner=Combiner(kind="label", hidden=16))


@contextmanager
def step_by_step() -> Iterator[None]:
    """Take no short way inside."""
    with patch.object(training, "can_unroll", lambda *_: False), plainly():
        yield


def trainer_of(made: Adapter, data: list[Recorded], given: argparse.Namespace) -> Any:
    options = training.FitOptions(batch_size=given.batch, truncate=given.truncate)
    return training._Trainer(made, options, [(made, data)], data[:1])


def epoch(made: Adapter, data: list[Recorded], given: argparse.Namespace) -> dict[str, float]:
    """Seconds to prepare and of an epoch, the latter also by token."""
    cuda = made.device.type == "cuda"

    def now() -> float:
        if cuda:
            torch.cuda.synchronize(made.device)
        return time.perf_counter()

    took = []
    for _ in range(2):  # the first time makes what is made once
        start = now()
        trainer = trainer_of(made, data, given)
        ready = now()
        trainer._epoch(1, lambda *_, **__: None, 0.0)
        took = [ready - start, now() - ready]
    by_token = 1e6 * took[1] / sum(len(y) for _, y in data)
    return {"prepare_s": took[0], "epoch_s": took[1], "us_per_token": by_token}


def gradients(made: Adapter, data: list[Recorded], given: argparse.Namespace) -> dict[str, Tensor]:
    """The loss of all streams, and its slope by every weight."""
    trainer = trainer_of(made, data, given)
    assert isinstance(made.combiner, Combiner)
    made.combiner.train()  # cuDNN's recurrences have no slopes otherwise
    made.combiner.zero_grad()
    total = torch.zeros((), device=made.device, dtype=torch.float64)
    for batch in trainer.train:
        for loss, _ in batch():
            torch.autograd.backward(loss)
            total += loss.detach()
    found = made.combiner.named_parameters()
    return {"loss": total} | {name: p.grad.clone() for name, p in found if p.grad is not None}


def gaps(made: Adapter, given: argparse.Namespace) -> dict[str, float]:
    """How far the two ways are apart, over the largest entry of each gradient."""
    g = torch.Generator().manual_seed(1)
    assert isinstance(made.combiner, Combiner)
    with torch.no_grad():
        for p in made.combiner.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=g).to(p.device))
    # Streams at once are one stretch, whatever the truncation; then so must be the loop.
    length = given.truncate * (1 if isinstance(made.combiner, StreamCombiner) else 2)
    data = streams(given.batch, length, len(made.known))
    fast = gradients(made, data, given)
    with step_by_step():
        slow = gradients(made, data, given)
    return {
        name: float((fast[name] - x).abs().max() / x.abs().max().clamp(min=1e-12))
        for name, x in slow.items()
    }


def compared(kind: str, given: argparse.Namespace) -> dict[str, Any]:
    made = adapter(kind, given.labels, given.dim, given.device)
    fast = epoch(made, streams(given.streams, given.length, given.labels), given)
    made = adapter(kind, given.labels, given.dim, given.device)
    with step_by_step():
        slow = epoch(made, streams(given.streams, given.few, given.labels), given)
    times = slow["us_per_token"] / fast["us_per_token"]
    found = {"combiner": kind, "step_by_step": slow, "as_done": fast, "times": times}
    return found | {"gaps": gaps(made, given)}


def most_memory(given: argparse.Namespace) -> dict[str, float]:
    """GiB in use at most while the label combiner is trained with many labels, model included."""
    made = adapter("label", given.many, given.dim, given.device)
    data = streams(given.batch, 2 * given.truncate, given.many)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    took = epoch(made, data, given)
    peak = torch.cuda.max_memory_allocated()
    return {"labels": given.many, "before_gib": before / 2**30, "peak_gib": peak / 2**30} | took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--length", type=int, default=200)
    parser.add_argument("--few", type=int, default=48, help="steps of a stream in the plain loop")
    parser.add_argument("--labels", type=int, default=8279)
    parser.add_argument("--many", type=int, default=40000, help="labels when memory is measured")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--truncate", type=int, default=16)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument(
        "--tf32", action="store_true", help="let cuDNN round what it multiplies, PyTorch's default"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cuda = "cuda" in given.device
    torch.backends.cudnn.allow_tf32 = given.tf32
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        if given.only in (None, kind):
            rows.append(compared(kind, given))
            print(json.dumps(rows[-1]), flush=True)
    most = most_memory(given) if cuda else None
    print(json.dumps({"most memory": most}))
    if given.json:
        device = torch.cuda.get_device_name() if cuda else "cpu"
        sizes = {k: v for k, v in vars(given).items() if type(v) is int}
        about = {"device": device, "python": platform.python_version(), "torch": torch.__version__}
        found = {**about, "tf32": given.tf32, "sizes": sizes, "rows": rows, "most_memory": most}
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
