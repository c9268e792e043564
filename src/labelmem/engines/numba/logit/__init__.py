"""Kernels of the default form: one call to predict and one to learn, for one stream on a CPU.

What they do is said in :mod:`labelmem.logit_memory`, with the same names; each quantity has as many
bits as there.
"""
