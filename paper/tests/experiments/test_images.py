"""New labels beside known ones: what is taught, what is shown, and how it is scored."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from labelmem_paper.experiments.images.beliefs import Beliefs
from labelmem_paper.experiments.images.drawings import made_up
from labelmem_paper.experiments.images.fit_last import LastOptions, fit_last
from labelmem_paper.experiments.images.maps import BesideMaps, Maps, maps_and_h
from labelmem_paper.experiments.images.methods.maml import MAML
from labelmem_paper.experiments.images.recalls import draw_recalls
from labelmem_paper.experiments.images.second_showing import score
from labelmem_paper.experiments.images.showings import Showings, again, draw_showings, numbered
from labelmem_paper.experiments.images.strips import strips_of
from labelmem_paper.experiments.images.task import ImageTask
from labelmem_paper.experiments.images.within_metric import within_metric
from labelmem_paper.experiments.records import Records
from labelmem_paper.experiments.runner import execute
from labelmem_paper.experiments.table import Run, load_table
from torch import Tensor, nn
from toys import filled

from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.combiner import StreamCombiner
from labelmem.errors import ConfigError, UnsupportedError
from labelmem.keys import Hidden, Joined


def smoke(method: str = "static") -> Run:
    (run,) = load_table("table3").runs("smoke", methods=[method])
    return run


def task(folder: Path, **changes: object) -> ImageTask:
    run = smoke()
    run = replace(run, config={**run.config, **changes})
    return ImageTask(run, torch.device("cpu"), folder, show=False)


@cache
def made(size: int) -> bytes:
    return made_up(size=size).pixels.tobytes()


def test_made_up_characters_are_the_same_every_time() -> None:
    images = made_up(characters=6, drawers=4, size=9)
    assert images.pixels.shape == (24, 9, 9) and set(np.unique(images.pixels)) == {0, 255}
    assert made(8) == made_up(size=8).pixels.tobytes()
    by_character = images.pixels.reshape(6, 4, -1).astype(float)
    within = by_character.std(axis=1).mean()
    between = by_character.mean(axis=1).std(axis=0).mean()
    assert 0 < within < between  # drawers differ, characters differ more


def test_sequences_show_each_label_as_often_as_asked() -> None:
    shown = torch.rand(30, 7, generator=torch.Generator().manual_seed(0)) < 0.5
    drawn = draw_showings(shown, 50, labels=4, times=2, seed=3)
    assert bool(shown[drawn.label, drawn.drawing].all())
    for label, drawing in zip(drawn.label.tolist(), drawn.drawing.tolist(), strict=True):
        pairs = set(zip(label, drawing, strict=True))
        assert len(pairs) == 8 and len(set(label)) == 4
        assert all(label.count(one) == 2 for one in label)
    assert int(drawn.second.sum()) == 50 * 4
    places = drawn.second.float().mean(dim=0)
    assert places[0] == 0 and places[-1] == 1 and bool((places[1:-1] > 0).all())  # shuffled
    other = draw_showings(shown, 50, labels=4, times=2, seed=4)
    assert not torch.equal(drawn.label, other.label)
    with pytest.raises(ConfigError, match="a sequence needs 31"):
        draw_showings(shown, 1, labels=31, times=2, seed=0)


def test_again_and_numbered_by_loops() -> None:
    label = torch.randint(4, (20, 9), generator=torch.Generator().manual_seed(1))
    for row, back, number in zip(label.tolist(), again(label), numbered(label), strict=True):
        met: list[int] = []
        for t, one in enumerate(row):
            assert bool(back[t]) == (one in met)
            met += [] if one in met else [one]
            assert int(number[t]) == met.index(one)


@pytest.mark.parametrize("folds", [2, 4])
def test_nothing_of_the_test_is_seen_before_it(folds: int, tmp_path: Path) -> None:
    images = task(tmp_path, folds=folds)
    taught, shown = images.parts(None)
    assert not bool((taught & shown).any())
    assert int(taught.any(dim=1).sum()) == images.seen
    assert bool(shown[images.seen :].any(dim=1).all())
    left_out = torch.zeros(images.labels, dtype=torch.int64)
    for fold in range(folds):
        lesson, held = images.parts(fold)
        assert not bool((lesson & held).any())
        # All that validation sees is a part of what the final network is taught.
        assert torch.equal(lesson | held, taught) or not bool(((lesson | held) & ~taught).any())
        assert not bool(held[images.seen :].any())
        strangers = held.any(dim=1) & ~lesson.any(dim=1)
        assert bool(strangers.any()) and bool((held.any(dim=1) & ~strangers).any())
        left_out += strangers
    assert left_out[: images.seen].tolist() == [1] * images.seen


def test_the_seed_draws_other_characters(tmp_path: Path) -> None:
    one = task(tmp_path)
    other = ImageTask(replace(one.run, seed=1), one.device, tmp_path, show=False)
    assert one.pictures.shape == other.pictures.shape == (20, 8, 1, 8, 8)
    assert not torch.equal(one.pictures, other.pictures)
    with pytest.raises(ConfigError, match="expected at least 99"):
        _ = task(tmp_path, seen=90, new=9).pictures
    with pytest.raises(ConfigError, match="fold is 2"):
        one.world(2)


def test_hidden_vectors_stand_for_pictures(tmp_path: Path) -> None:
    images = task(tmp_path)
    world = images.test
    memory = MemoryConfig(lam=5.0, margin=1.0)
    whole = Adapter(world.model, memory=memory, combiner=0.6)
    head = Adapter(world.head, memory=memory, combiner=0.6)
    one, other = images.scored(whole, world, "pictures"), images.scored(head, world)
    a, b = (found.metrics.result().metrics for found in (one, other))
    assert a == pytest.approx(b, rel=1e-4)
    narrow = world.among(images.seen)
    assert narrow.head.out_features == images.seen
    torch.testing.assert_close(narrow.head.weight, world.network.head.weight[: images.seen])
    x = world.pictures[0]
    torch.testing.assert_close(world.model(x), world.network(x))
    r, known = torch.softmax(world.muted().model(x), dim=1), world.known
    assert not bool(r[:, ~known].any())
    torch.testing.assert_close(r[:, known], torch.softmax(world.model(x)[:, known], dim=1))


def test_maps_are_what_comes_before_h(tmp_path: Path) -> None:
    world = task(tmp_path).test
    assert world.maps.shape == (20, 8, 12)
    shown, taught = world.showings, world.taught
    assert bool(world.maps[shown.label, shown.drawing].any(dim=2).all())
    torch.testing.assert_close(world.maps[taught].mean(dim=0), torch.zeros(12), atol=1e-4, rtol=0)
    x = world.pictures[0, :1]
    for layer in world.network.body:
        if isinstance(layer, nn.Flatten):
            break
        x = layer(x)
    small = nn.functional.adaptive_avg_pool2d(x, 4).flatten()
    torch.testing.assert_close(maps_and_h(world.network, world.pictures[0, :1])[0][0], small)
    wide, h = world.streams("maps")[0][0], world.streams()[0][0]
    assert torch.equal(wide[:, : h.shape[1]], h) and wide.shape[1] == h.shape[1] + 12


def test_the_metric_makes_drawings_of_one_character_spread_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    character = torch.arange(40).repeat_interleave(10)
    turn = torch.linalg.qr(torch.randn(6, 6, generator=generator)).Q
    within = torch.tensor([9.0, 3.0, 1.0, 1.0, 0.3, 0.1])
    centre = 20 * torch.randn(40, 6, generator=generator)
    x = centre[character] + (within * torch.randn(400, 6, generator=generator)) @ turn
    metric = within_metric(x.double(), character, size=6, shrinkage=1e-9)
    z = metric(x.double()).float().reshape(40, 10, 6)
    own = (z - z.mean(dim=1, keepdim=True)).flatten(0, 1)
    torch.testing.assert_close(own.T @ own / 400, torch.eye(6), atol=1e-3, rtol=0)
    torch.testing.assert_close(z.mean(dim=(0, 1)), torch.zeros(6), atol=1e-3, rtol=0)
    assert within_metric(x, character, size=2, shrinkage=0.5).map.shape == (6, 2)
    with pytest.raises(ConfigError, match="size is 0, shrinkage is 0"):
        within_metric(x, character, 0, 0.0)


def test_beliefs_are_compared_by_bhattacharyya() -> None:
    head, h = (
        filled(nn.Linear(3, 5), 1),
        torch.randn(2, 3, generator=torch.Generator().manual_seed(0)),
    )
    key = Beliefs(head, share=0.5)
    one, other = key(None, h, None)[0]
    p, q = torch.softmax(head(h), dim=1)
    torch.testing.assert_close(one @ other, 0.25 * (p * q).sqrt().sum())
    assert key.blocks(3) == (5,) and not one.requires_grad
    with pytest.raises(ConfigError, match="share is 0"):
        Beliefs(head, 0.0)


def recalls(steps: int = 5, fresh: float = 0.0, count: int = 4000) -> tuple[Showings, Tensor]:
    shown = torch.ones(20, 6, dtype=torch.bool)
    shown[:, 2:] = False
    strange = torch.arange(20) >= 12
    drawn = draw_recalls(shown, strange, 0.25, fresh, count=count, steps=steps, seed=1)
    assert bool(shown[drawn.label, drawn.drawing].all())
    return drawn, strange


def test_a_recall_is_another_drawing_of_what_came() -> None:
    drawn, strange = recalls()
    for label, drawing in zip(drawn.label.tolist(), drawn.drawing.tolist(), strict=True):
        before = {d for one, d in zip(label[:-1], drawing[:-1], strict=True) if one == label[-1]}
        assert len(before) == 1 and drawing[-1] not in before
    assert strange[drawn.label].float().mean() == pytest.approx(0.25, abs=0.02)
    fresh = ~recalls(fresh=0.4)[0].second[:, -1]
    assert fresh.float().mean() == pytest.approx(0.4, abs=0.03)
    with pytest.raises(ConfigError, match="9 steps need as many"):
        recalls(steps=9)


def test_nothing_is_won_by_counting() -> None:
    label = recalls()[0].label
    before, last = label[:, :-1], label[:, -1:]
    times = (before[:, :, None] == before[:, None, :]).sum(dim=2)
    # Where two labels came, one three times and one once, each is asked for half of the time.
    uneven = (times.sort(dim=1).values == torch.tensor([1, 3, 3, 3])).all(dim=1)
    rare = (times == 1) & (before == last)
    assert int(uneven.sum()) > 200
    assert rare[uneven].any(dim=1).float().mean() == pytest.approx(0.5, abs=0.08)


def test_a_combiner_learns_from_last_steps_alone(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    head = filled(nn.Linear(4, 6), 0)

    def streams(count: int) -> list[tuple[Tensor, Tensor]]:
        """The last label is the one before it; what comes earlier is noise."""
        x = torch.randn(count, 4, 4, generator=generator)
        y = torch.randint(6, (count, 4), generator=generator)
        y[:, -1] = y[:, -2]
        return list(zip(x, y, strict=True))

    memory = MemoryConfig(margin=math.inf, delta=0.0)
    adapter = Adapter(head, memory=memory, combiner=Combiner(kind="stream", hidden=4))
    combiner = adapter.combiner
    assert isinstance(combiner, StreamCombiner)
    parts, valid = [(adapter, streams(200))], [(adapter, streams(50))]
    options = LastOptions(epochs=4, lr=2e-2, batch_size=50)
    found = fit_last(combiner, parts, valid, options, tmp_path / "c.safetensors", show=False)
    assert min(found) < 0.3 < found[0]
    # The figure is that of a replay step by step.
    total = 0.0
    for x, y in valid[0][1]:
        stream = adapter.stream()
        for step, label in zip(x, y.tolist(), strict=True):
            p = stream.predict(step)
            stream.observe(label)
        total -= float(p.probs[y[-1]].log())
    assert total / 50 == pytest.approx(min(found), rel=1e-3, abs=1e-5)
    # What was trained is found again, and not trained further.
    again = Adapter(head, memory=memory, combiner=Combiner(kind="stream", hidden=4))
    other = again.combiner
    assert isinstance(other, StreamCombiner)
    pair = [(again, parts[0][1])], [(again, valid[0][1])]
    assert fit_last(other, *pair, options, tmp_path / "c.safetensors", show=False) == found
    torch.testing.assert_close(other.state_dict(), combiner.state_dict())
    gated = Adapter(head, memory=MemoryConfig(margin=1.0), combiner=combiner)
    with pytest.raises(UnsupportedError, match="margin=inf"):
        fit_last(combiner, [(gated, parts[0][1])], valid, options, tmp_path / "d", show=False)


def test_strips_tell_what_was_shown_and_what_decided(tmp_path: Path) -> None:
    images = task(tmp_path)
    world = images.test
    adapter = Adapter(world.head, memory=MemoryConfig(margin=math.inf), combiner=0.6)
    strips = strips_of(adapter, world, "h", images.rows, count=2)
    assert len(strips) == 2
    for number, strip in enumerate(strips):
        before: list[int] = []
        for t, step in enumerate(strip["steps"]):
            label = int(world.showings.label[number, t])
            assert (
                images.data.character[step["picture"]]
                == images.data.character[images.rows[label, 0]]
            )
            assert step["known"] == bool(world.known[label])
            for cell in step["cells"]:
                assert set(cell["pictures"]) <= set(before)
                assert len(set(images.data.character[cell["pictures"]].tolist())) == 1
            assert bool(step["cells"]) == bool(before)
            before.append(step["picture"])
    assert json.loads(json.dumps(strips)) == strips


def test_a_head_beside_maps_does_not_look_at_them(tmp_path: Path) -> None:
    images = task(tmp_path)
    world = images.test
    beside = BesideMaps(world.head)
    wide, h = world.streams("maps")[0][0], world.streams()[0][0]
    torch.testing.assert_close(beside(wide), world.head(h))
    memory = MemoryConfig(lam=5.0)
    key = Joined(Hidden(), Maps(12, 1e-6))  # so small a part that only h decides
    one = images.scored(Adapter(world.head, memory=memory, combiner=0.6), world)
    other = images.scored(Adapter(beside, memory=memory, combiner=0.6, key=key), world, "maps")
    assert one.accuracy == other.accuracy
    with pytest.raises(ConfigError, match="share is 0"):
        Maps(3, 0.0)


def by_hand(adapter: Adapter, streams: list[tuple[Tensor, Tensor]], known: Tensor) -> list[float]:
    """Overall, new and seen accuracy of second showings, one stream after another."""
    hits: dict[bool, list[bool]] = {True: [], False: []}
    for x, y in streams:
        stream, met = adapter.stream(), set()
        for step, label in zip(x, y.tolist(), strict=True):
            p = stream.predict(step)
            if label in met:
                hits[bool(known[label])].append(p.label == label)
            met.add(label)
            stream.observe(label)
    every = hits[True] + hits[False]
    return [sum(part) / len(part) for part in (every, hits[False], hits[True])]


@pytest.mark.parametrize("labels", [14, 20], ids=["met", "all"])
def test_only_second_showings_count(labels: int, tmp_path: Path) -> None:
    images = task(tmp_path)
    world = images.test.among(labels)
    adapter = Adapter(world.head, memory=MemoryConfig(lam=5.0), combiner=0.5)
    found = score(adapter, world.streams(), world.showings.second, world.known, batch_size=5)
    metrics = found.metrics.result().metrics
    names = ("accuracy", "accuracy_new", "accuracy_seen")
    expected = by_hand(adapter, world.streams(), world.known)
    assert [metrics[name] for name in names] == pytest.approx(expected)
    assert found.accuracy == pytest.approx(expected[0])
    assert found.metrics.result().tokens == 12 * 3


def test_maml_has_the_same_beginning_for_every_label_it_was_not_taught(tmp_path: Path) -> None:
    (run,) = load_table("table3").runs("smoke", methods=["maml"])
    maml = MAML(ImageTask(run, torch.device("cpu"), tmp_path, show=False))
    maml.task.config["maml"]["half"] = False
    point = {"lr": 0.0}
    world = maml.task.test
    body, head = maml.trained(world)
    # Without any step: the row of a new label is the mean of the rows that stand for new ones.
    stream = maml.build(point, world.among(maml.task.seen)).stream()
    picture = world.pictures[0, 0]
    stream.predict(picture)
    stream.observe("new")
    probs = torch.as_tensor(stream.predict(picture).probs)
    logits = head(body(picture[None]))[0]
    strangers = logits[maml.task.seen :]
    expected = torch.softmax(torch.cat([logits[: maml.task.seen], strangers.mean()[None]]), dim=0)
    torch.testing.assert_close(probs, expected)
    assert len(set(strangers.tolist())) > 1


def test_a_record_has_both_label_spaces(tmp_path: Path) -> None:
    assert execute(smoke("lmn-fixed"), tmp_path, "cpu", show=False) == "recorded"
    (record,) = Records(tmp_path / "table3.jsonl")
    for name in ("accuracy", "accuracy_new", "accuracy_seen"):
        assert {name, f"{name}_met"} <= set(record["metrics"])
    tradeoff = record["tradeoff"]
    assert len({(point["theta"], point["margin"]) for point in tradeoff}) == len(tradeoff) > 1
    for point in tradeoff:
        if point["theta"] == 0.1:  # the network nearly alone
            assert point["accuracy_seen"] >= point["accuracy_new"]
    model = nn.Linear(8, 20)
    size = sum(p.numel() for p in model.parameters())
    assert record["parameters"] > size and record["us_per_token"] > 0


@pytest.mark.data
def test_the_real_characters(tmp_path: Path) -> None:
    if not os.environ.get("LABELMEM_DATA"):
        pytest.skip("LABELMEM_DATA names no folder with the real data sets")
    run = smoke()
    (real,) = load_table("table3").runs("paper", methods=["static"], seeds=[0])
    config = {**real.config, "network": {**run.config["network"], "channels": [2, 2]}}
    images = ImageTask(replace(real, config=config), torch.device("cpu"), tmp_path, show=False)
    assert images.pictures.shape == (350, 20, 1, 28, 28)
    assert len(images.test.streams()) == 2000 and len(images.valid.streams()) == 1000
