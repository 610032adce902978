"""What a replay says when an action or a message is not where its program puts it."""

from __future__ import annotations


class BrokenProgram(RuntimeError):  # noqa: N818 - the name says what is wrong
    """An action uses what is not there, or a program leaves something over; the message says what.

    A verified program never raises it. It is no ``assert``: a test runner that rewrites those would
    print tensors whose memory was given back, which ends the process.
    """


def require(is_so: object, otherwise: str) -> None:
    """Raise ``BrokenProgram``, which says what is wrong ``otherwise``, unless something is so."""
    if not is_so:
        raise BrokenProgram(otherwise)


class MessageMismatch(RuntimeError):  # noqa: N818 - what happened to the message
    """A send that met the receive of another message."""


def first_line(error: BaseException, default: str = "no message") -> str:
    """The first line of an error's message."""
    return next(iter(str(error).strip().splitlines()), default)


def one_line(error: BaseException) -> str:
    """The error's type and the first line of its message."""
    return f"{type(error).__name__}: {first_line(error)}"
