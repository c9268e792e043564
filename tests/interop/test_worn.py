from __future__ import annotations

import copy
import pickle

import numpy as np
from toys import Recurrent, Stateless, random_stream

from labelmem import Adapter, MemoryConfig
from labelmem.interop.worn import Worn

MEMORY = MemoryConfig(cells_per_label=2, capacity=6)


def test_it_steps_as_a_stream_does() -> None:
    for model in (Stateless(), Recurrent()):
        worn = Worn(model, None, None, MEMORY, theta=0.4)
        stream = Adapter(model, memory=MEMORY, combiner=0.4).stream()
        x, ys = random_stream(0, 60, range(4), ["new", "newer"])
        for t, y in enumerate(ys):
            p = stream.predict(x[t])
            P = worn.probs(x[t : t + 1].numpy())
            assert worn.space.names(P.shape[1]) == p.labels
            np.testing.assert_allclose(P[0], p.probs.numpy(), atol=1e-6)
            stream.observe(y)
            worn.learn(x[t].numpy(), y)


def test_many_questions_are_answered_as_one_by_one() -> None:
    worn = Worn(Recurrent().double(), None, None, MEMORY, theta=0.4)
    x, ys = random_stream(1, 300, range(4), ["new"])
    X = x.double().numpy()
    for t, y in enumerate(ys[:30]):
        worn.learn(X[t], y)
    one_by_one = np.concatenate([worn.probs(X[t : t + 1]) for t in range(len(X))])
    np.testing.assert_allclose(worn.probs(X), one_by_one, atol=1e-12)
    np.testing.assert_allclose(worn.probs(X).sum(axis=1), 1.0, rtol=1e-12)


def test_copies_and_pickles_go_their_own_ways() -> None:
    worn = Worn(Stateless(), None, None, MEMORY, theta=0.5)
    worn.learn(np.ones(3), "first")
    X = np.array([[1.0, 0.5, 0.2]])
    for other in (copy.deepcopy(worn), pickle.loads(pickle.dumps(worn))):
        np.testing.assert_array_equal(other.probs(X), worn.probs(X))
        other.learn(-np.ones(3), "second")
        assert len(other.space) == len(worn.space) + 1
