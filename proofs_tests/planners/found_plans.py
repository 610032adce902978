"""Plans that a test expects to be found, or of which it wants the value."""

from __future__ import annotations

from bubbleproof.planners import CandidateResult, NoPlanFound, Plan, SolvedCandidate


def found_plan(found: Plan | NoPlanFound) -> Plan:
    """The plan. Precondition: there is one."""
    assert isinstance(found, Plan), found
    return found


def value_found(found: Plan | NoPlanFound | CandidateResult) -> int | None:
    """What a plan or a candidate takes; None where it has no schedule."""
    return found.value if isinstance(found, Plan | SolvedCandidate) else None
