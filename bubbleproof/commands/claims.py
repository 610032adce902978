"""``bubbleproof claims``: what the papers say, and with ``--audit`` what becomes of it.

A claim is decided by measuring every case of its domain (``theory.claims``): with ``--audit`` of
its wide domain, with ``--audit --quick`` (or ``--json`` alone) of the small one. A refuted claim
names its smallest counterexample and the claim that should stand in its place. The exit status of
an audit is 0 when each refuted claim has a correction that holds, 1 when one has not. ``--write``
makes the Markdown page of the audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from bubbleproof.commands.audit import Decisions, Workers, audit
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, ratio, say
from bubbleproof.formats.files import write_text
from bubbleproof.parallel import num_cores
from bubbleproof.theory.claims import Claim, Decision, Standing, claims

ONE_PER_CORE = Workers()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Which claims to decide and how far: none unless ``is_audit`` or an answer needs it."""

    is_audit: bool
    is_quick: bool = False
    limit: int | None = None
    workers: Workers = ONE_PER_CORE


def run_claims(request: Request, *, paper: str | None, target: str | None, as_json: bool) -> int:
    """List or audit the claims (of one paper, where named)."""
    limit = request.limit
    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be 1 or more, got {limit}")
    if target is not None and Path(target).suffix != ".md":
        raise ValueError(f"the audit's page must end in .md, got {target!r}")
    chosen = claims(paper)
    decisions: Decisions = {}
    begun = monotonic()
    if request.is_audit or as_json or target is not None:
        is_wide = request.is_audit and not request.is_quick
        decisions = audit(
            chosen, is_wide=is_wide, limit=limit, workers=request.workers, quiet=as_json
        )
    effort = _effort(decisions, monotonic() - begun, request.workers)
    if target is not None:
        write_text(target, markdown(decisions, effort))
        say(f"wrote {target}")
    if as_json:
        print_json({"claims": [_to_json(claim, decisions) for claim in chosen.values()]})
    else:
        _print(chosen, decisions)
        if decisions:
            say(effort)
    return BROKEN if uncorrected(decisions) and paper is None else HOLDS


def _effort(decisions: Decisions, seconds: float, workers: Workers) -> str:
    """One sentence: how many cases were measured, in how long, by whom."""
    cases = sum(decision.checked for decision in decisions.values())
    by = f"{workers.count or num_cores()} workers on {num_cores()} cores"
    if workers.address is not None:
        by = f"the cluster at {workers.address}"
    return f"{cases} cases measured in {seconds:.0f} s by {by}"


def uncorrected(decisions: Decisions) -> list[str]:
    """The refuted claims without a correction that holds."""
    return [
        name
        for name, decision in decisions.items()
        if decision.standing is Standing.REFUTED
        and (
            (better := decisions.get(decision.claim.corrected or "")) is None
            or better.standing not in (Standing.HOLDS, Standing.PROVED)
        )
    ]


def _print(chosen: Mapping[str, Claim], decisions: Decisions) -> None:
    rows = []
    for name, claim in chosen.items():
        decision = decisions.get(name)
        state = "" if decision is None else _state(decision)
        rows.append((name, claim.source, claim.statement, state))
    print_table("claims", ("claim", "source", "statement", "verdict"), rows)
    if decisions:
        counts = {s: sum(d.standing is s for d in decisions.values()) for s in Standing}
        text = ", ".join(f"{n} {s.name.lower()}" for s, n in counts.items() if n)
        say(f"{len(decisions)} claims: {text}")


def _state(decision: Decision) -> str:
    if decision.standing is Standing.NOT_REPRODUCIBLE:
        return f"not reproducible: {decision.claim.missing}"
    if decision.counterexample is not None:
        better = decision.claim.corrected
        return f"refuted at {decision.counterexample}" + (f"; see {better}" if better else "")
    by = f" by theorem {decision.claim.theorem}" if decision.standing is Standing.PROVED else ""
    name = decision.standing.name.lower()
    return f"{name}{by} ({decision.checked} of {decision.total} cases measured)"


def _to_json(claim: Claim, decisions: Decisions) -> dict[str, object]:
    decision = decisions[claim.id]
    case = decision.counterexample
    return {
        "id": claim.id,
        "paper": claim.paper,
        "source": claim.source,
        "statement": claim.statement,
        "quantity": claim.quantity,
        "relation": claim.relation.value,
        "domain": decision.domain.text,
        "verdict": decision.standing.name,
        "checked": decision.checked,
        "total": decision.total,
        "counterexample": None
        if case is None
        else {
            "params": dict(case.params),
            "claimed": ratio(case.predicted),
            "measured": ratio(case.measured),
        },
        "corrected": claim.corrected,
        "theorem": claim.theorem,
        "missing": claim.missing,
    }


def markdown(decisions: Decisions, effort: str) -> str:
    """The audit as a page: one table per paper, one row per claim; ``effort`` is a sentence."""
    lines = [
        "# The papers' claims, decided by measuring",
        "",
        f"Generated by `bubbleproof claims --audit --write docs/claims.md`: {effort}. Not edited.",
        "",
        "Proved: a theorem of `bubbleproof prove` implies it. Holds: in every case of the stated",
        "domain. Refuted: by the smallest counterexample (least sum of parameters), with the claim",
        "that stands in its place. Not reproducible: an input is missing.",
    ]
    for paper in dict.fromkeys(d.claim.paper for d in decisions.values()):
        lines += ["", f"## {paper}", "", "| claim | source | statement | domain | verdict |"]
        lines.append("|---|---|---|---|---|")
        for name, decision in decisions.items():
            claim = decision.claim
            if claim.paper == paper:
                cells = (
                    name,
                    claim.source,
                    claim.statement,
                    decision.domain.text,
                    _state(decision),
                )
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
