"""How long ranks may take: what a driver can wait for, in seconds."""

from __future__ import annotations

LONGEST_SECONDS = 1_000_000.0  # gloo waits for whole milliseconds in 32 bits: 24 days at most


def require_time_limit(seconds: float) -> None:
    """Raise ``ValueError`` for a time that no rank can be given.

    >>> require_time_limit(float("inf"))
    Traceback (most recent call last):
    ValueError: replay timeout must be more than 0 and at most 1000000 seconds, got inf
    """
    if not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError(
            f"replay timeout must be more than 0 and at most {LONGEST_SECONDS:.0f} seconds, "
            f"got {seconds}"
        )
