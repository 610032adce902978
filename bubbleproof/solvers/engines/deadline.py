"""Models that take longer to build than there is time."""

from __future__ import annotations

from bubbleproof.solvers.engines.engine import Budget


class OutOfTimeError(Exception):
    """The budget was spent while a model was being built."""


def require_time(budget: Budget | None) -> None:
    """Raise ``OutOfTimeError`` once the budget, if any, is spent."""
    if budget is not None and budget.seconds <= 0:
        raise OutOfTimeError
