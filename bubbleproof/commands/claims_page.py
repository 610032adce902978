"""The audit's page: how it came about, what changed against the page it replaces, and the tables.

Page, table and JSON are made from one record of each claim and its decision: ``verdict`` is HOLDS,
REFUTED, PROVED or NOT_REPRODUCIBLE (None where nothing was decided), ``standing`` what the measured
side rests on (``papers.claims.standing``), ``tight`` whether each mutant one step beyond the
relation is refuted. A page is read back only for the comparison: the id and the first words of the
verdict of each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
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


_STATES = ("not reproducible", "arithmetic holds", "arithmetic refuted", "holds", "refuted",
           "proved")  # fmt: skip
INTRODUCTION = """\
Proved: a theorem of `bubbleproof prove` implies it. Holds: in every case of the stated domain, each
measured on a schedule, or counted on the problem where the claim is about every order. Refuted: by
the smallest counterexample (least sum of parameters), with the claim that stands in its place.
Arithmetic: no schedule is built, the claim is compared with a second way to compute it. Not
reproducible: an input is missing. What holds also fails one step beyond (a tick, a unit, a printed
decimal) in some case of its domain; where no case comes that near, the bound is not attained."""


def page(
    target: Path, paper: str | None, records: Sequence[Record], command: str, effort: str
) -> str:
    """The whole page; where it is there and one paper was decided, that section alone is new."""
    before = target.read_text("utf-8") if target.exists() else ""
    if paper is not None and f"\n## {paper}\n" in before:
        return with_section(before, paper, records, command, effort)
    return markdown(records, command, effort, before=states(before))


def markdown(
    records: Sequence[Record],
    command: str,
    effort: str,
    *,
    before: Mapping[str, str] | None = None,
) -> str:
    """The audit as a page, with a table per paper and a row per claim."""
    lines = ["# The papers' claims, decided by measuring", ""]
    lines += [f"Generated by {command}: {effort}. Not edited.", ""]
    if before:
        lines += [changes(before, records), ""]
    lines += [INTRODUCTION]
    for paper in dict.fromkeys(told["paper"] for told in records):
        lines += ["", f"## {paper}", "", *_table(paper, records)]
    return "\n".join(lines) + "\n"


def with_section(
    before: str, paper: str, records: Sequence[Record], command: str, effort: str
) -> str:
    """The page with one paper's section decided anew, which the section says."""
    above, heading, rest = before.partition(f"\n## {paper}\n")
    old, following, below = rest.partition("\n## ")
    told = f"Decided anew by {command}: {effort}. {changes(states(old), records)}"
    lines = ["", told, "", *_table(paper, records)]
    return above + heading + "\n".join(lines) + "\n" + following + below


def changes(before: Mapping[str, str], records: Sequence[Record]) -> str:
    """How many claims changed against an earlier page, and which way.

    >>> row = {"id": "a.b", "verdict": "HOLDS", "standing": "MEASURED", "counterexample": None}
    >>> row |= {"checked": 1, "total": 1, "tight": True}
    >>> changes({"a.b": "refuted", "a.c": "holds"}, [row, row | {"id": "a.d"}])
    'Against the page it replaces: 1 refuted -> holds; 1 new (1 holds); 1 gone; 0 as before.'
    """
    now = {told["id"]: state(verdict_of(told)) for told in records}
    moved = Counter((before[name], now[name]) for name in now if name in before)
    ways = [f"{n} {old} -> {new}" for (old, new), n in sorted(moved.items()) if old != new]
    new = Counter(now[name] for name in now if name not in before)
    if new:
        which = ", ".join(f"{n} {name}" for name, n in sorted(new.items()))
        ways.append(f"{new.total()} new ({which})")
    if gone := len(before.keys() - now.keys()):
        ways.append(f"{gone} gone")
    same = sum(n for (old, new), n in moved.items() if old == new)
    return f"Against the page it replaces: {'; '.join([*ways, f'{same} as before'])}."


def states(text: str) -> dict[str, str]:
    """What a page says became of each claim, by id."""
    found = {}
    for line in text.splitlines():
        name, _, verdict = line.removeprefix("| ").removesuffix(" |").partition(" | ")
        if line.startswith("| ") and "." in name:
            found[name] = state(verdict.rpartition(" | ")[2])
    return found


def state(verdict: str) -> str:
    """The verdict's first words: those of ``_STATES``."""
    return next((each for each in _STATES if verdict.startswith(each)), "unknown")


def _table(paper: str, records: Sequence[Record]) -> list[str]:
    lines = ["| claim | source | statement | domain | verdict |", "|---|---|---|---|---|"]
    for told in records:
        if told["paper"] == paper:
            words = (told["id"], told["source"], told["statement"], told["domain"])
            cells = [cell.replace("|", "\\|") for cell in (*words, verdict_of(told))]
            lines.append(f"| {' | '.join(cells)} |")
    return lines
