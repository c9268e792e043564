"""Options of the memory, with the paper's defaults, checked once when they are made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from labelmem.errors import ConfigError
from labelmem.index_config import IndexConfig

__all__ = [
    "IndexConfig",
    "IndexedMemoryConfig",
    "MemoryConfig",
    "NarrowMemoryConfig",
    "check_limits",
]

_ALWAYS = "always"
_USUAL_INDEX = IndexConfig()


@dataclass(frozen=True)
class MemoryConfig:
    """How the labeled memory reads, writes and forgets.

    Examples
    --------
    >>> MemoryConfig(lam=5.0, cells_per_label=2).decay
    0.99
    >>> MemoryConfig(decay=1.5)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: decay is 1.5; it must lie in (0, 1]
    """

    lam: float = 5.0
    """Sharpness of the kernel ``exp(lam * cos)`` (the paper's lambda); 0 ignores the input."""
    delta: float = 1.0
    """Power of the weight alpha in the score (Eq. 3); 0 ignores how often a label was written."""
    margin: float = 1.0
    """Nats by which the true label must lead; a smaller lead is written. May be negative; with inf
    everything is written."""
    decay: float = 0.99
    """Factor on the weights of a label's cells each time that label is written."""
    cells_per_label: int | None = 1
    """T, the most cells one label may own; None sets no limit."""
    capacity: int | None = None
    """N, the most cells one stream may own; None sets no limit."""
    write_lam: bool = True
    """Whether write weights use ``lam`` as the read does; the paper's algorithm box omits it."""
    evict: Literal["oldest", "weight"] = "oldest"
    """What makes room at capacity: the cell written longest ago, or the smallest alpha."""

    def __post_init__(self) -> None:
        for name in ("lam", "delta", "margin", "decay"):
            always = name == "margin" and self.margin == math.inf
            if not math.isfinite(getattr(self, name)) and not always:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be a finite number")
        if self.lam < 0 or self.delta < 0:
            raise ConfigError(f"lam is {self.lam}, delta is {self.delta}; both must be at least 0")
        if not 0 < self.decay <= 1:
            raise ConfigError(f"decay is {self.decay}; it must lie in (0, 1]")
        for name in ("cells_per_label", "capacity"):
            limit = getattr(self, name)
            if limit is not None and (type(limit) is not int or limit < 1):
                raise ConfigError(f"{name} is {limit!r}; it must be a whole number from 1, or None")
        if self.evict not in ("oldest", "weight"):
            raise ConfigError(f"evict is {self.evict!r}; it must be 'oldest' or 'weight'")

    @property
    def index(self) -> IndexConfig | None:
        """How a large memory is read in part; None, as here, reads all of it."""
        return None

    @property
    def cell_bits(self) -> int | None:
        """Bits of each number in a cell; None, as here, keeps cells as precise as h."""
        return None

    def plain(self) -> dict[str, Any]:
        """The options as JSON and TOML can hold them: they have no infinity.

        Examples
        --------
        >>> MemoryConfig(margin=math.inf).plain()["margin"]
        'always'
        """
        options = asdict(self)
        return options | ({"margin": _ALWAYS} if self.margin == math.inf else {})

    @classmethod
    def from_plain(cls, options: Mapping[str, Any]) -> MemoryConfig:
        """What :meth:`plain` wrote; options that it does not say are the usual ones.

        Examples
        --------
        >>> MemoryConfig.from_plain({"margin": "always"}).margin
        inf
        """
        always = {"margin": math.inf} if options.get("margin") == _ALWAYS else {}
        said = dict(options) | always
        if "index" in said:
            return IndexedMemoryConfig(**said | {"index": IndexConfig(**said["index"])})
        if "cell_bits" in said:
            return NarrowMemoryConfig(**said)
        return cls(**said)


@dataclass(frozen=True)
class IndexedMemoryConfig(MemoryConfig):
    """The same for a memory that is read in part once it is large, by one stream on a CPU.

    Examples
    --------
    >>> IndexedMemoryConfig(lam=20.0, index=IndexConfig(probes=8)).index
    IndexConfig(lists=None, probes=8, least=50000)
    """

    index: IndexConfig = _USUAL_INDEX  # a value of the class: it must hide the base's property
    """Which part is read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.index, IndexConfig):
            raise ConfigError(f"index is {self.index!r}; it must be an IndexConfig")


@dataclass(frozen=True)
class NarrowMemoryConfig(MemoryConfig):
    """The same for a memory whose cells take half the bytes; :mod:`labelmem.narrow` says how.

    Probabilities are within 1e-3 of those of a memory of 32 bits, for lam up to some tens.

    Examples
    --------
    >>> NarrowMemoryConfig(lam=20.0).cell_bits
    16
    >>> NarrowMemoryConfig(cell_bits=8)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: cell_bits is 8; cells of 16 bits are the only narrow ones
    """

    cell_bits: int = 16  # a value of the class: it must hide the base's property
    """Bits of each number in a cell."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cell_bits != 16:
            raise ConfigError(
                f"cell_bits is {self.cell_bits!r}; cells of 16 bits are the only narrow ones"
            )


def check_limits(options: object, minima: tuple[str, ...]) -> None:
    """Check what the recipes have in common: minima from 1, a maximum above, shares in [0, 1)."""
    for name in minima:
        if getattr(options, name) < 1:
            raise ConfigError(f"{name} is {getattr(options, name)}; it must be at least 1")
    longest, shortest = getattr(options, "max_length", None), getattr(options, "min_length", 1)
    if longest is not None and longest < shortest:
        raise ConfigError(
            f"max_length is {longest}; it must be at least min_length, {shortest}, or None"
        )
    for name in ("test_share", "valid_share"):
        if not 0 <= getattr(options, name, 0) < 1:
            raise ConfigError(f"{name} is {getattr(options, name)}; it must lie in [0, 1)")
