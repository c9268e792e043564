"""River's own streams: the labeled memory beside river's nearest neighbours and naive Bayes.

Every classifier stands behind a StandardScaler and has its default options; each event is
predicted, then learned. Only streams that need no download. All are timed in one run on one thread,
one after the other on each stream, by the processor's clock: what else runs on the computer counts
for less. A time is the best of the rounds. Nothing here is asserted.

The options of the labeled memory were chosen on other streams
(``labelmem.interop.together.TOGETHER`` says which; most are the generators used here with other
seeds), and none was changed after a look at this table. That the memory needs helpers beside it
was seen here: alone it was behind on six of the nine.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from river import datasets, evaluate, metrics, naive_bayes, neighbors, preprocessing

from labelmem.interop.river import LabelMemClassifier

Row = dict[str, Any]
synth = datasets.synth

STREAMS: dict[str, Callable[[], Any]] = {
    "ImageSegments": lambda: datasets.ImageSegments(),
    "RandomRBF": lambda: synth.RandomRBF(
        seed_model=1, seed_sample=1, n_classes=5, n_features=10, n_centroids=50
    ),
    "RandomRBFDrift": lambda: synth.RandomRBFDrift(
        seed_model=2,
        seed_sample=2,
        n_classes=5,
        n_features=10,
        n_centroids=50,
        change_speed=0.5,
        n_drift_centroids=20,
    ),
    "RandomTree": lambda: synth.RandomTree(
        seed_tree=1, seed_sample=1, n_classes=4, n_num_features=8, n_cat_features=0
    ),
    "LED, 17 idle features": lambda: synth.LED(
        seed=1, noise_percentage=0.1, irrelevant_features=True
    ),
    "LEDDrift": lambda: synth.LEDDrift(
        seed=1, noise_percentage=0.1, irrelevant_features=True, n_drift_features=4
    ),
    "Waveform, 19 idle features": lambda: synth.Waveform(seed=1, has_noise=True),
    "Phishing": lambda: datasets.Phishing(),
    "Bananas": lambda: datasets.Bananas(),
}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "LabelMem": lambda: LabelMemClassifier(),
    "KNN": lambda: neighbors.KNNClassifier(),
    "KNN, exact, last 1,000": lambda: neighbors.KNNClassifier(
        engine=neighbors.LazySearch(window_size=1000)
    ),
    "GaussianNB": lambda: naive_bayes.GaussianNB(),
}


def measure(stream: list[Any], make: Callable[[], Any]) -> tuple[float, float]:
    """Accuracy, and microseconds for an event, the scaler's included."""
    model = preprocessing.StandardScaler() | make()
    start = time.process_time()
    accuracy = evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    return accuracy.get(), 1e6 * (time.process_time() - start) / len(stream)


def rows(events: int, rounds: int) -> list[Row]:
    measured: list[Row] = []
    for name, make_stream in STREAMS.items():
        stream = list(make_stream().take(events))
        row: Row = {"stream": name, "events": len(stream), "features": len(stream[0][0])}
        row["labels"] = len({y for _, y in stream})
        seen = [{c: measure(stream, CLASSIFIERS[c]) for c in CLASSIFIERS} for _ in range(rounds)]
        row["accuracy"] = {c: sum(r[c][0] for r in seen) / rounds for c in CLASSIFIERS}
        row["us"] = {c: min(r[c][1] for r in seen) for c in CLASSIFIERS}
        measured.append(row)
    return measured


def show(measured: list[Row]) -> None:
    table = Table("stream", "events", "features", "labels", *CLASSIFIERS)
    for row in measured:
        cells = [f"{row['accuracy'][c]:.1%}  {row['us'][c]:,.0f} µs" for c in CLASSIFIERS]
        table.add_row(
            row["stream"], *(f"{row[k]:,}" for k in ("events", "features", "labels")), *cells
        )
    means = {
        c: (
            sum(row["accuracy"][c] for row in measured) / len(measured),
            sum(row["us"][c] for row in measured) / len(measured),
        )
        for c in CLASSIFIERS
    }
    table.add_section()
    table.add_row("mean", "", "", "", *(f"{a:.1%}  {us:,.0f} µs" for a, us in means.values()))
    Console(width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2000, help="the most of each stream")
    parser.add_argument("--rounds", type=int, default=1, help="times are the best of so many")
    parser.add_argument("--json", type=Path, default=Path(__file__).with_suffix(".json"))
    given = parser.parse_args()
    measured = rows(given.events, given.rounds)
    show(measured)
    given.json.write_text(json.dumps(measured, indent=2) + "\n")


if __name__ == "__main__":
    main()
