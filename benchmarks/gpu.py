"""Many streams in lockstep on one device: plain and recorded steps, the floor in bytes, and rivals.

    PYTHONPATH=src:paper/src python benchmarks/gpu.py --device cuda --json results/gpu.json
    PYTHONPATH=src:paper/src python benchmarks/gpu.py --forms  # kernels alone, cut in several ways
    TRITON_INTERPRET=1 PYTHONPATH=src:paper/src python benchmarks/gpu.py --count    # needs no GPU

A row's ``us`` is one lockstep, a prediction and an observation of every stream, as users take them;
``plain_us`` is the same with every short way switched off: ordinary tensor operations, one by one.
All is measured in one run with one random model and the same random tokens: weights do not matter
for time. Parts that are compared take turns. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from labelmem_paper.methods.maml import MAML

from labelmem import Adapter, Combiner, MemoryConfig, StreamBatch
from labelmem.baselines import make
from labelmem.fast import plainly
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.models import GRUModel, HistoryModel

Row = dict[str, Any]
ALWAYS = MemoryConfig(margin=math.inf)


class Bench:
    def __init__(self, given: argparse.Namespace) -> None:
        self.n, self.labels, self.cells = given.streams, given.labels, given.cells
        self.turns, self.steps, self.seconds = given.turns, given.steps, given.seconds
        self.device = torch.device(given.device)
        torch.manual_seed(0)
        self.dim = given.dim
        self.gru = GRUModel(self.labels, self.dim, tied=True).to(self.device).eval()
        self.history = HistoryModel(self.labels, self.dim).to(self.device).eval()
        # Each stream has met `cells` labels, and meets the same again.
        generator = torch.Generator().manual_seed(0)
        drawn = torch.rand(self.n, self.labels, generator=generator)
        self.own = drawn.topk(self.cells, dim=1).indices.to(self.device)
        self.generator = generator

    def adapters(self) -> dict[str, Callable[[], Adapter]]:
        return {
            "lmn-fixed": lambda: Adapter(self.gru, combiner=0.5),
            "lmn-paper": lambda: Adapter(
                self.gru, memory=MemoryConfig(), combiner=Combiner(kind="label")
            ),
            "lmn": lambda: Adapter(
                self.history,
                memory=ALWAYS,
                key=Joined(RecentTokens(last=2, pair=True), Hidden(0.3)),
                partition=True,
                combiner=Combiner(kind="stream", hidden=48, rescorer=64),
            ),
        }

    def rivals(self) -> dict[str, Callable[[], Any]]:
        return {
            "static": lambda: make("static", self.gru),
            "sgd-all": lambda: make("sgd-all", self.gru),
            "maml": lambda: MAML.made(self.gru, None, None, MAML.chosen_options(dim=50)),
        }

    def tokens(self, steps: int) -> torch.Tensor:
        place = torch.randint(self.cells, (steps, self.n), generator=self.generator)
        return self.own.gather(1, place.T.to(self.device)).T.contiguous()

    def run(self, batch: StreamBatch, tokens: torch.Tensor) -> None:
        for y in tokens:
            batch.predict(y)
            batch.observe_ids(y)

    def timed(self, batch: StreamBatch, plain: bool) -> float:
        """Microseconds of one lockstep."""
        with plainly() if plain else nullcontext():
            self.run(batch, self.tokens(3))  # what was disturbed is made again
            tokens = self.tokens(self.steps)
            start = self.now()
            self.run(batch, tokens)
            return 1e6 * (self.now() - start) / self.steps

    def now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def taken(self) -> Iterator[int]:
        """Turns, no more of them once the time for a method is over."""
        end = time.perf_counter() + self.seconds
        for turn in range(self.turns):
            if turn == 0 or time.perf_counter() < end:
                yield turn

    def lmn(self) -> list[Row]:
        rows = []
        for name, made in self.adapters().items():
            batch = self.filled(made())
            times: dict[bool, list[float]] = {True: [], False: []}
            for _ in self.taken():
                for plain, each in times.items():
                    each.append(self.timed(batch, plain))
            plain, fast = statistics.median(times[True]), statistics.median(times[False])
            key = batch.tensors()["memory.v"].shape[2]
            rows.append({"method": name, "us": fast, "plain_us": plain, "key": key})
            del batch
        return rows

    def filled(self, adapter: Adapter) -> StreamBatch:
        """Streams that have met all of their labels: every cell is there."""
        batch = adapter.streams(self.n)
        for column in self.own.T:
            batch.predict(column)
            batch.observe_ids(column)
        return batch

    def others(self) -> list[Row]:
        rows = []
        for name, made in self.rivals().items():
            batch = made().streams(self.n)
            each = [self.timed(batch, False) for _ in self.taken()]
            rows.append({"method": name, "us": statistics.median(each)})
            del batch
        return rows

    def bytes_of(self, method: str, key: int) -> int:
        """What a lockstep must read or write at least once, whatever the kernels.

        Each cell's vector and each label's weights in the head are read, each probability is
        written. The label combiner also reads and writes its 16 numbers of each label, and r and s:
        those of the last step, and those of this one that it keeps. What may stay in a cache
        between two kernels is not counted, such as logits and the parts of the mixture. Divided by
        the speed of a copy on the same device this is the floor.
        """
        numbers = self.n * (self.cells * key + self.labels) + self.labels * self.dim
        if method == "lmn-paper":
            numbers += self.n * (self.labels + 1) * (2 * 16 + 4)
        return 4 * numbers

    def bandwidth(self) -> float:
        """Bytes a second of a copy, what is read and what is written both counted."""
        size = 2**30 if self.device.type == "cuda" else 2**26
        source = torch.ones(size // 4, device=self.device)
        target, each = torch.empty_like(source), []
        for _ in range(12):
            start = self.now()
            for _ in range(5):
                target.copy_(source)
            each.append((self.now() - start) / 5)
        return 2 * size / statistics.median(each[2:])

    def profile(self) -> None:
        """Where the time of recorded steps goes, kernel by kernel."""
        from torch.profiler import ProfilerActivity, profile

        for name, made in self.adapters().items():
            batch = self.filled(made())
            self.run(batch, self.tokens(5))
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
                self.run(batch, self.tokens(5))
                self.now()
            table = found.key_averages().table(sort_by="cuda_time_total", row_limit=28)
            print(f"== {name}, five locksteps\n{table}")


def measured(bench: Bench) -> list[Row]:
    bandwidth = bench.bandwidth()
    rows = bench.lmn() + bench.others()
    for row in rows:
        row["us_per_token"] = row["us"] / bench.n
        row["tokens_per_second"] = 1e6 * bench.n / row["us"]
        if "plain_us" in row:
            row["times_plain"] = row["plain_us"] / row["us"]
            row["bytes"] = bench.bytes_of(row["method"], row.pop("key"))
            row["floor_us"] = 1e6 * row["bytes"] / bandwidth
            row["over_floor"] = row["us"] / row["floor_us"]
    return [{"method": "copy", "bytes_per_second": bandwidth}, *rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--streams", type=int, default=512)
    parser.add_argument("--labels", type=int, default=8279)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--cells", type=int, default=200, help="labels in each stream's memory")
    parser.add_argument("--steps", type=int, default=20, help="locksteps of one turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="the most for one method")
    parser.add_argument("--forms", action="store_true", help="time kernels cut in several ways")
    parser.add_argument("--count", action="store_true", help="count operations, on a CPU")
    parser.add_argument("--profile", action="store_true", help="print kernels instead of timing")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.count:  # sizes make no difference to the numbers
        given.device, given.streams, given.labels, given.cells, given.dim = "cpu", 3, 40, 6, 8
    bench = Bench(given)
    if given.profile:
        return bench.profile()
    if given.forms:
        from gpu_forms import compared_forms

        rows = compared_forms(bench.n, bench.labels, bench.dim, bench.cells, bench.device)
    elif given.count:
        from gpu_count import counted

        rows = [
            {"method": name} | counted(made(), bench) for name, made in bench.adapters().items()
        ]
    else:
        rows = measured(bench)
    for row in rows:
        numbers = {k: f"{v:,.1f}" if isinstance(v, float) else str(v) for k, v in row.items()}
        print("  ".join(f"{k} {v}" for k, v in numbers.items()))
    if given.json:
        device = torch.cuda.get_device_name() if bench.device.type == "cuda" else "cpu"
        sizes = {k: v for k, v in vars(given).items() if type(v) is int}
        about = {"device": device, "python": platform.python_version(), "torch": torch.__version__}
        given.json.write_text(json.dumps({**about, "sizes": sizes, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
