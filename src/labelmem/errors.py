"""Everything that can go wrong, under one base class, and what users are warned of.

Each error is also the standard exception a caller would expect, so that ``except ValueError`` keeps
working. Messages say what was seen, what was expected and what to do.
"""

__all__ = [
    "ClosedError",
    "ConfigError",
    "CorruptFileError",
    "DataError",
    "FormatVersionError",
    "InputError",
    "LabelMemError",
    "MismatchError",
    "MissingDataError",
    "MissingExtraError",
    "ModelError",
    "ObserveError",
    "StorageError",
    "TeachesNothingWarning",
    "UnsupportedError",
]


class LabelMemError(Exception):
    """Base of all errors raised by labelmem."""


class ConfigError(LabelMemError, ValueError):
    """An option has a value it cannot have."""


class InputError(LabelMemError, ValueError):
    """An input, a label or a mask has the wrong shape, type or content."""


class ModelError(LabelMemError, TypeError):
    """The wrapped model is not a classifier that can be adapted, or answered nonsense."""


class ObserveError(LabelMemError, RuntimeError):
    """A label was revealed for no prediction, twice, or for another stream's prediction."""


class ClosedError(LabelMemError, RuntimeError):
    """The adapter was closed and its hooks are gone."""


class UnsupportedError(LabelMemError, RuntimeError):
    """What was asked is not in the nature of the object."""


class MissingExtraError(LabelMemError, ImportError):
    """An optional dependency is not installed; the message names the ``pip install`` line."""


class StorageError(LabelMemError, OSError):
    """A file could not be read or written as labelmem state."""


class CorruptFileError(StorageError):
    """A file is truncated or altered: its checksum does not hold."""


class FormatVersionError(StorageError):
    """A file was written by a newer labelmem."""


class MismatchError(StorageError, ValueError):
    """A file is sound but belongs to another model, dimension, label set or configuration."""


class DataError(LabelMemError, ValueError):
    """A data set is malformed or empty; the message names the file, the line and the remedy."""


class MissingDataError(DataError, FileNotFoundError):
    """A data set is not on this computer; the message says where to get it."""


class TeachesNothingWarning(UserWarning):
    """Recorded streams were given to learn from that cannot teach what is asked of them."""
