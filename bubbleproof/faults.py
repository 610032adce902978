"""The error for an answer that contradicts what the checker holds.

Engines, generators and provers are not trusted: what they answer is judged before it counts. Where
an answer cannot be true, something of theirs (or of ours) is broken, and none of it is used: the
error ends the call, and the command prints its one line and exits with 2. A proof that is refused
contradicts nothing: it is left out, and the result says so.
"""

from __future__ import annotations


class FaultError(RuntimeError):
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
