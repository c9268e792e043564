"""Shared fixtures. The helpers behind them are in ``toys.py``; ``tests`` is on the import path."""

from __future__ import annotations

import pytest
from hypothesis import settings
from toys import EVERY_KIND, Recurrent, Stateless, make_adapter

from labelmem import Adapter

# The same examples at every run, and nothing about how long one takes.
settings.register_profile(
    "labelmem", deadline=None, derandomize=True, database=None, max_examples=60
)
settings.load_profile("labelmem")


@pytest.fixture
def stateless() -> Stateless:
    return Stateless()


@pytest.fixture
def recurrent() -> Recurrent:
    return Recurrent()


@pytest.fixture(params=EVERY_KIND)
def kind(request: pytest.FixtureRequest) -> str:
    """LMN-fixed and LMN, stateless and recurrent, dense and sparse; see ``toys.make_adapter``."""
    return str(request.param)


@pytest.fixture
def adapter(kind: str) -> Adapter:
    return make_adapter(kind)
