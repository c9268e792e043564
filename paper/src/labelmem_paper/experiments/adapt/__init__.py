"""Frozen classifiers on streams of revealed labels: what they were taught, and what comes."""
