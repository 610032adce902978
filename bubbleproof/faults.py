"""The errors that people are told on purpose: each is an ``Error`` (``error_base``).

What a caller gives wrong is a ``WrongValue`` (a ``ValueError``) or a ``WrongType`` (a
``TypeError``). ``FaultError`` is of an answer that contradicts what the checker holds.

Engines, generators and provers are not trusted: what they answer is judged before it counts. Where
an answer cannot be true, something of theirs (or of ours) is broken, and none of it is used: the
error ends the call, and the command prints its one line and exits with 2. A proof that is refused
contradicts nothing: it is left out, and the result says so.
"""

from __future__ import annotations

from bubbleproof.error_base import Error


class WrongValue(Error, ValueError):  # noqa: N818 - the name says what is wrong
    """An argument, or something within it, has a value that cannot be used."""


class WrongType(Error, TypeError):  # noqa: N818 - the name says what is wrong
    """An argument is of a type that is not taken."""


class FaultError(Error, RuntimeError):
    """``part`` (an engine, a generator, a prover) claimed ``claim``, but ``finding`` holds.

    >>> FaultError("z3", "the bound 12", "the checker accepts a schedule of 11").claim
    'the bound 12'
    """

    def __init__(self, part: str, claim: str, finding: str) -> None:
        super().__init__(part, claim, finding)  # all of them, so that the error can be pickled
        self.part, self.claim, self.finding = part, claim, finding

    def __str__(self) -> str:
        return (
            f"{self.part} is at fault: it gave {self.claim}, but {self.finding}; nothing of its "
            "answer is used: take another engine or order, and report this"
        )
