"""The library's default form: a labeled memory that speaks in logits, combined online."""

from labelmem.logit_memory.method import LogitMemory, LogitState, LogitStep
from labelmem.logit_memory.options import LogitMemoryOptions

__all__ = ["LogitMemory", "LogitMemoryOptions", "LogitState", "LogitStep"]
