"""Slow reference of the paper's equations in plain Python floats."""
