"""Which checks there are, and running them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from labelmem.checks import answers, late, lockstep, privacy, purity, refusal, saving
from labelmem.checks.trial import Inputs, Trial, vectors
from labelmem.online import OnlineMethod

__all__ = ["check_adapter", "check_method", "checks_for", "run_check"]

Check = Callable[[Trial], None]

_FAMILIES = (privacy, purity, answers, lockstep, saving, late, refusal)


def checks_for(method: OnlineMethod[Any]) -> Iterator[Check]:
    """The checks that a method should pass: small functions of a :class:`Trial`, by their names.

    A check is any function ``check_...`` of a family's file, so that writing one is enough. A
    method that by its nature cannot pass one says so itself: ``skip_checks`` lists the names.

    Examples
    --------
    >>> from torch import nn
    >>> from labelmem import Adapter
    >>> next(checks_for(Adapter(nn.Linear(4, 2)))).__name__
    'check_making_is_repeatable'
    """
    skipped = getattr(method, "skip_checks", ())
    for family in _FAMILIES:
        for name, check in vars(family).items():
            if name.startswith("check_") and name not in skipped:
                yield check


def check_method(
    make: Callable[[], OnlineMethod[Any]], inputs: Inputs | None = None, seed: int = 0
) -> None:
    """Run every check against a method; the first that fails raises an AssertionError.

    Parameters
    ----------
    make
        Makes the method, fitted if it needs that. Called often: it should be quick, and give
        methods that behave the same every time.
    inputs
        Draws inputs that the method accepts, a function of a generator and a number; None draws
        vectors of length 4. See :func:`vectors` and :func:`tokens`.
    seed
        Seeds the users that the checks play.

    Examples
    --------
    >>> import torch
    >>> from labelmem import Adapter
    >>> model = torch.nn.Linear(4, 3)
    >>> check_method(lambda: Adapter(model, labels=["ant", "bee", "cat"]))
    """
    trial = Trial(make, inputs or vectors(4), seed)
    for check in checks_for(make()):
        run_check(check, trial)


def run_check(check: Check, trial: Trial) -> None:
    """Run one check; whatever it raises comes out as an AssertionError with the check's name."""
    try:
        check(trial)
    except AssertionError as failed:
        raise AssertionError(f"{check.__name__}: {failed}") from failed
    except Exception as crash:
        seen = f"{type(crash).__name__}: {crash}"
        raise AssertionError(f"{check.__name__}: the method raised {seen}") from crash


check_adapter = check_method
"""The same suite under the name that users of the adapter look for."""
