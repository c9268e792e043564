from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from labelmem_paper.experiments.keeping import keep
from torch import nn


def test_a_network_is_trained_once_and_found_again(tmp_path: Path) -> None:
    """Threads stand in for processes: each opens the lock file for itself."""
    path, trained = tmp_path / "net.safetensors", []

    def get(seed: int) -> torch.Tensor:
        network = nn.Linear(2, 2)

        def train(checkpoint: Path) -> None:
            trained.append(seed)
            with torch.no_grad():
                network.weight.fill_(float(seed))
            checkpoint.write_text("half way")

        keep(path, "net", network, train, {"seed": seed})
        return network.weight.detach()

    with ThreadPoolExecutor(4) as pool:
        weights = list(pool.map(get, range(4)))
    assert len(trained) == 1
    assert all(torch.equal(w, torch.full((2, 2), float(trained[0]))) for w in weights)
    assert not path.with_suffix(".checkpoint").exists()
