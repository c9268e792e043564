from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from logs.habits import SMALL, events, write_log

from labelmem.errors import DataError, StorageError
from labelmem.logs.card import verdict
from labelmem.logs.fit_command import fit_log
from labelmem.logs.folder import load_fitted
from labelmem.logs.rows import Columns
from labelmem.logs.scores import Interval

COLUMNS = Columns("user", "place", "ts")


def test_a_folder_has_all_its_parts(model_folder: Path) -> None:
    names = sorted(path.name for path in model_folder.iterdir())
    assert names == [
        "card.json", "card.md", "combiner.safetensors", "config.json", "labels.json",
        "model.safetensors",
    ]  # fmt: skip
    assert not list(model_folder.parent.glob(".*"))  # the workshop was tidied up


def test_the_card_compares_on_held_out_users(model_folder: Path) -> None:
    card = json.loads((model_folder / "card.json").read_text())
    assert set(card["figures"]) == {"lmn", "counter", "static", "unigram"}
    for figures in card["figures"].values():
        for figure in figures.values():
            assert figure["low"] <= figure["value"] <= figure["high"]
    users = card["users"]
    assert users["train"] + users["valid"] + users["test"] == 24
    assert card["verdict"]["sentence"] in (model_folder / "card.md").read_text()


def test_rare_items_are_left_to_memories(model_folder: Path) -> None:
    labels = load_fitted(model_folder).vocabulary.names
    assert "place 0" in labels and not any(label.startswith("home") for label in labels)


def test_loading_gives_the_adapter_that_was_measured(model_folder: Path) -> None:
    one, other = (load_fitted(model_folder).adapter for _ in range(2))
    x = torch.tensor([len(one.known)])
    steps = [a.advance(a.initial_state(1), x, len(a.known)).probs for a in (one, other)]
    assert torch.equal(*steps) and float(steps[0].sum()) == pytest.approx(1)


def test_a_fit_that_was_stopped_goes_on_to_the_same_model(
    log_file: Path, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelmem.logs.fitting import Fitter

    out = tmp_path / "model"
    told: list[str] = []

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    settings: dict[str, Any] = {"recipe": SMALL, "show": False}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Fitter, "_measure", stopped)
        fit_log(log_file, COLUMNS, out, **settings)
    assert not out.exists()  # what is not whole has no name that looks whole
    fit_log(log_file, COLUMNS, out, tell=told.append, **settings)
    assert "going on where an earlier call was stopped" in told
    for name in ("model.safetensors", "combiner.safetensors", "labels.json", "card.json"):
        assert (out / name).read_bytes() == (model_folder / name).read_bytes()


def test_a_folder_is_not_overwritten(log_file: Path, model_folder: Path) -> None:
    with pytest.raises(StorageError, match="exists already"):
        fit_log(log_file, COLUMNS, model_folder)


def test_too_few_users_are_said(tmp_path: Path) -> None:
    path = write_log(tmp_path / "few.csv", events(users=4))
    with pytest.raises(DataError, match="4 users with two events or more; at least 10"):
        fit_log(path, COLUMNS, tmp_path / "model")


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    rows = [(f"u{i}", f"only of {i}", t) for i in range(12) for t in range(3)]
    with pytest.raises(DataError, match="nothing to learn from other users"):
        fit_log(write_log(tmp_path / "lone.csv", rows), COLUMNS, tmp_path / "model")


@pytest.mark.parametrize(
    ("nats", "mrr", "use"),
    [
        ((0.2, 0.1, 0.3), (0.02, 0.01, 0.03), "yes"),
        ((0.2, -0.1, 0.3), (0.02, 0.01, 0.03), "unclear"),
        ((-0.1, -0.2, 0.1), (0.02, 0.01, 0.03), "unclear"),
        ((-0.2, -0.3, -0.1), (-0.02, -0.03, -0.01), "no"),
    ],
)
def test_the_verdict_is_plain(
    nats: tuple[float, float, float], mrr: tuple[float, float, float], use: str
) -> None:
    told = verdict({"log_perplexity": Interval(*nats), "mrr": Interval(*mrr)})
    assert told["use"] == use and (use == "yes") != ("NOT" in told["sentence"])


def test_another_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no model folder"):
        load_fitted(tmp_path)
