from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from labelmem.interop.transformers import MemoryLM


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(params=["gpt2", "llama"])
def model(request: pytest.FixtureRequest) -> Any:
    from interop.transformers.tiny import language_model  # skips where there is no transformers

    return language_model(request.param)


@pytest.fixture
def lm(model: Any) -> Iterator[MemoryLM]:
    from interop.transformers.tiny import MEMORY

    from labelmem.interop.transformers import MemoryLM

    with MemoryLM(model, memory=MEMORY, combiner=0.4) as lm:
        yield lm
