"""Everything that adapts passes the checks; whatever is broken on purpose does not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.baselines import make, methods
from labelmem.checks import Inputs, Trial, check_adapter, check_method, checks_for, tokens, vectors
from labelmem.errors import UnsupportedError
from labelmem.models import GRUModel
from labelmem.online import OnlineMethod

LABELS = ["ant", "bee", "cat", "dog"]


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build()


MLP = seeded(lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4)))
GRU = seeded(lambda: GRUModel(labels=4, dim=5))
EMBEDDING = seeded(lambda: nn.Linear(4, 3))


def training(inputs: Inputs) -> list[tuple[Any, list[str]]]:
    generator = torch.Generator().manual_seed(7)
    return [(inputs(generator, 6), [*LABELS, "ant", "emu"]) for _ in range(3)]


def fitted(method: OnlineMethod[Any], inputs: Inputs) -> OnlineMethod[Any]:
    try:
        method.fit(training(inputs))
    except UnsupportedError:
        pass
    return method


Case = tuple[Callable[[], OnlineMethod[Any]], Inputs]


def adapters() -> Iterator[tuple[str, Case]]:
    several = MemoryConfig(cells_per_label=2, capacity=4)

    def combiner() -> Combiner:
        return Combiner(kind="label", hidden=3, theta=0.4)

    yield "adapter", (lambda: Adapter(MLP, labels=LABELS), vectors(4))
    yield "adapter, default, recurrent", (lambda: Adapter(GRU), tokens(4))
    yield "adapter, fixed", (lambda: Adapter(MLP, labels=LABELS, combiner=0.5), vectors(4))
    yield "adapter, ids", (lambda: Adapter(MLP, combiner=0.5), vectors(4))
    yield "adapter, few cells", (lambda: Adapter(MLP, combiner=0.5, memory=several), vectors(4))
    yield "adapter, combiner", (lambda: Adapter(MLP, combiner=combiner()), vectors(4))
    yield "adapter, few-shot", (lambda: Adapter(EMBEDDING, labels=()), vectors(4))
    yield "adapter, recurrent", (lambda: Adapter(GRU, combiner=combiner()), tokens(4))


def baselines() -> Iterator[tuple[str, Case]]:
    for name, cls in methods().items():
        kinds = {"mlp": (MLP, vectors(4))}
        if cls.needs_model:
            kinds["gru"] = (GRU, tokens(4))
        for kind, (model, inputs) in kinds.items():

            def build(name: str = name, model: nn.Module = model, inputs: Inputs = inputs) -> Any:
                return fitted(make(name, model, LABELS), inputs)

            yield f"{name}, {kind}", (build, inputs)
        if cls.needs_model and not getattr(cls, "needs_logits", True):
            few = EMBEDDING, ()
            yield f"{name}, few-shot", (lambda n=name, few=few: make(n, *few), vectors(4))


CASES: dict[str, Case] = dict([*adapters(), *baselines()])


@pytest.mark.parametrize("case", CASES)
def test_passes_all_checks(case: str) -> None:
    check_method(*CASES[case])


def test_everything_that_adapts_is_here() -> None:
    covered = {Adapter, *methods().values()}
    found, ahead = set(), [OnlineMethod]
    while ahead:
        cls = ahead.pop()
        ahead += cls.__subclasses__()
        if cls.__module__.startswith("labelmem.") and not inspect.isabstract(cls):
            found.add(cls)
    # An adapter of a special kind steps as the adapter does.
    others = [cls for cls in found if not issubclass(cls, Adapter)]
    missing = [cls for cls in others if not any(issubclass(one, cls) for one in covered)]
    assert not missing, "an online method is neither the adapter nor in the registry"


def test_checks_are_small_and_named() -> None:
    checks = list(checks_for(Adapter(MLP)))
    assert len(checks) == len({check.__name__ for check in checks}) > 15
    assert all(check.__name__.startswith("check_") and check.__doc__ for check in checks)
    assert check_adapter is check_method


def test_a_method_may_name_checks_to_skip() -> None:
    adapter = Adapter(MLP)
    adapter.skip_checks = ("check_late_labels",)  # type: ignore[attr-defined]
    names = [check.__name__ for check in checks_for(adapter)]
    assert "check_late_labels" not in names
    assert len(names) == len(list(checks_for(Adapter(MLP)))) - 1


def test_users_differ_and_are_repeatable() -> None:
    trial = Trial(lambda: Adapter(MLP, labels=LABELS))
    assert [y for _, y in trial.user(0)] == [y for _, y in trial.user(0)]
    first, second = ([y for _, y in trial.user(k) if y not in LABELS] for k in range(2))
    assert first != second and len(set(first)) == 3
