"""What keeps a paper's planner from running: the sentence that is not met, and what would meet it.

A refusal names the section of the paper, what it needs of a job, what the job has, and a repair. It
ends the paper's part of an answer, never the plan that was found without it.
"""

from __future__ import annotations

from bubbleproof.theory.pipelines.units import plural

_BYTES = frozenset({"byte", "bytes", "B"})
_BINARY = (("GiB", 30), ("MiB", 20), ("KiB", 10))


class UnmetPremiseError(ValueError):
    """A job is none that the paper's planner takes: ``section``, and what would be one."""

    def __init__(self, section: str, sentence: str, repair: str = "") -> None:
        super().__init__(section, sentence, repair)

    def __str__(self) -> str:
        section, sentence, repair = self.args
        return f"{section} {sentence}{f'; use {repair}' if repair else ''}"


def amount(units: int, memory_unit: str) -> str:
    """Memory with its unit, bytes in the largest binary one.

    >>> amount(3 << 29, "bytes"), amount(2550, "activation")
    ('1.50 GiB', '2,550 activations')
    """
    if memory_unit in _BYTES:
        for name, shift in _BINARY:
            if units >= 1 << shift:
                return f"{units / (1 << shift):.2f} {name}"
    return f"{units:,} {plural(memory_unit)}"


def lacking(held: int, capacity: int, memory_unit: str) -> str:
    """What is held of what there is, and how much more it would take.

    >>> lacking(3 << 30, 2 << 30, "bytes")
    '3.00 GiB of 2.00 GiB, 1.00 GiB too much'
    """
    more = amount(held - capacity, memory_unit)
    return f"{amount(held, memory_unit)} of {amount(capacity, memory_unit)}, {more} too much"
