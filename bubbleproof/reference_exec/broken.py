"""What a replay says when an action or a message is not where its program puts it."""

from __future__ import annotations


class BrokenProgram(RuntimeError):  # noqa: N818 - the name says what is wrong
    """An action uses what is not there, or a program leaves something over; the message says what.

    A verified program never raises it. It is no ``assert``: a test runner that rewrites those would
    print tensors whose memory was given back, which ends the process.
    """


class MessageMismatch(RuntimeError):  # noqa: N818 - what happened to the message
    """A send that met the receive of another message."""
