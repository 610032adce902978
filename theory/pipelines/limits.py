"""How large a training step may be: one limit, asked before anything of that size is made.

A family's ``m=`` or one line of a file can name 10^18 actions. Every way to a pipeline comes here
first. An action costs about half a kilobyte and ten microseconds to build, time and check, so that
``MAX_TASKS`` of them are 2 GB and a minute; half a million, a large training step, are ordinary.
"""

from __future__ import annotations

MAX_TASKS = 4_000_000
MAX_RANKS = 4096


class OversizeError(ValueError):
    """What was asked for may have an answer, but is larger than we take."""


def oversize(
    *, ranks: int, chunks: int = 1, microbatches: int, slices: int = 1, tasks_each: int = 2
) -> tuple[str, int, int] | None:
    """What is too many, the limit and what was asked for, or None where the shape is small enough.

    Parameters
    ----------
    ranks, chunks, microbatches, slices
        The shape; each is 1 or more.
    tasks_each
        How many tasks a forward stands for, its backward (or I and W) included.
    """
    actions = ranks * chunks * microbatches * slices * tasks_each
    for what, limit, asked in (("ranks", MAX_RANKS, ranks), ("actions", MAX_TASKS, actions)):
        if asked > limit:
            return what, limit, asked
    return None


def require_size(*, tasks_each: int = 2, **shape: int) -> None:
    """Raise ``OversizeError`` for a shape, named as in ``oversize``, beyond the limits.

    Parameters
    ----------
    tasks_each
        How many tasks a forward stands for, its backward (or I and W) included.
    **shape
        ``ranks``, ``microbatches``, and where there are several ``chunks`` and ``slices``.

    Raises
    ------
    OversizeError
        For a shape beyond the limits; the message names what is too many.

    Examples
    --------
    >>> require_size(ranks=5000, microbatches=1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bubbleproof.theory.pipelines.limits.OversizeError: a pipeline has at most 4096 ranks, got ...
    """
    if (found := oversize(tasks_each=tasks_each, **shape)) is not None:
        what, limit, asked = found
        names = ("ranks", "microbatches", "chunks", "slices")
        words = ", ".join(f"{shape[name]} {name}" for name in names if shape.get(name, 1) > 1)
        raise OversizeError(f"a pipeline has at most {limit} {what}, got {asked} ({words})")
