"""Make a trained classifier learn from every label its user reveals, online, without retraining.

The names below are the public interface. They are imported when first used, so that importing the
package, and the command line's help, do not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelmem._version import __version__

if TYPE_CHECKING:
    from labelmem.adapter import Adapter
    from labelmem.batch import StreamBatch
    from labelmem.combiner import Combiner
    from labelmem.config import MemoryConfig
    from labelmem.errors import LabelMemError
    from labelmem.memory import LabeledMemory
    from labelmem.stream import Prediction, Stream

__all__ = [
    "Adapter",
    "Combiner",
    "LabelMemError",
    "LabeledMemory",
    "MemoryConfig",
    "Prediction",
    "Stream",
    "StreamBatch",
    "__version__",
]

_HOMES = {
    "Adapter": "adapter",
    "Combiner": "combiner",
    "LabelMemError": "errors",
    "LabeledMemory": "memory",
    "MemoryConfig": "config",
    "Prediction": "stream",
    "Stream": "stream",
    "StreamBatch": "batch",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelmem' has no attribute {name!r}")
    return getattr(import_module(f"labelmem.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
