"""What is told of a claim: one record, as JSON has it, and its words for tables and pages.

``verdict`` is HOLDS, PROVED, REFUTED or CONTRADICTS_ITSELF (None where nothing was decided).
``readings`` tells of each reading the place that supports it, its premises and its ``outcome``:
HOLDS, PROVED or REJECTED. ``tight`` is whether each mutant one step beyond the relation is refuted.
What is told of the deciding reading stands beside the claim's own words, too. ``missing``,
``estimated``, ``standing`` and ``admissible`` are keys of older claims, the same of all.
"""

from __future__ import annotations

from typing import Any

from bubbleproof.commands.output import ratio
from bubbleproof.papers.claims import (
    ClaimDecision,
    Counterexample,
    PaperClaim,
    Reading,
    ReadingFinding,
)

Record = dict[str, Any]  # as JSON has it
_VERDICTS = {
    "HOLDS": "holds",
    "PROVED": "proved",
    "REFUTED": "refuted",
    "CONTRADICTS_ITSELF": "contradicts itself",
}
_OF_THE_DECIDING = (
    "relation",
    "domain",
    "theorem",
    "slack",
    "standing",
    "checked",
    "total",
    "tight",
    "counterexample",
)


def record(claim: PaperClaim, decision: ClaimDecision | None = None) -> Record:
    """All that is told of a claim, with what became of it where it was decided."""
    findings = [None] * len(claim.readings) if decision is None else decision.findings
    readings = [_reading(*each) for each in zip(claim.readings, findings, strict=True)]
    deciding = readings[0 if decision is None else decision.findings.index(decision.deciding)]
    return {
        "id": claim.id,
        "paper": claim.paper,
        "source": claim.source,
        "against": claim.against,
        "statement": claim.statement,
        "quantity": claim.quantity,
        "corrected": claim.corrected,
        "missing": None,
        "estimated": None,
        "verdict": None if decision is None else decision.verdict.name,
        **{name: deciding[name] for name in _OF_THE_DECIDING},
        "reading": deciding["name"],
        "readings": readings,
    }


def _reading(reading: Reading, finding: ReadingFinding | None) -> Record:
    domain = reading.domain_for(is_wide=True) if finding is None else finding.domain
    return {
        "name": reading.name,
        "support": reading.support,
        "premises": [premise.text for premise in reading.premises],
        "admissible": True,
        "relation": reading.relation.value,
        "domain": domain.text,
        "theorem": reading.theorem,
        "slack": reading.slack,
        **_outcome(finding),
    }


def _outcome(finding: ReadingFinding | None) -> Record:
    if finding is None:
        names = ("outcome", "standing", "checked", "total", "tight", "counterexample")
        return dict.fromkeys(names)
    case = finding.counterexample
    return {
        "outcome": "REJECTED" if case else "PROVED" if finding.is_proved else "HOLDS",
        "standing": None,
        "checked": finding.checked,
        "total": finding.total,
        "tight": not finding.surviving if case is None else None,
        "counterexample": None if case is None else _case(case),
    }


def _case(case: Counterexample) -> Record:
    return {
        "params": dict(case.params),
        "claimed": ratio(case.predicted),
        "measured": ratio(case.measured),
    }


def verdict_of(told: Record, how: str = "") -> str:
    """The verdict in words, and ``how`` it came about; empty where nothing was decided.

    "holds", "holds (read as: in flight at once)", "refuted; see x.y", "contradicts itself: section
    1 gives 93/50, section 7.2 gives 42/25".
    """
    if told["verdict"] is None:
        return ""
    words = _VERDICTS[told["verdict"]]
    if told["verdict"] == "CONTRADICTS_ITSELF":
        case = told["counterexample"]
        where = f"{told['source']} gives {case['claimed']}"
        return f"{words}: {where}, {told['against']} gives {case['measured']}"
    if told["verdict"] == "REFUTED":
        see = f"; see {told['corrected']}" if told["corrected"] else ""
        return f"{words}{how}{see}"
    by = f" by theorem {told['theorem']}" if told["verdict"] == "PROVED" else ""
    read = f" (read as: {told['reading']})" if len(told["readings"]) > 1 else ""
    return f"{words}{by}{read}{how}"


def outcome_of(read: Record) -> str:
    """What became of a reading: "holds (5 of 5 cases measured)" or the case that rejects it.

    >>> case = {"params": {"p": 4, "m": 5}, "claimed": "3/1", "measured": "4/1"}
    >>> outcome_of({"outcome": "REJECTED", "counterexample": case})
    'rejected at p=4 m=5: claimed 3/1, measured 4/1'
    """
    if read["outcome"] is None:
        return ""
    case = read["counterexample"]
    if case is not None:
        at = " ".join(f"{name}={value}" for name, value in case["params"].items())
        return f"rejected at {at}: claimed {case['claimed']}, measured {case['measured']}"
    why = f": {read['slack']}" if read["slack"] else ""
    loose = "" if read["tight"] else f"; bound not attained{why}"
    return f"{read['outcome'].lower()} ({read['checked']} of {read['total']} cases measured){loose}"


def readings_of(told: Record, *, has_domain: bool) -> list[str]:
    """Each reading with its premises and outcome: its name and support where there are several."""
    return [_read(each, len(told["readings"]) > 1, has_domain) for each in told["readings"]]


def _read(read: Record, is_one_of_several: bool, has_domain: bool) -> str:
    said = []
    if is_one_of_several:
        said.append(f"{read['name']} ({read['support']})")
    if read["premises"]:
        said.append(f"given {', '.join(read['premises'])}")
    if has_domain:
        said.append(read["domain"])
    return ": ".join(text for text in ("; ".join(said), outcome_of(read)) if text)
