"""The labeled memory as an estimator of scikit-learn."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from labelmem.config import MemoryConfig
from labelmem.errors import InputError, MissingExtraError
from labelmem.interop.network import BESIDE, THETA, InputAndHidden, train_network
from labelmem.interop.together import Alone, lifted, without_a_model
from labelmem.interop.vectors import Array
from labelmem.interop.worn import Worn
from labelmem.labels import plain
from labelmem.models import FitOptions

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtraError(
        "labelmem.interop.sklearn needs scikit-learn, which is not installed: "
        "pip install 'labelmem[sklearn]'"
    ) from error

if TYPE_CHECKING:
    from torch import nn

__all__ = ["LabelMemClassifier"]

_KEPT = 10  # rows of each label that fit keeps for the memory


class LabelMemClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # they are untyped
    """Labeled Memory Network: a network that goes on learning from every label shown to it.

    ``fit`` trains a small network. From then on ``partial_fit`` leaves its weights alone and feeds
    a memory beside it, row by row. Labels that ``fit`` has never seen are welcome once they are
    announced in ``classes``.

    Without ``fit``, ``partial_fit`` is all there is: the features themselves are what the memory
    compares, beside the mean and variance of every label and the last rows; see
    :class:`labelmem.interop.together.Together`. Put the features on one scale first.

    With a trained model of your own, ``fit`` starts with an empty memory and shows it the data.

    Parameters
    ----------
    model
        A trained torch classifier of rows, or None to train one. It is copied, not changed.
    labels
        Names of the model's logits; None means 0, 1, and so on.
    head
        Name of the model's last linear layer; None finds it.
    hidden, dim
        Without a model: sizes of the network's hidden layers, and of the vectors that the memory
        compares.
    training
        Without a model: how to train it; its seed gives way to ``random_state``.
    memory
        How the memory reads, writes and forgets. None takes what suits: the adapter's defaults
        around your model, :data:`labelmem.interop.network.BESIDE` beside a trained network,
        :data:`labelmem.interop.together.TOGETHER` without one.
    theta
        The fixed weight of the memory beside a network (LMN-fixed). None is the default form of
        :class:`labelmem.Adapter` around your model, which learns how far to believe the memory,
        and :data:`labelmem.interop.network.THETA` beside a trained network.
    window
        Without a network: how many of the last rows are kept; 0 leaves it all to the memory.
    random_state
        Of the network's first weights and the order of its training.

    Attributes
    ----------
    classes_
        All labels that were announced or seen, sorted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> known = y < 2
    >>> classifier = LabelMemClassifier(random_state=0).fit(X[known], y[known])
    >>> _ = classifier.partial_fit(X[100:103], y[100:103], classes=[2])   # a label it has never met
    >>> classifier.predict(X[[0, 60, 120]])
    array([0, 1, 2])

    References
    ----------
    Labeled Memory Networks for Online Model Adaptation (AAAI 2018).
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int
    # Rows of fit that the memory is shown before its first own ones. An empty memory that meets a
    # new label knows that label alone, and would see it everywhere.
    _reminder: tuple[Array, npt.NDArray[Any]] | None = None

    def __init__(
        self,
        model: nn.Module | None = None,
        *,
        labels: Sequence[Hashable] | None = None,
        head: str | None = None,
        hidden: Sequence[int] = (64,),
        dim: int = 32,
        training: FitOptions | None = None,
        memory: MemoryConfig | None = None,
        theta: float | None = None,
        window: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.labels = labels
        self.head = head
        self.hidden = hidden
        self.dim = dim
        self.training = training
        self.memory = memory
        self.theta = theta
        self.window = window
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train a network on rows X (n, features) and labels y (n,), or show them to the memory."""
        X, y = self._checked(X, y, reset=True)
        self.classes_ = np.unique(y)
        self._reminder = None
        if self.model is None:
            self.learner_: Alone | Worn = self._trained(X, y)
            kept = _first_of_each(y, _KEPT)
            self._reminder = X[kept], y[kept]
        else:
            self._begin_around(self.model)
            self._learn(X, y)
        return self

    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None
    ) -> Self:
        """Show the memory rows X (n, features) and their labels y (n,), in this order.

        Parameters
        ----------
        classes
            Labels that may come, now or later; needed in the first call unless ``fit`` or the model
            knows them all. Later calls may add more.
        """
        first = not hasattr(self, "learner_")
        X, y = self._checked(X, y, reset=first)
        if first:
            self._start(classes)
        if classes is not None:
            self._announce(classes)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise InputError(
                f"y has the labels {unknown.tolist()}, which were not announced; "
                f"known are {self.classes_.tolist()}, pass others in classes"
            )
        if self._reminder is not None:
            self._learn(*self._reminder)
            self._reminder = None
        self._learn(X, y)
        return self

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Probabilities (n, classes) of the labels in ``classes_`` for rows X (n, features)."""
        check_is_fitted(self, "learner_")
        rows: Array = validate_data(self, X, reset=False, dtype=np.float64)
        known = self.learner_.probs(self._vectors(rows))
        names = self.learner_.space.names(known.shape[1])
        P = np.zeros((len(known), len(self.classes_)))
        columns = {plain(label): column for column, label in enumerate(self.classes_)}
        P[:, [columns[name] for name in names]] = known
        return P

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable labels (n,) of rows X (n, features)."""
        best = self.predict_proba(X).argmax(axis=1)
        predicted: npt.NDArray[Any] = self.classes_[best]
        return predicted

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Array, npt.NDArray[Any]]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64)
        check_classification_targets(y)
        return X, y

    def _trained(self, X: Array, y: npt.NDArray[Any]) -> Worn:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        numbers = np.searchsorted(self.classes_, y)
        labels = [plain(label) for label in self.classes_]
        model = train_network(X, numbers, len(labels), self.hidden, self.dim, self.training, seed)
        theta = THETA if self.theta is None else self.theta
        key = InputAndHidden(model)
        return Worn(model, None, labels, self.memory or BESIDE, theta, key)

    def _begin_around(self, model: nn.Module) -> None:
        # A copy: the parameters of an estimator are not its to change.
        self.learner_ = Worn(copy.deepcopy(model), self.head, self.labels, self.memory, self.theta)
        self._announce(self.learner_.adapter.known.names)

    def _start(self, classes: npt.ArrayLike | None) -> None:
        """Begin without training: around the given model, or without one."""
        if self.model is None and classes is None:
            raise InputError("classes is None; the first call of partial_fit needs all labels")
        self.classes_ = np.empty(0)
        if self.model is None:
            self.learner_ = without_a_model(self.memory, 1 + self.n_features_in_, self.window)
        else:
            self._begin_around(self.model)

    def _announce(self, labels: Any) -> None:
        """Add labels to those that may come."""
        known, more = self.classes_, np.asarray(labels)
        if not len(known) or not len(more):
            self.classes_ = np.unique(more if len(more) else known)
        elif (known.dtype.kind in "USO") == (more.dtype.kind in "USO"):
            self.classes_ = np.union1d(known, more)
        else:
            raise InputError(
                f"the labels {more.tolist()} are of another kind than {known.tolist()}; "
                "numbers and names cannot be put in one order"
            )

    def _learn(self, X: Array, y: npt.NDArray[Any]) -> None:
        for x, label in zip(self._vectors(X), y, strict=True):
            self.learner_.learn(x, label)

    def _vectors(self, X: Array) -> Array:
        return lifted(X, X.shape[1]) if isinstance(self.learner_, Alone) else X


def _first_of_each(y: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Positions of the first ``count`` rows of each label, in their order."""
    places = [np.flatnonzero(y == label)[:count] for label in np.unique(y)]
    return np.sort(np.concatenate(places))
