"""The version of the reproductions; the library has its own."""

__version__ = "0.2.0"
