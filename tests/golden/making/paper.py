"""Networks of the paper's package, trained, and a stream of each."""

from __future__ import annotations

from golden.making.common import spread, write_case
from golden.sequence_methods import CASES, METHODS, stream, untrained
from safetensors.torch import save_file


def write() -> None:
    """Weights, a record and a saved stream each."""
    METHODS.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        method = untrained(case.name)
        method.fit([stream(seed) for seed in range(30, 50)], epochs=10, lr=0.02)
        weights = {key: value.clone() for key, value in method.network.state_dict().items()}
        save_file(weights, METHODS / f"{case.name}.weights")
        record = write_case(case, case.method(), METHODS)
        print(f"{case.name:18} best label {spread(record)}")
