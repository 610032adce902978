"""``bubbleproof claims``: what the papers say, and with ``--audit`` what becomes of it.

A claim is decided by measuring every case of its domain (``theory.claims``): with ``--audit`` of
its wide domain, with ``--audit --quick`` (or ``--json`` alone) of the small one. A refuted claim
names its smallest counterexample and the claim that should stand in its place. The exit status of
an audit is 0 when each refuted claim has a correction that holds, 1 when one has not. ``--write``
makes the Markdown page of the audit.
"""

from __future__ import annotations

import os
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
    """Which claims to decide and how far: none unless ``is_audit`` or an answer needs it.

    Raises ``ValueError`` for options that contradict each other.
    """

    paper: str | None = None
    is_audit: bool = False
    is_quick: bool = False
    limit: int | None = None
    workers: Workers = ONE_PER_CORE

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"--limit must be 1 or more, got {self.limit}")
        if self.is_quick and not self.is_audit:
            raise ValueError("--quick goes with --audit; alone it decides nothing")

    @property
    def is_wide(self) -> bool:
        return self.is_audit and not self.is_quick

    @property
    def words(self) -> str:
        """The options that decide what the audit finds, as they are written."""
        chosen = (
            ("--audit", self.is_audit),
            ("--quick", self.is_quick),
            (f"--paper {self.paper}", self.paper is not None),
            (f"--limit {self.limit}", self.limit is not None),
        )
        return " ".join(word for word, is_given in chosen if is_given)


def run_claims(request: Request, *, target: str | None, as_json: bool) -> int:
    """List or audit the claims (of one paper, where named)."""
    if target is not None and Path(target).suffix != ".md":
        raise ValueError(f"the audit's page must end in .md, got {target!r}")
    chosen = claims(request.paper)
    decisions: Decisions = {}
    effort = ""
    if request.is_audit or as_json or target is not None:
        decisions, effort = _decided(chosen, request, quiet=as_json)
    if target is not None:
        words = f"claims {request.words}".rstrip()
        command = f"`bubbleproof {words} --write {target}`"
        write_text(target, _page(Path(target), request.paper, decisions, command, effort))
        say(f"wrote {target}")
    if as_json:
        found = [_to_json(claim, decisions) for claim in chosen.values()]
        print_json({"claims": found, "effort": effort})
    else:
        _print(chosen, decisions)
        if effort:
            say(effort)
    return BROKEN if uncorrected(decisions) and request.paper is None else HOLDS


def _decided(
    chosen: Mapping[str, Claim], request: Request, *, quiet: bool
) -> tuple[Decisions, str]:
    """What became of the claims, and one phrase: how many cases, in how long, by whom."""
    workers, begun, used = request.workers, monotonic(), _processor_seconds()
    decisions = audit(
        chosen, is_wide=request.is_wide, limit=request.limit, workers=workers, quiet=quiet
    )
    seconds, work = monotonic() - begun, _processor_seconds() - used
    cases = sum(decision.checked for decision in decisions.values())
    by = (
        f"({work:.0f} s of processor time) by {workers.count or num_cores()} of {num_cores()} cores"
    )
    if workers.address is not None:
        by = f"by the cluster at {workers.address}"
    return decisions, f"{cases} cases measured in {seconds:.0f} s {by}"


def _processor_seconds() -> float:
    """What this process and the workers that it has waited for have used."""
    return sum(os.times()[:4])


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


def _page(target: Path, paper: str | None, decisions: Decisions, command: str, effort: str) -> str:
    """The whole page; where it is there and one paper was decided, that section alone is new."""
    if paper is not None and target.exists():
        page = target.read_text("utf-8")
        if f"\n## {paper}\n" in page:
            return with_section(page, paper, decisions, command, effort)
    return markdown(decisions, command, effort)


def markdown(decisions: Decisions, command: str, effort: str) -> str:
    """The audit as a page: how it came about, then a table per paper with a row per claim."""
    lines = [
        "# The papers' claims, decided by measuring",
        "",
        f"Generated by {command}: {effort}. Not edited.",
        "",
        "Proved: a theorem of `bubbleproof prove` implies it. Holds: in every case of the stated",
        "domain. Refuted: by the smallest counterexample (least sum of parameters), with the claim",
        "that stands in its place. Not reproducible: an input is missing.",
    ]
    for paper in dict.fromkeys(d.claim.paper for d in decisions.values()):
        lines += ["", f"## {paper}", "", *_table(paper, decisions)]
    return "\n".join(lines) + "\n"


def with_section(page: str, paper: str, decisions: Decisions, command: str, effort: str) -> str:
    """The page with one paper's section decided anew, which the section says."""
    before, heading, rest = page.partition(f"\n## {paper}\n")
    assert heading, f"the page has no section {paper}"
    _, following, after = rest.partition("\n## ")
    lines = ["", f"Decided anew by {command}: {effort}.", "", *_table(paper, decisions)]
    return before + heading + "\n".join(lines) + "\n" + following + after


def _table(paper: str, decisions: Decisions) -> list[str]:
    lines = ["| claim | source | statement | domain | verdict |", "|---|---|---|---|---|"]
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
    return lines
