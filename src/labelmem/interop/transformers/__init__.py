"""Models of Hugging Face transformers that learn from what their user accepts or corrects.

:class:`MemoryLM` is for causal language models, :func:`sequence_classifier` for classifiers of
texts. The models are used as they are: no weight is changed and nothing is downloaded.
"""

from labelmem.errors import MissingExtraError

try:
    import transformers as _transformers  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        "labelmem.interop.transformers needs transformers, which is not installed: "
        "pip install 'labelmem[transformers]'"
    ) from error

from labelmem.interop.transformers.causal import TEXT, THETA, MemoryLM
from labelmem.interop.transformers.classifier import sequence_classifier
from labelmem.interop.transformers.mixing import MemoryProcessor
from labelmem.interop.transformers.text_stream import TextStream
from labelmem.interop.transformers.text_streams import TextStreams

__all__ = [
    "TEXT",
    "THETA",
    "MemoryLM",
    "MemoryProcessor",
    "TextStream",
    "TextStreams",
    "sequence_classifier",
]
