"""What a practitioner would try first, each behind the same protocol as the adapter.

One method per file, and the file is named after the method: adding one needs nothing else.
"""

from labelmem.baselines.registry import make, method, methods

__all__ = ["make", "method", "methods"]
