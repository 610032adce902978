"""What is told of a claim and its decision: one record, from which page, table and JSON are made.

``verdict`` is HOLDS, REFUTED, PROVED or NOT_REPRODUCIBLE (None where nothing was decided),
``standing`` what the measured side rests on (``papers.claims.standing``), ``tight`` whether each
mutant one step beyond the relation is refuted.
"""

from __future__ import annotations

from typing import Any

from bubbleproof.commands.output import ratio
from bubbleproof.papers.claims import Claim, Counterexample, Decision, Standing

Record = dict[str, Any]  # as JSON has it
_DONE = {  # what was done with a case, and what it gave, by standing
    Standing.MEASURED.name: ("measured", "measured"),
    Standing.COUNTED.name: ("counted on the problem", "counted"),
    Standing.ARITHMETIC.name: ("computed", "computed"),
}


def record(claim: Claim, decision: Decision | None = None) -> Record:
    """All that is told of a claim, with what became of it where it was decided."""
    domain = claim.domain_for(is_wide=True) if decision is None else decision.domain
    return {
        "id": claim.id,
        "paper": claim.paper,
        "source": claim.source,
        "statement": claim.statement,
        "quantity": claim.quantity,
        "relation": claim.relation.value,
        "domain": domain.text,
        "corrected": claim.corrected,
        "theorem": claim.theorem,
        "missing": claim.missing,
        "slack": claim.slack,
        **_outcome(decision),
    }


def _outcome(decision: Decision | None) -> Record:
    if decision is None:
        names = ("verdict", "standing", "checked", "total", "tight", "counterexample")
        return dict.fromkeys(names)
    standing, case = decision.standing, decision.counterexample
    is_decided = standing is not None and case is None
    return {
        "verdict": decision.verdict.name,
        "standing": None if standing is None else standing.name,
        "checked": decision.checked,
        "total": decision.total,
        "tight": not decision.surviving if is_decided else None,
        "counterexample": None if case is None else _case(case),
    }


def _case(case: Counterexample) -> Record:
    return {
        "params": dict(case.params),
        "claimed": ratio(case.predicted),
        "measured": ratio(case.measured),
    }


def verdict_of(told: Record) -> str:
    """The verdict in words, with its standing; empty where nothing was decided.

    "holds (5 of 5 cases measured)", "refuted at p=4 m=5: claimed 3, measured 4; see x.y",
    "arithmetic holds (3 of 3 cases computed)".
    """
    if told["verdict"] is None:
        return ""
    if told["verdict"] == "NOT_REPRODUCIBLE":
        return f"not reproducible: {told['missing']}"
    done, gave = _DONE[told["standing"]]
    prefix = "arithmetic " if told["standing"] == Standing.ARITHMETIC.name else ""
    case = told["counterexample"]
    if case is not None:
        at = " ".join(f"{name}={value}" for name, value in case["params"].items())
        found = f"claimed {case['claimed']}, {gave} {case['measured']}"
        see = f"; see {told['corrected']}" if told["corrected"] else ""
        return f"{prefix}refuted at {at}: {found}{see}"
    by = f" by theorem {told['theorem']}" if told["verdict"] == "PROVED" else ""
    loose = "" if told["tight"] else f"; bound not attained{_why(told)}"
    counted = f"({told['checked']} of {told['total']} cases {done})"
    return f"{prefix}{told['verdict'].lower()}{by} {counted}{loose}"


def _why(told: Record) -> str:
    return f": {told['slack']}" if told["slack"] else ""
