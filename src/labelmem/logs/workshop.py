"""A folder where a fit keeps what it has done so far, so that a killed one goes on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from labelmem.errors import StorageError
from labelmem.storage import load_state, save_state, write_file
from labelmem.targets import check_free

__all__ = ["Workshop"]


class Workshop:
    """Stands beside the model folder to be, under another name, until that is whole.

    Parameters
    ----------
    out
        The model folder to be; nothing may be there.
    identity
        What decides the outcome. Work of another identity is thrown away.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shop = Workshop(Path(folder, "model"), {"seed": 0})
    ...     _ = Path(shop.bench, "config.json").write_text("{}")
    ...     shop.deliver()
    ...     sorted(path.name for path in Path(folder).rglob("*"))
    ['config.json', 'model']
    """

    def __init__(self, out: Path, identity: dict[str, Any]) -> None:
        check_free(out)
        self.out = out
        self.folder = out.absolute().with_name(f".{out.name}.fitting")
        note = self.folder / "identity.json"
        text = json.dumps(identity, sort_keys=True)
        self.resumed = note.exists() and note.read_text(encoding="utf-8") == text
        if self.folder.exists() and not self.resumed:
            if not note.exists() and any(self.folder.iterdir()):
                raise StorageError(f"{self.folder} holds something else; move it away")
            shutil.rmtree(self.folder, ignore_errors=True)
        self.bench = self.folder / "model"
        self.bench.mkdir(parents=True, exist_ok=True)
        write_file(note, text.encode())

    def keep(self, name: str, network: nn.Module, train: Callable[[Path], None]) -> None:
        """Give a network the weights kept under ``name``; train it where there are none.

        ``train`` gets a file to continue from if it exists.
        """
        path = self.folder / f"{name}.safetensors"
        if path.exists():
            network.load_state_dict(load_state(path, "network")[0])
            return
        checkpoint = self.checkpoint(name)
        train(checkpoint)
        save_state(path, "network", network.state_dict(), {})
        checkpoint.unlink(missing_ok=True)

    def checkpoint(self, name: str) -> Path:
        """A file for a training that can be continued."""
        return self.folder / f"{name}.checkpoint"

    def deliver(self) -> None:
        """Put what lies on the bench in its place, all at once, and tidy up."""
        if self.out.exists():
            self.out.rmdir()  # empty, as was checked
        os.replace(self.bench, self.out)
        shutil.rmtree(self.folder, ignore_errors=True)
