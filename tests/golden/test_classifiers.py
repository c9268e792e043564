"""The classifiers of scikit-learn and river give the probabilities they gave."""

from __future__ import annotations

import pytest
from golden.classifiers import CLASSIFIERS, RUNS
from golden.trajectory import assert_near
from safetensors.torch import load_file


@pytest.mark.parametrize("name", RUNS)
def test_probabilities_are_those_recorded(name: str) -> None:
    assert_near(RUNS[name](), load_file(CLASSIFIERS)[name], name)
