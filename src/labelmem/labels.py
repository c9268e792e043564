"""Names of labels: any hashable outside, whole numbers inside."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from typing import Any

from labelmem.errors import ConfigError, InputError

__all__ = ["KnownLabels", "LabelSpace"]


class KnownLabels:
    """The labels the model was trained on, shared by all streams; ids are their positions.

    Examples
    --------
    >>> known = KnownLabels(["cat", "dog"])
    >>> known.find("dog"), known.find("emu"), len(known)
    (1, None, 2)
    """

    def __init__(self, labels: Iterable[Hashable] | int) -> None:
        # A range needs no dictionary, however many labels there are.
        names: Sequence[Any] = (
            range(labels)
            if isinstance(labels, int)
            else [new_label(plain(label)) for label in labels]
        )
        counted = all(type(name) is int and name == i for i, name in enumerate(names))
        self.names: Sequence[Any] = range(len(names)) if counted else tuple(names)
        self._ids: dict[Hashable, int] | None = None
        if not isinstance(self.names, range):
            self._ids = {name: i for i, name in enumerate(self.names)}
            if len(self._ids) != len(self.names):
                twice = next(x for i, x in enumerate(self.names) if self._ids[x] != i)
                raise ConfigError(f"the label {twice!r} is listed twice; labels must be distinct")

    def __deepcopy__(self, _: dict[int, Any]) -> KnownLabels:
        return self  # nothing about it ever changes, and a label is found by what it is

    def __len__(self) -> int:
        return len(self.names)

    @property
    def are_ids(self) -> bool:
        """Whether the labels are just 0..L-1, so that a label is its own id."""
        return self._ids is None

    def find(self, label: Hashable) -> int | None:
        """The id of a label, or None for one the model does not know."""
        if self._ids is not None:
            return self._ids.get(label)
        number = hash(label)  # of what equals a small whole number it is that number
        return number if 0 <= number < len(self.names) and label == number else None


class LabelSpace:
    """The model's labels followed by one stream's own, in the order they were first observed.

    Examples
    --------
    >>> space = LabelSpace(KnownLabels(["cat", "dog"]))
    >>> space.add("emu"), space.find("emu"), len(space)
    (2, 2, 3)
    >>> space.names(3)
    ['cat', 'dog', 'emu']
    """

    def __init__(self, known: KnownLabels, own: Iterable[Hashable] = ()) -> None:
        self.known = known
        # One dictionary is all: there may be many streams, and it keeps the order of arrival.
        self._ids = {name: len(known) + i for i, name in enumerate(own)}

    def __deepcopy__(self, _: dict[int, Any]) -> LabelSpace:
        return LabelSpace(self.known, self._ids)

    @property
    def own(self) -> list[Any]:
        """The labels that only this stream knows."""
        return list(self._ids)

    def __len__(self) -> int:
        return len(self.known) + len(self._ids)

    def find(self, label: Hashable) -> int | None:
        """The id of a label in this stream, or None for one it has never met."""
        found = self.known.find(label)
        return self._ids.get(label) if found is None else found

    def add(self, label: Hashable) -> int:
        """Find a label, giving it the next id if it is new."""
        found = self.find(label)
        if found is None:
            found = self._ids[new_label(label)] = len(self)
        return found

    def name(self, index: int) -> Any:
        """The label with this id."""
        known = len(self.known)
        if index < known:
            return self.known.names[index]
        return next(islice(self._ids, index - known, None))

    def names(self, width: int) -> list[Any]:
        """The labels of the first ``width`` ids."""
        return [*self.known.names, *islice(self._ids, max(0, width - len(self.known)))]


def new_label(label: Hashable) -> Hashable:
    """A label that nobody has seen; None and NaN say that there is none.

    Examples
    --------
    >>> new_label(float("nan"))
    Traceback (most recent call last):
    labelmem.errors.InputError: nan is no label; observe only what was revealed
    """
    if label is None or label != label:
        raise InputError(f"{label} is no label; observe only what was revealed")
    return label


def plain(label: Any) -> Hashable:
    """A label as a plain hashable: scalars of numpy and torch become Python's own.

    Raises
    ------
    InputError
        If the label cannot be hashed.
    """
    if hasattr(label, "ndim") and hasattr(label, "item"):
        if label.ndim:  # a tensor has a hash, but no two are equal
            raise InputError(
                f"a label is a {type(label).__name__} of shape {tuple(label.shape)}; "
                "give one label at a time"
            )
        label = label.item()
    try:
        hash(label)
    except TypeError:
        raise InputError(
            f"the label {label!r} ({type(label).__name__}) cannot be hashed; "
            "use a number, a string, a tuple or another hashable"
        ) from None
    return label  # type: ignore[no-any-return]
