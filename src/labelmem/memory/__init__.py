"""The labeled memory."""

from labelmem.memory.labeled import FADES, LabeledMemory, LabelPast, MemoryRead

__all__ = ["FADES", "LabelPast", "LabeledMemory", "MemoryRead"]
