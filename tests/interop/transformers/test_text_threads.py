"""Users of one language model in many threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from interop.transformers.tiny import (
    GREEDY,
    MEMORY,
    assert_same_state,
    combiner_of,
    language_model,
    state_of,
    text,
)
from threads import at_once

from labelmem.interop.transformers import MemoryLM


@pytest.mark.parametrize("kind", ["fixed", "stream"])
def test_texts_in_threads_are_read_and_continued_as_alone(kind: str) -> None:
    with MemoryLM(language_model("gpt2"), memory=MEMORY, combiner=combiner_of(kind)) as lm:

        def life(n: int) -> Callable[[], Any]:
            def lived() -> Any:
                stream, told = lm.stream(), []
                for part in range(12):
                    told.append(stream.read(text(10 * n + part, 7)))
                    told.append(stream.generate(**GREEDY)[0])
                return told, state_of(stream)

            return lived

        lives = [life(n) for n in range(4)]
        alone = [lived() for lived in lives]
        for (told, state), (seen, after) in zip(alone, at_once(*lives), strict=True):
            assert all(torch.equal(a, b) for a, b in zip(told, seen, strict=True))
            assert_same_state(state, after)


def test_threads_take_turns_on_one_text(lm: MemoryLM) -> None:
    stream = lm.stream()
    stream.read(text(0, 3))

    def reads(n: int) -> Callable[[], None]:
        def read() -> None:
            for part in range(4):
                assert len(stream.read(text(10 * n + part, 3))) == 3
                stream.generate(**GREEDY)

        return read

    at_once(*map(reads, range(4)))
    assert len(stream.ids) == 3 + 4 * 4 * 3
    assert int(state_of(stream)["memory.time"]) == 2 + 4 * 4 * 3
