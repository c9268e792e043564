"""Memories over running text: fast forms against slow loops written from the equations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from labelmem_paper.experiments.language.answer import Answer, Recalled
from labelmem_paper.experiments.language.cache import NeuralCache
from labelmem_paper.experiments.language.cells import Cells
from labelmem_paper.experiments.language.fit_recall import RecallOptions, fit_recall, recall_loss
from labelmem_paper.experiments.language.known_writes import Entries, Held, Passage
from labelmem_paper.experiments.language.ledger import Ledger
from labelmem_paper.experiments.language.lessons import Reading, resumed, track_starts
from labelmem_paper.experiments.language.lockstep import Lockstep
from labelmem_paper.experiments.language.memory_of_text import TextMemory, TextMemoryOptions
from labelmem_paper.experiments.language.method import Beside
from labelmem_paper.experiments.language.neighbours import PastStates
from labelmem_paper.experiments.language.pieces import Piece, pieces
from labelmem_paper.experiments.language.recall import Recall
from labelmem_paper.methods.text_lstm import TextLSTM
from torch import Tensor
from toys import filled

from labelmem import Adapter, MemoryConfig
from labelmem.errors import ConfigError

WORDS, DIM, CPU = 12, 6, torch.device("cpu")


def model(seed: int = 0) -> TextLSTM:
    made = filled(TextLSTM(WORDS, dim=DIM), seed, scale=0.8)
    return made.eval().requires_grad_(False)  # type: ignore[no-any-return]


def text(length: int, seed: int = 1) -> Tensor:
    # Low numbers come often, as common words do.
    generator = torch.Generator().manual_seed(seed)
    return (WORDS * torch.rand(length, generator=generator) ** 2).long()


def read(streams: int = 1, length: int = 150, steps: int = 40) -> Iterator[Piece]:
    return pieces(model(), text(length), streams, opening=0, steps=steps)


def joined(parts: list[Recalled]) -> tuple[Tensor, Tensor]:
    return torch.cat([dense(one) for one in parts], 1), torch.cat([one.weight for one in parts], 1)


def dense(recalled: Recalled) -> Tensor:
    """(n, C, L) what is believed about every word."""
    zeros = torch.zeros(*recalled.s.shape[:2], WORDS)
    return zeros.scatter_add(2, recalled.words, recalled.s)


def oracle(piece: Piece, config: MemoryConfig, theta: float) -> tuple[list[Tensor], list[float]]:
    """The labeled memory by semantics, one stream, one cell per label: s, and P(y), per step."""
    cells: dict[int, tuple[Tensor, float, int]] = {}
    beliefs, found = [], []
    for t in range(piece.y.shape[1]):
        h, r, y = piece.h[0, t], piece.log_r[0, t].exp(), int(piece.y[0, t])
        score = {
            word: alpha**config.delta
            * math.exp(config.lam * float(h @ v) / float(h.norm() * v.norm()))
            for word, (v, alpha, _) in cells.items()
        }
        s = torch.zeros(WORDS)
        for word, value in score.items():
            s[word] = value / sum(score.values())
        P = (1 - theta) * r + theta * s if cells else r
        beliefs.append(s)
        found.append(float(P[y]))
        others = torch.cat([P[:y], P[y + 1 :]])
        if config.margin - math.log(float(P[y]) / float(others.max())) <= 0:
            continue
        if y in cells:
            v, alpha, _ = cells[y]
            cells[y] = (v + h, config.decay * alpha + 1, t)
        else:
            if len(cells) == config.capacity:
                del cells[min(cells, key=lambda word: cells[word][2])]
            cells[y] = (h, 1.0, t)
    return beliefs, found


@pytest.mark.parametrize("margin", [-1.0, 0.5, 8.0])
@pytest.mark.parametrize("capacity", [1, 4, 20, None])
def test_cells_are_the_memory_of_the_paper(margin: float, capacity: int | None) -> None:
    config = MemoryConfig(lam=4.0, delta=0.7, margin=margin, capacity=capacity, decay=0.9)
    (whole,) = read(steps=150)
    beliefs, found = oracle(whole, config, 0.3)
    cells = Cells(config, 0.3, 1, DIM)
    answers = [Answer(piece.y, piece.log_r, cells.run(piece)) for piece in read()]
    s, _ = joined([one.recalled for one in answers if one.recalled is not None])
    torch.testing.assert_close(s[0], torch.stack(beliefs), atol=1e-5, rtol=1e-4)
    p = torch.cat([one.p_y() for one in answers], 1)[0]
    torch.testing.assert_close(p, torch.tensor(found), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("word", [0, 1])
def test_a_word_that_leads_is_not_written_while_there_is_room(word: int) -> None:
    y, h = torch.full((1, 3), word), torch.ones(1, 3, DIM)
    log_r = torch.tensor([0.9, 0.05, 0.05]).log().roll(word).repeat(1, 3, 1)
    cells = Cells(MemoryConfig(margin=1.0, capacity=4), 0.3, 1, DIM)
    assert not cells.run(Piece(y, y, h, log_r, 0)).s.any()


def test_cells_are_those_of_an_adapter() -> None:
    config = MemoryConfig(lam=4.0, delta=0.7, margin=0.5, capacity=5)
    adapter, words = Adapter(model(), memory=config, combiner=0.3), text(80)
    stream = adapter.stream()
    cells = Cells(config, 0.3, 1, DIM)
    (piece,) = pieces(model(), words, 1, opening=0)
    ours = Answer(piece.y, piece.log_r, cells.run(piece)).probs()[0]
    for t, y in enumerate(words.tolist()):
        theirs = stream.predict(torch.tensor(int(words[t - 1]) if t else 0)).probs
        torch.testing.assert_close(ours[t], theirs, atol=1e-5, rtol=1e-4)
        stream.observe(y)


def test_an_adapter_in_lockstep_is_the_same_method() -> None:
    config = MemoryConfig(lam=4.0, delta=0.7, margin=0.5, capacity=5)
    beside = Beside(model(), 0, lambda n: Cells(config, 0.3, n, DIM))
    steps = Lockstep(Adapter(model(), memory=config, combiner=0.3), 0)
    assert len(steps.modules) == 1
    ours, theirs = (list(one.read(text(60), 2)) for one in (beside, steps))
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one.y, other.y)
        torch.testing.assert_close(one.probs(), other.probs(), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(one.p_y(), other.p_y(), atol=1e-5, rtol=1e-4)


def test_streams_side_by_side_are_streams_alone() -> None:
    config = MemoryConfig(lam=4.0, margin=0.5, capacity=5)
    together, _ = joined([Cells(config, 0.3, 3, DIM).run(one) for one in read(3, steps=50)])
    words = text(150).view(3, 50)
    for row in range(3):
        before = 0 if row == 0 else int(words[row - 1, -1])
        (piece,) = pieces(model(), words[row], 1, before)
        alone = dense(Cells(config, 0.3, 1, DIM).run(piece))
        torch.testing.assert_close(together[row], alone[0], atol=1e-5, rtol=1e-4)


def test_a_word_has_one_cell() -> None:
    with pytest.raises(ConfigError, match="one cell per word"):
        Cells(MemoryConfig(capacity=3, cells_per_label=2), 0.3, 1, DIM)


@pytest.mark.parametrize("flat", [0.0, 0.7])
@pytest.mark.parametrize("cells", [1, 7, 60])
def test_the_cache_by_loops(cells: int, flat: float) -> None:
    (whole,) = read(steps=150)
    cache = NeuralCache(cells, flat, 0.2, 1, DIM, CPU)
    s, weight = joined([cache.run(piece) for piece in read()])
    for t in range(150):
        mass = torch.zeros(WORDS)
        for i in range(max(0, t - cells), t):
            mass[whole.y[0, i]] += math.exp(flat * float(whole.h[0, t] @ whole.h[0, i]))
        expected = mass / mass.sum() if t else mass
        torch.testing.assert_close(s[0, t], expected, atol=1e-5, rtol=1e-4)
        assert float(weight[0, t]) == pytest.approx(0.2 if t else 0.0)


def test_neighbours_by_loops() -> None:
    (whole,) = read(steps=150)
    past = PastStates(5, 0.3, 0.2, 1, DIM, CPU)
    s, _ = joined([past.run(piece) for piece in read()])
    for t in range(1, 150):
        far = [float((whole.h[0, t] - whole.h[0, i]).square().sum()) for i in range(t)]
        mass = torch.zeros(WORDS)
        for i in sorted(range(t), key=lambda i: far[i])[:5]:
            mass[whole.y[0, i]] += math.exp(-far[i] / (0.3 * DIM))
        torch.testing.assert_close(s[0, t], mass / mass.sum(), atol=2e-4, rtol=2e-3)


@pytest.mark.parametrize("touch", [False, True])
@pytest.mark.parametrize("capacity", [1, 3, 20])
@pytest.mark.parametrize("keep", [1.0, 0.6])
def test_known_writes_by_loops(keep: float, capacity: int, touch: bool) -> None:
    generator = torch.Generator().manual_seed(capacity)
    words, steps = text(90).tolist(), 30
    keys = torch.randn(1, 90, DIM, generator=generator)
    write = (torch.rand(90, generator=generator) < 0.6).tolist()
    narrow = torch.randn(DIM, 3, generator=generator)
    ledger = Ledger(capacity, decay=0.9, touch=touch)
    held = Held.empty(1, capacity, DIM, 1, keys)
    slow: dict[int, tuple[Tensor, int]] = {}  # what each word holds, and when it came last
    for start in range(0, 90, steps):
        part = slice(start, start + steps)
        facts = torch.tensor(words[part], dtype=torch.float32)[None, :, None]
        entries = Entries.of([ledger.advance(words[part], write[part])], keys)
        passage = Passage(held, entries, facts, keep)
        cos = passage.cosines(keys[:, part], held.v)
        mapped = passage.cosines(keys[:, part] @ narrow, held.v @ narrow)
        for t in range(steps):
            key = keys[0, start + t]
            alive = passage.alive[0, t]
            found = passage.facts()[0, t, :, 0][alive].long().tolist()
            assert sorted(found) == sorted(slow)
            for place, word in zip(alive.nonzero()[:, 0].tolist(), found, strict=True):
                v = slow[word][0]
                expected = torch.cosine_similarity(key, v, dim=0)
                assert float(cos[0, t, place]) == pytest.approx(float(expected), abs=1e-4)
                expected = torch.cosine_similarity(key @ narrow, v @ narrow, dim=0)
                assert float(mapped[0, t, place]) == pytest.approx(float(expected), abs=1e-4)
            _loop(slow, words[start + t], write[start + t], key, start + t, capacity, touch, keep)
        held = passage.after(keys[:, part])


def _loop(
    slow: dict[int, tuple[Tensor, int]],
    word: int,
    write: bool,
    key: Tensor,
    time: int,
    capacity: int,
    touch: bool,
    keep: float,
) -> None:
    if word in slow and (write or touch):
        v = slow[word][0]
        slow[word] = (keep * v + key if write else v, time)
    elif word not in slow and write:
        if len(slow) == capacity:
            del slow[min(slow, key=lambda one: slow[one][1])]
        slow[word] = (key, time)


def test_rates_by_loops() -> None:
    words, ledger = text(60).tolist(), Ledger(WORDS, fades=(5.0, 20.0))
    found = ledger.advance(words[:25], [True] * 25).rates
    found += ledger.advance(words[25:], [True] * 35).rates
    for t, (word, rates) in enumerate(zip(words, found, strict=True)):
        for rate, fade in zip(rates, (5.0, 20.0), strict=True):
            ages = [t - i for i in range(t + 1) if words[i] == word]
            assert rate == pytest.approx(sum(math.exp(-age / fade) for age in ages))


def recall(seed: int = 0, scale: float = 0.5) -> Recall:
    frequency = torch.log_softmax(torch.arange(WORDS, 0.0, -1.0), 0)
    made = Recall(frequency, DIM, key=4, hidden=5, units=6)
    return filled(made, seed, scale)  # type: ignore[no-any-return]


def test_an_untrained_reader_is_the_memory_at_one_theta() -> None:
    frequency = torch.zeros(WORDS)
    reader = Recall(frequency, DIM, lam=4.0, delta=0.7, theta=0.3)
    # With a margin that lets everything through, both gates write alike.
    config = MemoryConfig(lam=4.0, delta=0.7, margin=1e6, capacity=5)
    cells = Cells(config, 0.3, 1, DIM)
    memory = TextMemory(reader, TextMemoryOptions(capacity=5, margin=math.inf), 1)
    with torch.no_grad():
        for piece in read():
            ours, theirs = memory.run(piece), cells.run(piece)
            torch.testing.assert_close(dense(ours), dense(theirs), atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(ours.weight, theirs.weight)


def test_parts_of_a_score_can_be_left_out() -> None:
    with pytest.raises(ConfigError, match="parts holds 'colour'"):
        Recall(torch.zeros(WORDS), DIM, parts=["colour"])
    found = []
    with torch.no_grad():
        for parts in (None, ["cosine", "alpha"]):
            reader = Recall(torch.zeros(WORDS), DIM, parts=parts)
            reader.plain[:] = 1.0
            memory = TextMemory(reader, TextMemoryOptions(capacity=5), 1)
            found.append(joined([memory.run(piece) for piece in read()])[0])
    assert not torch.allclose(found[0], found[1])


def test_pieces_of_any_length_give_the_same() -> None:
    options, reader = TextMemoryOptions(capacity=4, margin=0.0), recall()
    found = []
    with torch.no_grad():
        for steps in (7, 40, 150):
            memory = TextMemory(reader, options, 1)
            parts = [memory.run(piece) for piece in read(steps=steps)]
            found.append(joined(parts))
    for s, theta in found[1:]:
        torch.testing.assert_close(s, found[0][0], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(theta, found[0][1], atol=1e-5, rtol=1e-4)


def test_what_comes_later_changes_nothing_before() -> None:
    words = text(60)
    other = words.clone()
    other[40:] = (other[40:] + 1) % WORDS
    found = []
    with torch.no_grad():
        for one in (words, other):
            memory = TextMemory(recall(), TextMemoryOptions(capacity=4), 1)
            (piece,) = pieces(model(), one, 1, 0)
            answer = Answer(piece.y, piece.log_r, memory.run(piece))
            found.append(answer.probs()[0])
    assert torch.equal(found[0][:40], found[1][:40])
    torch.testing.assert_close(found[0][40], found[1][40])  # before the word that differs
    torch.testing.assert_close(found[0].sum(1), torch.ones(60))


def test_a_reader_learns() -> None:
    names = torch.tensor([3, 9, 4, 11, 7, 5])
    # The same names again and again: only a memory can know them.
    words = torch.stack([text(120, 5), names.repeat(20)], 1).flatten()
    reading = Reading(model(), words, 0, TextMemoryOptions(capacity=WORDS, margin=math.inf))
    reader = Recall(torch.zeros(WORDS), DIM, key=4, hidden=5, units=6)
    losses = fit_recall(reader, reading, RecallOptions(epochs=12, tracks=4, steps=15, lr=0.05))
    assert losses[-1] < losses[0] - 0.2


def test_tracks_begin_with_the_memory_of_all_before() -> None:
    options, words = TextMemoryOptions(capacity=4, margin=0.0), text(90)
    reader = recall()
    starts = track_starts(reader, Reading(model(), words, 0, options), tracks=3)
    slow = TextMemory(reader, options, 1)
    for track, start in enumerate(starts):
        assert torch.equal(start.held.alive, slow.held.alive)
        torch.testing.assert_close(start.held.v, slow.held.v)
        alive = start.held.alive
        shifted = start.held.facts + torch.tensor([0.0, 30.0 * track] + [0.0] * 5)
        torch.testing.assert_close(shifted[alive], slow.held.facts[alive])
        before = 0 if track == 0 else int(words[30 * track - 1])
        (piece,) = pieces(model(), words[30 * track : 30 * track + 30], 1, before)
        later = replace(piece, start=30 * track)
        slow.skip(later, slow.enter(later))


def test_lessons_are_what_the_text_says() -> None:
    options, words, reader = TextMemoryOptions(capacity=4, margin=0.5, keep=0.8), text(93), recall()
    reading = Reading(model(), words, 0, options)
    starts = track_starts(reader, reading, tracks=3)
    memory, again = (resumed(reader, options, starts) for _ in range(2))
    lessons = reading.lessons(resumed(reader, options, starts), 8)
    read = list(pieces(model(), words, 3, 0, steps=8))
    for piece, lesson in zip(read, lessons, strict=True):
        whole = Answer(piece.y, piece.log_r, memory.run(piece)).nats()
        torch.testing.assert_close(lesson.nats(again), whole, rtol=0, atol=0)
        assert lesson.piece.start == piece.start
    assert reading.lessons(resumed(reader, options, starts), 8) is lessons
    (piece,) = pieces(model(), words, 1, 0)
    with torch.no_grad():
        nats = Answer(piece.y, piece.log_r, TextMemory(reader, options, 1).run(piece)).nats()
    for _ in range(2):
        loss = recall_loss(reader, reading, skipped=10)
        assert loss == pytest.approx(float(nats[:, 10:].mean()))


def test_a_killed_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(model(), text(120), 0, TextMemoryOptions(capacity=4))
    options = RecallOptions(epochs=3, tracks=2, steps=20)
    whole, again = recall(), recall()
    fit_recall(whole, reading, options, lambda: recall_loss(whole, reading))
    file, seen = tmp_path / "half", []

    def killed() -> float:
        if len(seen) == 1:
            raise KeyboardInterrupt
        seen.append(1)
        return recall_loss(again, reading)

    with pytest.raises(KeyboardInterrupt):
        fit_recall(again, reading, options, killed, file)
    late = recall(seed=3)
    fit_recall(late, reading, options, lambda: recall_loss(late, reading), file)
    for one, other in zip(whole.parameters(), late.parameters(), strict=True):
        torch.testing.assert_close(one, other)
