"""Adapters, trained and saved, and a stream of each."""

from __future__ import annotations

from typing import Any

from golden import models
from golden.arithmetic import filled, habits, tokens, vectors
from golden.cases import CASES, MODELS, MODELS_BY_CASE, OWN, STREAMS, TOKENS
from golden.making.common import assert_steady, write_case
from golden.making.settings import PROBES, SETTINGS
from golden.trajectory import Case, recorded
from safetensors.torch import save_file

from labelmem import Combiner


def write() -> None:
    """Everything about adapters."""
    STREAMS.mkdir(parents=True, exist_ok=True)
    MODELS.mkdir(parents=True, exist_ok=True)
    for i, (name, make) in enumerate(MODELS_BY_CASE.items()):
        weights = filled(make(), 20 + i).state_dict()
        copies = {key: tensor.clone() for key, tensor in weights.items()}  # some are shared
        save_file(copies, MODELS / f"{name}.safetensors")
    for case in CASES:
        adapter = _trained(case)
        adapter.save(STREAMS / f"{case.name}.adapter")
        record = write_case(case, adapter, STREAMS)
        theta = "" if record.theta is None else f"theta {_spread(record)}"
        print(f"{case.name:16} {int(record.width[-1])} labels {theta}")
        assert_steady(adapter, case, record)
    _write_probes(next(case for case in CASES if case.name == "index"))


def _spread(record: Any) -> str:
    there = record.theta[record.theta > 0]
    return f"{float(there.min()):.3f} to {float(there.max()):.3f}"


def _trained(case: Case) -> Any:
    """With the settings of the case, and a trained combiner if they ask for one."""
    adapter = case.method()
    memory, combiner = SETTINGS[case.name]
    adapter.memory = memory
    if case.name != "few-shot":
        adapter.combiner = Combiner(**combiner) if isinstance(combiner, dict) else combiner
    if isinstance(combiner, dict):
        streams = [_stream(case, seed) for seed in range(40, 52)]
        adapter.tune(streams, trials=4, grid={"theta": (0.4, 0.5, 0.6)}, show=False)
        adapter.fit(streams, epochs=12, lr=0.05, held_out=0.25, show=False)
    return adapter


def _stream(case: Case, seed: int) -> Any:
    """Another user of the same kind."""
    adapter = case.method()
    known = list(adapter.known.names)
    if case.x.is_floating_point():
        y = habits(known, OWN[:1], 30, seed)
        return vectors(y, models.INPUTS, sum(case.name.encode())), y
    y = habits(known, (), 30, seed)
    return tokens(y, TOKENS), y


def _write_probes(case: Case) -> None:
    """The same stream read in part: what the index says, and what all cells say."""
    adapter = case.method()
    adapter.load(STREAMS / "index.adapter")
    exact = _asked(adapter, case)
    adapter.memory = PROBES
    adapter.save(STREAMS / "index-probes.adapter")
    near = _asked(adapter, case)
    save_file({"near": near, "exact": exact}, STREAMS / "index-probes.safetensors")
    print("index read in part: apart by", float((near - exact).abs().max()))


def _asked(adapter: Any, case: Case) -> Any:
    stream = adapter.load_stream(STREAMS / "index.stream")
    return recorded([stream.predict(x) for x in case.x[case.half :]], {}).probs
