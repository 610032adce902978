"""Findings: by what a rule is broken, in the fewest words. Sentences are made in ``explain``."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from bubbleproof.theory.model.actions import NONE


class Rule(Enum):
    """The rules of docs/guide/design.md §3; a rule's value is the sentence it states."""

    COMPLETE = "every required task exactly once, nothing foreign"
    PLACED = "each task on its own resources, at one time"
    DEPENDENCIES = "no task starts before its inputs are there, lags included"
    EXCLUSIVE = "each resource does one task at a time, in the stated order"
    MEMORY = "no store exceeds its capacity"
    COMMUNICATION = "sends and receives match; no deadlock"
    DATAFLOW = "each gradient sums every contribution once, each from the right inputs"
    CLAIMS = "claimed numbers equal measured ones"
    CERTIFICATE = "the certificate proves its bound"
    REQUIRED = "the problem has the tasks, dependencies and memory that its pipeline requires"


class Finding(NamedTuple):
    """One breach of a rule: the tasks by their text (of a claim its name), and when, in ticks.

    ``where`` is the resource of rules 1, 2 and 4 and the store of rule 5, ``NONE`` elsewhere.
    """

    rule: Rule
    tasks: tuple[str, ...]
    at: int | None
    where: int = NONE
