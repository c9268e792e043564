"""What the reader of a page has before they begin: files, models, a publisher of data."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelmem_paper.datasets import fetch
from logs.habits import SMALL, events

from labelmem.logs import fit_command


def a_small_language_model(folder: Path) -> dict[str, Any]:
    """The name of a model of Hugging Face and of its tokenizer."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<pad>", *"What the user wrote so far. became of it. my card has not come yet".split()]
    known = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokenizer = Tokenizer(models.WordLevel(known, "<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>")
    ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
    config = transformers.GPT2Config(
        vocab_size=len(known), n_positions=64, n_embd=8, n_layer=1, n_head=2, **ends
    )
    for part in (fast, transformers.GPT2LMHeadModel(config)):
        part.save_pretrained(folder)
    return {"name": str(folder)}


def logs_and_embeddings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log, those of two days after it, and embeddings; a model is fitted in seconds."""
    pytest.importorskip("pyarrow")
    from pyarrow import parquet, table

    rows = [(user, place, ts) for user, place, ts in events()]
    rows += [("42", place, 1_600_000_000 + 60 * t) for t, place in enumerate(["gym", "home"] * 4)]
    days = {"events": 0, "monday": 10**6, "tuesday": 2 * 10**6}
    for name, later in days.items():
        lines = [f"{user},{place},{ts + later}" for user, place, ts in rows]
        (folder / f"{name}.csv").write_text("\n".join(["user_id,venue,ts", *lines]) + "\n")
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 4)).astype(np.float32)
    labels, users = [list(rng.choice([*some], size=40)) for some in ("abc", "xy")]
    np.savez(folder / "intents.npz", embeddings=vectors, labels=np.array(labels))
    np.savez(folder / "labelled.npz", embeddings=vectors[::2], labels=np.array(labels[::2]))
    columns = {"vector": vectors.tolist(), "folder": labels, "account": users}
    parquet.write_table(table(columns), folder / "mails.parquet")
    monkeypatch.setattr(fit_command, "recipe_for", lambda *_: SMALL)


def a_publisher_of_check_ins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its archive holds a small city, so that a method of the paper's size takes a second."""
    pytest.importorskip("matplotlib")
    archive = folder.parent / "dataset_tsmc2014.zip"
    rng = np.random.default_rng(0)
    lines = [
        f"{user}\tvenue-{(user + rng.integers(3)) % 10}\tcat\tBridge\t40.6\t-74.0\t-240"
        f"\tTue Apr 03 {hour:02d}:{minute:02d}:00 +0000 2012\n"
        for user in range(30)
        for hour in range(12)
        for minute in range(0, 60, 10)
    ]
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("dataset_tsmc2014/dataset_TSMC2014_NYC.txt", "".join(lines))

    def download(url: str, target: Path, **_: Any) -> str:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(archive, target)
        return "digest"

    monkeypatch.setattr(fetch, "download", download)


def what_the_demo_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
