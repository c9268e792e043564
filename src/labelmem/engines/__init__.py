"""Faster steps with the results of the reference: the only place that knows numba and Triton."""
