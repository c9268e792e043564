"""Plain few-shot and the limited-memory study: episodes, splits, means, MAML, training."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from labelmem_paper.experiments.few_shot.all_weights import AllWeights
from labelmem_paper.experiments.few_shot.embeddings import KINDS, make_embedding
from labelmem_paper.experiments.few_shot.episode import draw_episode, shot_figures
from labelmem_paper.experiments.few_shot.methods.maml import MAML
from labelmem_paper.experiments.few_shot.prototypes import prototype_loss, replay_means
from labelmem_paper.experiments.few_shot.task import FewShotTask
from labelmem_paper.experiments.images.fit_pictures import PictureOptions, bent, fit_steps
from labelmem_paper.experiments.images.meta_learning import Lessons, adapted_losses
from labelmem_paper.experiments.long_tail.drawing import draw_long_tail, rare_figures
from labelmem_paper.experiments.long_tail.methods.knn import KNN
from labelmem_paper.experiments.long_tail.task import LongTailTask
from labelmem_paper.experiments.table import load_table
from torch import Tensor, nn
from toys import filled

from labelmem.errors import ConfigError, ModelError
from labelmem.fast import plainly
from labelmem.models import ConvNet

CPU = torch.device("cpu")


def few_shot(folder: Path, **options: object) -> FewShotTask:
    (run,) = load_table("table4").runs("smoke", methods=["lmn-2"])
    config = {**run.config, "options": {**run.config["options"], **options}}
    return FewShotTask(replace(run, config=config), CPU, folder, show=False)


def test_every_label_is_shown_once_before_any_is_shown_twice() -> None:
    episode = draw_episode(labels=30, drawings=5, shots=3, seed=1)
    for shot in range(4):
        assert sorted(episode.label[episode.shot == shot].tolist()) == list(range(30))
    pairs = set(zip(episode.label.tolist(), episode.drawing.tolist(), strict=True))
    assert len(pairs) == 120


def test_figures_by_hand() -> None:
    episode = draw_episode(labels=40, drawings=3, shots=2, seed=2)
    generator = torch.Generator().manual_seed(0)
    right = torch.rand(120, generator=generator) < 0.7
    answers = torch.where(right, episode.label, -1)
    found = shot_figures(episode, answers)
    for shot in (1, 2):
        expected = float(right[episode.shot == shot].float().mean())
        assert found["metrics"][f"shot{shot}"] == pytest.approx(expected)
        low, high = found["interval"][f"shot{shot}"]
        assert low < expected < high
    assert (found["streams"], found["tokens"]) == (40, 120)


def test_parts_of_the_task_share_no_drawing(tmp_path: Path) -> None:
    task = few_shot(tmp_path)
    assert task.background.shape == (32, 8, 8, 8)
    parts = [task.background[:, :4], task.valid.pictures, task.test.pictures]
    assert [part.shape[1] for part in parts] == [4, 2, 2]
    assert torch.equal(torch.cat(parts, dim=1), task.background)
    unseen = few_shot(tmp_path, reading="unseen")
    assert unseen.test.pictures.shape == (32, 2, 8, 8)
    assert not torch.equal(unseen.test.pictures, task.test.pictures)
    with pytest.raises(ConfigError, match="reading is 'none'"):
        few_shot(tmp_path, reading="none")
    with pytest.raises(ConfigError, match="the embedding is 'magic'"):
        make_embedding("magic", ConvNet(2, dim=2, size=4, channels=(2, 2)))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_embedding_learns(kind: str, tmp_path: Path) -> None:
    task = few_shot(tmp_path)
    made = task.embedding(kind)
    kept = list(tmp_path.glob("*.safetensors"))
    again = task.embedding(kind)
    assert len(kept) == 1 and list(tmp_path.glob("*.safetensors")) == kept
    x = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(made(x), again(x)) and made(x).shape == (3, 8)


def test_triplets_by_loops() -> None:
    generator = torch.Generator().manual_seed(8)
    made = make_embedding("kaiser", ConvNet(6, dim=3, size=4, channels=(2, 2)), cells=8)
    h = torch.nn.functional.normalize(torch.randn(4, 2, 3, generator=generator), dim=2)
    terms = []
    for label in range(4):
        near = (h[:, 0] @ h[label, 1]).tolist()
        right = near.pop(label)
        terms.append(max(0.0, max(near) - right + 0.1))
    found = made.loss(h, torch.tensor([5, 1, 0, 3]), generator)
    assert float(found) == pytest.approx(sum(terms) / 4, rel=1e-5)
    # What a batch wrote is gone before the next one.
    assert float(made.loss(h, torch.tensor([0, 1, 2, 3]), generator)) == pytest.approx(float(found))


def test_means_by_loops() -> None:
    generator = torch.Generator().manual_seed(4)
    y = torch.randint(7, (300,), generator=generator)
    h = torch.randn(7, 3, generator=generator)[y] + torch.randn(300, 3, generator=generator)
    h = h.double()
    met: dict[int, list[Tensor]] = {}
    expected = []
    for x, label in zip(h, y.tolist(), strict=True):
        far = {one: float((torch.stack(rows).mean(0) - x).norm()) for one, rows in met.items()}
        expected.append(min(far, key=lambda one: far[one]) if far else -1)
        met.setdefault(label, []).append(x)
    assert replay_means(h, y, 7).tolist() == expected


def test_the_prototype_loss_by_loops() -> None:
    h = torch.randn(4, 3, 2, generator=torch.Generator().manual_seed(5))
    terms = []
    for label in range(4):
        for x in h[label, 2:]:
            far = torch.stack([-((x - h[one, :2].mean(0)) ** 2).sum() for one in range(4)])
            terms.append(-torch.log_softmax(far, dim=0)[label])
    assert float(prototype_loss(h, 2)) == pytest.approx(float(torch.stack(terms).mean()), rel=1e-5)


@pytest.mark.parametrize("first_order", [False, True])
def test_adapted_losses_by_loops(first_order: bool) -> None:
    model = filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 5)), 0).double()
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(3, 4, 3, generator=generator, dtype=torch.float64)
    y = torch.randint(5, (3, 4), generator=generator)
    counts = torch.rand(3, 4, generator=generator) < 0.6
    found = adapted_losses(model, Lessons(x, y, counts), 0.3, first_order)
    slopes = torch.autograd.grad(found, list(model.parameters()))
    total = torch.zeros((), dtype=torch.float64)
    for sequence in range(3):
        weights = dict(model.named_parameters())
        for t in range(4):
            logits = torch.func.functional_call(model, weights, (x[sequence, t],))
            loss = -torch.log_softmax(logits, dim=0)[y[sequence, t]]
            total = total + loss * counts[sequence, t]
            moves = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            moves = tuple(move.detach() for move in moves) if first_order else moves
            weights = {
                name: weight - 0.3 * move
                for (name, weight), move in zip(weights.items(), moves, strict=True)
            }
    expected = total / counts.sum()
    assert float(found.detach()) == pytest.approx(float(expected.detach()))
    for one, other in zip(slopes, torch.autograd.grad(expected, model.parameters()), strict=True):
        torch.testing.assert_close(one, other)


def test_maml_leaves_its_body_as_it_was(tmp_path: Path) -> None:
    (run,) = load_table("table4").runs("smoke", methods=["maml"])
    task = FewShotTask(run, CPU, tmp_path, show=False)
    method = MAML(task)
    before = {name: p.clone() for name, p in method.body.state_dict().items()}
    learner = method.finish({"lr": 0.1, "head_lr": 0.2}, tmp_path)
    answers = learner.answer(task.valid)
    assert torch.equal(answers, learner.answer(task.valid))
    assert int(answers[0]) == -1 and bool((answers[1:] >= 0).all())
    for name, weight in method.body.state_dict().items():
        assert torch.equal(weight, before[name])


def stepping(task: FewShotTask, seed: int = 0) -> nn.Sequential:
    net = ConvNet(len(task.valid.pictures), dim=6, size=8, channels=(3, 3))
    model: nn.Sequential = filled(nn.Sequential(net.body, net.head), seed, 0.3).to(task.device)
    return model


def test_all_weights_step_by_loops(tmp_path: Path) -> None:
    task = few_shot(tmp_path)
    shown, lr, head_lr = task.valid, 0.05, 0.1
    model = stepping(task)
    body, head = model[0].parameters(), model[1].parameters()
    descent = torch.optim.SGD([{"params": body}, {"params": head, "lr": head_lr}], lr)
    expected, met = [], set[int]()
    for y, drawing in zip(shown.episode.label.tolist(), shown.episode.drawing, strict=True):
        x = shown.pictures[y, drawing].float() / 255
        logits = model(x[None, None])[0]
        expected.append(max(met, key=lambda label: float(logits[label].detach()), default=-1))
        model.zero_grad()
        (torch.logsumexp(logits, 0) - logits[y]).backward()
        descent.step()
        met.add(y)
    adapting = stepping(task)
    assert AllWeights(adapting, lr, head_lr, shown).answers().tolist() == expected
    assert len(set(expected)) > 3
    for one, other in zip(adapting.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA: this records a graph")
def test_recorded_steps_are_plain_ones(tmp_path: Path) -> None:
    task = replace(few_shot(tmp_path), device=torch.device("cuda"))
    ways = []
    for recorded in (True, False):
        model = stepping(task)
        with nullcontext() if recorded else plainly():
            answers = AllWeights(model, 0.05, 0.1, task.valid).answers()
        ways.append((answers, list(model.parameters())))
    (found, weights), (expected, others) = ways
    assert float((found == expected).float().mean()) > 0.95
    for one, other in zip(weights, others, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_bent_pictures_stay_recognisable() -> None:
    x = torch.zeros(6, 1, 12, 12)
    x[:, :, 4:8, 4:8] = 1.0
    moved = bent(x, 0.5, torch.Generator().manual_seed(0))
    assert moved.shape == x.shape and not torch.equal(moved, x)
    ink = moved.sum(dim=(1, 2, 3))
    assert bool(((ink > 6) & (ink < 36)).all())


class StoppedError(Exception):
    pass


def test_training_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    x, y = torch.randn(40, 3, generator=torch.Generator().manual_seed(1)), torch.arange(40) % 2
    options = PictureOptions(steps=40, batch=8, lr=0.05)

    def trained(checkpoint: Path | None, stop: int | None = None) -> dict[str, Tensor]:
        model = filled(nn.Linear(3, 2), 3)
        taken = 0

        def loss(generator: torch.Generator) -> Tensor:
            nonlocal taken
            taken += 1
            if taken == stop:
                raise StoppedError
            rows = torch.randint(40, (8,), generator=generator)
            return nn.functional.cross_entropy(model(x[rows]), y[rows])

        fit_steps(model, loss, options, 0, checkpoint, show=False)
        return model.state_dict()

    straight = trained(None)
    with pytest.raises(StoppedError):
        trained(tmp_path / "c", stop=27)
    for name, weight in trained(tmp_path / "c").items():
        assert torch.equal(weight, straight[name])
    with pytest.raises(ModelError, match="lower lr"):
        fit_steps(filled(nn.Linear(1, 1), 0), lambda _: torch.tensor(np.nan), options, 0)
    for wrong in ({"lr": 0.0}, {"bend": 2.0}, {"batch": 0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            PictureOptions(**wrong)  # type: ignore[arg-type]


def test_a_long_tail() -> None:
    stream = draw_long_tail(labels=50, drawings=4, most=40, seed=0)
    times = torch.bincount(stream.label).sort(descending=True).values.tolist()
    assert times == [max(40 // rank, 2) for rank in range(1, 51)]
    for label in range(50):
        here = stream.label == label
        assert stream.shot[here].tolist() == list(range(int(here.sum())))
        assert len(set(stream.drawing[here].tolist())) == min(4, int(here.sum()))


def test_rare_labels_by_hand() -> None:
    stream = draw_long_tail(labels=9, drawings=3, most=12, seed=1)
    right = torch.rand(len(stream.label), generator=torch.Generator().manual_seed(2)) < 0.6
    found = rare_figures(stream, torch.where(right, stream.label, -1), rare=3)["metrics"]
    times = torch.bincount(stream.label)
    groups: dict[str, list[bool]] = {"all": [], "rare": [], "frequent": []}
    for label, shot, hit in zip(stream.label, stream.shot, right.tolist(), strict=True):
        if shot > 0:
            groups["all"].append(hit)
            groups["rare" if times[label] <= 3 else "frequent"].append(hit)
    assert found == pytest.approx({name: sum(part) / len(part) for name, part in groups.items()})


def test_the_latest_examples_answer(tmp_path: Path) -> None:
    (run,) = load_table("limited").runs("smoke", methods=["knn"])
    method = KNN(LongTailTask(run, CPU, tmp_path, show=False))
    h, y = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 4
    found = method.answers({}, h, y, capacity=5).tolist()
    expected = [-1]
    for t in range(1, 30):
        past = range(max(0, t - 5), t)
        nearest = max(past, key=lambda i: float(torch.cosine_similarity(h[i], h[t], dim=0)))
        expected.append(int(y[nearest]))
    assert found == expected


@pytest.mark.data
def test_the_real_labels(tmp_path: Path) -> None:
    if not os.environ.get("LABELMEM_DATA"):
        pytest.skip("LABELMEM_DATA names no folder with the real data sets")
    for reading, labels in (("", 3856), ("-unseen", 2636)):
        (run,) = load_table("table4").runs("paper", methods=[f"lmn-2{reading}"], seeds=[0])
        task = FewShotTask(run, CPU, tmp_path, show=False)
        assert task.background.shape[:2] == (3856, 20)
        assert task.test.pictures.shape[:2] == (labels, 4)
