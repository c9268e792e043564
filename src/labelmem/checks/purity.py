"""Predicting changes nothing, and nothing the caller holds changes behind its back."""

from __future__ import annotations

import torch

from labelmem.checks.trial import Trial, all_same, follow, played, same, say, snapshot
from labelmem.trees import leaves, tree_map


def check_predicting_is_pure(trial: Trial) -> None:
    """Predictions leave the state as it is, and come out the same however often they are made."""
    stream, turns = trial.make().stream(), trial.user(0)
    follow(stream, turns[:-2])
    before = snapshot(stream)
    first = [stream.predict(x) for x, _ in turns]
    again = [stream.predict(x) for x, _ in reversed(turns)][::-1]
    say(snapshot(stream) == before, "predict changed the state; only observe may")
    for p, q in zip(first, again, strict=True):
        for name in ("probs", "theta", "model_probs", "memory_probs"):
            equal = same(getattr(p, name), getattr(q, name))
            say(equal, f"predicting the same input twice gave two different {name}")


def check_unobserved_predictions_do_not_matter(trial: Trial) -> None:
    """Predictions in between that are never observed leave no trace in later ones."""
    method, turns = trial.make(), trial.user(0)
    expected = follow(method.stream(), turns)
    curious, seen = method.stream(), []
    for (x, y), (other, _) in zip(turns, reversed(turns), strict=True):
        curious.predict(other)
        p = curious.predict(x)
        curious.predict(other)
        seen.append(p.probs)
        curious.observe(y, prediction=p)
    say(all_same(seen, expected), "predictions that were never observed changed later ones")


def check_inputs_are_not_aliased(trial: Trial) -> None:
    """The caller may reuse its buffer after predict, and finds its inputs unchanged."""
    method, turns = trial.make(), trial.user(0)
    expected = follow(method.stream(), turns)
    stream, seen = method.stream(), []
    for x, y in turns:
        buffer = tree_map(torch.clone, x)
        p = stream.predict(buffer)
        same_input = all(torch.equal(a, b) for a, b in zip(leaves(buffer), leaves(x), strict=True))
        say(same_input, "predict wrote into the caller's input")
        for leaf in leaves(buffer):
            leaf.zero_()
        seen.append(p.probs.clone())
        stream.observe(y)
    say(all_same(seen, expected), "the method kept the caller's buffer instead of a copy of it")


def check_predictions_never_change(trial: Trial) -> None:
    """A prediction still says what it said after any number of later observations."""
    stream, turns = trial.make().stream(), trial.user(0)
    kept, copies, labels = [], [], []
    for p in played(stream, turns):
        kept.append(p)
        copies.append(p.probs.clone())
        labels.append(list(p.labels))
    say(all_same([p.probs for p in kept], copies), "observing changed an earlier prediction")
    say([p.labels for p in kept] == labels, "observing changed the labels of a prediction")


def check_method_is_untouched(trial: Trial) -> None:
    """What one stream learns goes into its state: the model's weights stay as they are."""
    method = trial.make()
    model = getattr(getattr(method, "backbone", None), "model", None)
    if model is None:
        return
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    follow(method.stream(), trial.user(0))
    for name, tensor in model.state_dict().items():
        say(torch.equal(tensor, before[name]), f"observing changed the model's {name}")
    held = [name for name, p in model.named_parameters() if p.grad is not None]
    say(not held, f"gradients were left on the model's {held}")


def check_predictions_carry_no_graph(trial: Trial) -> None:
    """Nobody is going to differentiate through a stream: no prediction holds a graph."""
    for p in played(trial.make().stream(), trial.user(0)):
        tensors = (p.probs, p.theta, p.model_probs, p.memory_probs)
        graphs = [t.requires_grad for t in tensors if t is not None]
        say(not any(graphs), "a prediction holds an autograd graph; it would grow with the stream")
