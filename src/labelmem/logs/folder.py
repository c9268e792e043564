"""A model folder: the fitted model on disk, and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from labelmem import __version__
from labelmem.adapter import Adapter
from labelmem.combiner import Combiner
from labelmem.config import MemoryConfig
from labelmem.errors import CorruptFileError, FormatVersionError, StorageError
from labelmem.logs.model import adapter_around, made
from labelmem.logs.rows import Columns
from labelmem.logs.vocabulary import Vocabulary
from labelmem.storage import load_state, save_state, write_file

__all__ = ["WEIGHTS", "Fitted", "load_fitted", "read_json", "save_fitted", "write_json"]

_FORMAT = 1
_CONFIG, _MODEL, _COMBINER, _LABELS = (
    "config.json",
    "model.safetensors",
    "combiner.safetensors",
    "labels.json",
)
WEIGHTS = (_MODEL, _COMBINER)
"""The files of what was trained."""
_SETTINGS = ("format", "columns", "labels", "seed")


@dataclass(frozen=True)
class Fitted:
    """What ``labelmem fit`` leaves behind, ready to use."""

    folder: Path
    adapter: Adapter
    vocabulary: Vocabulary
    columns: Columns
    """Of the log it was fitted on; other logs usually have the same."""


def save_fitted(
    folder: Path,
    adapter: Adapter,
    shape: dict[str, Any],
    vocabulary: Vocabulary,
    columns: Columns,
    seed: int,
) -> None:
    """Write a fitted adapter to an existing folder.

    Parameters
    ----------
    shape
        The options that the model was made with.
    seed
        The one that the adapter was made with.
    """
    combiner = adapter.combiner
    assert isinstance(combiner, Combiner)
    save_state(folder / _MODEL, "log-model", adapter.backbone.model.state_dict(), {"shape": shape})
    save_state(
        folder / _COMBINER,
        "log-combiner",
        combiner.state_dict(),
        {"form": combiner.form(), "theta": combiner.start, "memory": adapter.memory.plain()},
    )
    write_json(folder / _LABELS, list(vocabulary.names))
    config = {
        "format": _FORMAT,
        "labelmem": __version__,
        "columns": asdict(columns),
        "labels": len(vocabulary),
        "seed": seed,
    }
    write_json(folder / _CONFIG, config)


def load_fitted(folder: Path, device: torch.device | str = "cpu") -> Fitted:
    """Read what :func:`save_fitted` wrote.

    Raises
    ------
    StorageError
        The folder is none of ours, not whole, or written by a newer labelmem.
    """
    config = _read_config(folder)
    names = read_json(folder / _LABELS, list)
    if len(names) != config["labels"]:
        raise CorruptFileError(
            f"{folder / _LABELS} has {len(names)} labels, {_CONFIG} says {config['labels']}; "
            "the folder is not as it was written: use a copy, or fit again"
        )
    weights, meta = load_state(folder / _MODEL, "log-model")
    model = made(len(names), meta["shape"], config["seed"], torch.device(device))
    model.load_state_dict(weights)
    adapter = adapter_around(model, config["seed"])
    weights, meta = load_state(folder / _COMBINER, "log-combiner")
    adapter.memory = MemoryConfig.from_plain(meta["memory"])
    adapter.combiner = Combiner(theta=meta["theta"], **meta["form"])
    adapter.combiner.load_state_dict(weights)
    return Fitted(folder, adapter, Vocabulary(names), Columns(**config["columns"]))


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.exists():
        raise StorageError(
            f"{folder} is no model folder: it has no {_CONFIG}. Make one with `labelmem fit`"
        )
    config: dict[str, Any] = read_json(path, dict)
    if config.get("format", _FORMAT) > _FORMAT:
        raise FormatVersionError(
            f"{folder} has format {config['format']}, this labelmem {__version__} reads up to "
            f"{_FORMAT}; update labelmem to read it"
        )
    missing = [name for name in _SETTINGS if name not in config]
    if missing:
        raise CorruptFileError(f"{path} lacks {', '.join(missing)}; use a copy, or fit again")
    return config


def read_json(path: Path, kind: type) -> Any:
    """A document of the expected kind, or an error that names the file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CorruptFileError(
            f"{path} cannot be read ({reason}); use a copy, or make it again"
        ) from error
    if not isinstance(document, kind):
        raise CorruptFileError(
            f"{path} holds a {type(document).__name__}, expected a {kind.__name__}; "
            "use a copy, or make it again"
        )
    return document


def write_json(path: Path, document: Any) -> None:
    """Write a document as people can read it."""
    write_file(path, (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode())
