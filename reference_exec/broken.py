"""What a replay says when an action or a message is not where its program puts it, or fails.

A user's module, loss and hooks may raise anything, ``SystemExit`` too, and then that is what is
told, with its stage: no fault of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bubbleproof.error_base import Error


class BrokenProgram(Error, RuntimeError):  # noqa: N818 - the name says what is wrong
    """An action uses what is not there, or a program leaves something over; the message says what.

    A verified program never raises it. It is no ``assert``: a test runner that rewrites those would
    print tensors whose memory was given back, which ends the process.
    """


def require(is_so: object, otherwise: str) -> None:
    """Raise ``BrokenProgram``, which says what is wrong ``otherwise``, unless something is so."""
    if not is_so:
        raise BrokenProgram(otherwise)


class MessageMismatch(Error, RuntimeError):  # noqa: N818 - what happened to the message
    """A send that met the receive of another message."""


class ModelFailed(Error, RuntimeError):  # noqa: N818 - the model did
    """A user's model raised; the message says its stage, in what, and how."""


@contextmanager
def of_model(stage: int | None, action: str) -> Iterator[None]:
    """Tell what a user's code raises in an action on a stage, or on all, as ``ModelFailed``.

    What a replay says of itself stays what it is, and so does that no memory is left.
    """
    try:
        yield
    except (BrokenProgram, MessageMismatch, ModelFailed, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        whose = "model" if stage is None else f"model stage {stage}"
        raise ModelFailed(f"{whose} failed in {action}: {one_line(error)}") from error


def first_line(error: BaseException, default: str = "no message") -> str:
    """The first line of an error's message."""
    return next(iter(str(error).strip().splitlines()), default)


def one_line(error: BaseException) -> str:
    """The error's type and the first line of its message; a ``ModelFailed`` tells all by itself.

    >>> one_line(KeyError("norm")), one_line(ModelFailed("model stage 1 failed in F: ..."))
    ("KeyError: 'norm'", 'model stage 1 failed in F: ...')
    """
    if isinstance(error, ModelFailed):
        return first_line(error)
    return f"{type(error).__name__}: {first_line(error)}"
