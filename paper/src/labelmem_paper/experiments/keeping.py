"""Networks that are trained once and kept, also when several runs want them at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from labelmem.storage import load_state, save_state
from labelmem_paper.experiments.records import locked

__all__ = ["keep"]


def keep(
    path: Path, kind: str, network: nn.Module, train: Callable[[Path], None], about: dict[str, Any]
) -> None:
    """Give a network the weights kept at ``path``; train it and keep them where there are none.

    Who comes while another process trains the same network waits for its weights.

    Parameters
    ----------
    kind
        What the file says it holds.
    train
        Trains the network, with a file to continue from if it exists: a killed training goes on.
    about
        Kept with the weights.
    """
    if not path.exists():
        with locked(path.with_suffix(".lock")):
            if not path.exists():  # else it was made while this process waited
                checkpoint = path.with_suffix(".checkpoint")
                train(checkpoint)
                save_state(path, kind, network.state_dict(), about)
                checkpoint.unlink(missing_ok=True)
                return
    weights, _ = load_state(path, kind)
    network.load_state_dict(weights)
