"""The kinds of combiners, and what each can be told."""

from __future__ import annotations

import pytest

from labelmem import Combiner
from labelmem.errors import ConfigError
from labelmem.label_combiner import LabelCombiner
from labelmem.stream_combiner import StreamCombiner


def test_the_default_is_one_state_per_stream() -> None:
    assert isinstance(Combiner(), StreamCombiner)
    assert isinstance(Combiner(kind="label"), LabelCombiner)


def test_an_option_of_the_other_kind_is_explained() -> None:
    with pytest.raises(ConfigError, match=r"has no option 'active_threshold'; kind='label' has it"):
        Combiner(active_threshold=0.1)
    with pytest.raises(ConfigError, match=r"no option 'colour'; its options are .*theta"):
        Combiner(kind="label", colour="red")
