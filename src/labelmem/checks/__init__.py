"""Public suites that anyone can run against an implementation of one of labelmem's protocols."""

from labelmem.checks.suite import check_adapter, check_method, checks_for, run_check
from labelmem.checks.trial import Inputs, Trial, tokens, vectors

__all__ = [
    "Inputs",
    "Trial",
    "check_adapter",
    "check_method",
    "checks_for",
    "run_check",
    "tokens",
    "vectors",
]
