"""A whole episode of Table 4: thousands of labels, each shown four times, one after the other.

    python benchmarks/few_shot.py --threads 2 --json results/few_shot.json
    python benchmarks/few_shot.py --device cuda

Made-up characters as many and as large as Omniglot's, and a network that was not trained: neither
changes how long anything takes, except that an untrained memory is wrong more often and so writes
more. Times include the network. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch
from labelmem_paper.experiments.few_shot.embeddings import make_embedding
from labelmem_paper.experiments.few_shot.episode import draw_episode
from labelmem_paper.experiments.few_shot.prototypes import replay_means
from labelmem_paper.experiments.few_shot.replay import replay
from labelmem_paper.experiments.few_shot.task import Shown, vectors
from labelmem_paper.experiments.images.drawings import made_up
from labelmem_paper.methods.kaiser_memory import KaiserMemory
from torch import Tensor

from labelmem.config import MemoryConfig
from labelmem.models import ConvNet

DIM, SHOTS, SIZE = 128, 3, 28


def memories(labels: int, y: Tensor) -> dict[str, Callable[[Tensor], Tensor]]:
    """What answers from vectors h (N, dim), by name."""

    def labeled(cells: int) -> Callable[[Tensor], Tensor]:
        config = MemoryConfig(lam=5.0, delta=0.0, margin=3.0, cells_per_label=cells)
        return lambda h: replay(config, h, y, labels)

    def kaiser(cells: int) -> Callable[[Tensor], Tensor]:
        return lambda h: KaiserMemory(cells * labels, DIM).replay(h.cpu(), y, torch.Generator())

    found = {f"LMN, {cells} cells per label": labeled(cells) for cells in (2, 5)}
    found |= {f"Kaiser, {cells} cells per label": kaiser(cells) for cells in (2, 5)}
    return found | {"prototypical mean": lambda h: replay_means(h.cpu(), y, labels)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--labels", type=int, default=3856)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    pixels = torch.from_numpy(made_up(given.labels, SHOTS + 1, SIZE).pixels)
    pictures = pixels.reshape(given.labels, SHOTS + 1, SIZE, SIZE).to(given.device)
    shown = Shown(draw_episode(given.labels, SHOTS + 1, SHOTS, seed=0), pictures)
    network = make_embedding("labeled", ConvNet(given.labels, size=SIZE, dim=DIM))
    network = network.to(given.device).eval().requires_grad_(False)
    vectors(network, shown, batch=2000)  # the first call of a device takes longer
    steps = len(shown.episode.label)
    seconds = {}
    for name, answer in memories(given.labels, shown.episode.label).items():
        clock = time.perf_counter()
        answer(vectors(network, shown))
        seconds[name] = round(time.perf_counter() - clock, 2)
        print(f"{name:<26} {seconds[name]:7.2f} s for {steps:,} predictions", flush=True)
    device = torch.cuda.get_device_name() if given.device == "cuda" else platform.machine()
    if given.json:
        sizes = {"labels": given.labels, "predictions": steps, "threads": given.threads}
        record = {"device": device, "torch": torch.__version__, **sizes, "seconds": seconds}
        given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
