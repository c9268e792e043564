"""What adapters, streams, batches, memories and predictions say of themselves."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest
import torch
from conformance.ways import recording_on_cpu
from toys import Stateless

from labelmem import Adapter, Combiner, LabeledMemory, MemoryConfig
from labelmem.baselines import make
from labelmem.errors import LabelMemError

NASTY = "<script>alert('&')</script>"


def grown(adapter: Any, *labels: Any) -> Any:
    stream = adapter.stream()
    for t, label in enumerate(labels):
        stream.predict(torch.eye(3)[t % 3])
        stream.observe(label)
    return stream


@pytest.mark.parametrize(
    ("combiner", "form"),
    [
        (None, "default form"),
        (0.25, "LMN-fixed theta=0.25"),
        (Combiner(hidden=3), "LMN with a stream combiner"),
        (Combiner(kind="label", hidden=3), "LMN with a label combiner"),
    ],
)
def test_an_adapter_and_its_streams_say_what_is_in_them(combiner: Any, form: str) -> None:
    memory = MemoryConfig(margin=9.0) if combiner else None
    adapter = Adapter(Stateless(), combiner=combiner, memory=memory)
    assert repr(adapter) == f"Adapter(Stateless, 4 labels, d=5, {form})"
    one, many = (f"{form}, {adapter.engine_of(n)} engine" for n in (1, 2))
    assert repr(adapter.stream()) == f"Stream(0 observed, 4 labels, 0 cells, {one})"
    stream = grown(adapter, 1, "emu", "owl")
    assert repr(stream) == f"Stream(3 observed, 6 labels, 2 of them new, 3 cells, {one})"
    batch = adapter.streams(2)
    assert repr(batch) == f"StreamBatch(2 streams, at most 4 labels, 0 cells, {many})"
    batch.predict(torch.ones(2, 3))
    assert repr(batch.last).endswith("Step(2 streams, 4 labels)")
    batch.observe(["emu", 0], mask=[True, False])
    assert repr(batch) == f"StreamBatch(2 streams, at most 5 labels, 1 cell, {many})"


def test_a_few_shot_adapter_says_that_the_memory_is_alone() -> None:
    adapter = Adapter(torch.nn.Identity(), labels=())
    assert repr(adapter) == "Adapter(Identity, memory alone)"
    known = f"memory alone, {adapter.engine_of(1)} engine"
    assert repr(adapter.stream()) == f"Stream(0 observed, 0 labels, 0 cells, {known})"
    assert repr(grown(adapter, "a")).startswith("Stream(1 observed, 1 label, 1 of them new, 1 cell")
    p = adapter.stream().predict(torch.ones(3))
    assert repr(p) == "Prediction(no label known yet)"
    assert Texts(p._repr_html_()).texts == [repr(p)]


def test_an_adapter_says_that_it_was_primed_or_closed() -> None:
    adapter = Adapter(Stateless())
    stream = grown(adapter, 1)
    adapter.prime(torch.eye(3), [0, 1, 2])
    assert repr(adapter) == "Adapter(Stateless, 4 labels, d=5, default form, primed)"
    adapter.close()
    assert repr(adapter).endswith("primed, closed)")
    assert repr(stream).startswith("Stream(1 observed, 4 labels, 1 cell, default form, ")


def test_a_stream_says_that_its_adapter_has_changed_since() -> None:
    adapter = Adapter(Stateless())
    stream = grown(adapter, 1)
    adapter.combiner = 0.5
    assert repr(stream).endswith("1 cell, a form that its adapter had before)")


def test_streams_of_other_methods_say_which() -> None:
    method = make("ncm", Stateless())
    assert repr(grown(method, 1)) == "Stream(1 observed, 4 labels, ncm)"


def test_memories_and_reads_say_how_much_there_is() -> None:
    memory = LabeledMemory()
    assert repr(memory) == "LabeledMemory(1 stream, 0 cells)"
    for label in (3, 5):
        memory.write(torch.eye(2)[label % 2 :][:1], torch.tensor([label]))
    assert repr(memory) == "LabeledMemory(1 stream, 2 cells, d=2)"
    for fast in (True, False):
        other = LabeledMemory(fast=fast)
        other.restore(memory.tensors())
        assert re.fullmatch(r"\w+Read\(1 stream, 2 cells\)", repr(other.read(torch.eye(2)[:1])))


def test_a_batch_speaks_even_if_its_last_step_went_wrong() -> None:
    """And asking what is in it is no occasion to say so."""
    model, x = Stateless(), torch.ones(2, 3)
    with recording_on_cpu():
        batch = Adapter(model, combiner=0.5).streams(2)
        for bias in (0.0, 0.0, torch.inf):
            with torch.no_grad():
                model.head.bias[0] = bias
            batch.predict(x)
            batch.observe([1, 2])
        assert "2 streams" in repr(batch) and "<td>2</td>" in batch._repr_html_()
        with pytest.raises(LabelMemError):
            batch.labels(0)


# ---------------------------------------------------------------- notebooks


class Texts(HTMLParser):
    """The texts of a page, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts += [data] if data.strip() else []


def test_tables_say_what_lines_say() -> None:
    adapter = Adapter(Stateless(), combiner=0.5)
    stream = grown(adapter, "emu", "owl")
    found = Texts(stream._repr_html_()).texts
    told = ["observed", "2", "labels", "6", "of them new", "2", "cells", "2"]
    form = ["form", "LMN-fixed theta=0.5", "engine", f"{stream.engine} engine"]
    assert found == ["Stream", *told, *form]
    assert Texts(adapter._repr_html_()).texts[:3] == ["Adapter", "model", "Stateless"]
    assert Texts(adapter.streams(3)._repr_html_()).texts[:3] == ["StreamBatch", "streams", "3"]


def test_the_five_most_probable_labels_have_bars() -> None:
    stream = grown(Adapter(Stateless(), combiner=0.5), "emu", "owl")
    p = stream.predict(torch.ones(3))
    page = p._repr_html_()
    told = [text for label, share in p.top() for text in (repr(label), f"{share:.3f}")]
    assert Texts(page).texts == ["Prediction", *told] and len(told) == 10
    lengths = [float(found) for found in re.findall(r"width:([\d.]+)em", page)]
    assert lengths == pytest.approx([10 * share for _, share in p.top()], abs=0.01)


def test_nothing_gets_out_of_a_table() -> None:
    model = type(NASTY, (Stateless,), {})()
    adapter = Adapter(model, labels=[NASTY, "b", "c", "d"], combiner=0.5)
    p = grown(adapter, NASTY, "x" * 10_000).predict(torch.eye(3)[1])
    for page in (adapter._repr_html_(), p._repr_html_()):
        assert "script" not in Texts(page).tags and len(page) < 2_000
        assert html.escape("<script>") in page and "<script" not in page
