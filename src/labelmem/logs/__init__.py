"""From a log of events to a model that adapts to every user, without writing Python.

The commands ``labelmem fit``, ``adapt``, ``predict``, ``explain``, ``inspect``, ``forget`` and
``adapt-embeddings`` are thin shells around this package.
"""
