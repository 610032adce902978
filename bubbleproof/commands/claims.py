"""``bubbleproof claims``: what the papers say, and with ``--audit`` what becomes of it.

Without ``--audit`` claims are listed and nothing is measured. ``--audit`` decides each claim by
measuring every case of its wide domain (``papers.claims``), ``--audit --quick`` of the small one. A
refuted claim names its smallest counterexample and the claim that should stand in its place. The
exit status of an audit is 0 when each refuted claim has a correction that holds, 1 when one has
not. ``--write`` makes the Markdown page of the audit; page, table and ``--json`` are one record of
each claim (``claims_record``), written three ways.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from bubbleproof.commands.audit import Decisions, Workers, audit
from bubbleproof.commands.claims_page import page
from bubbleproof.commands.claims_record import Record, record, verdict_of
from bubbleproof.commands.interruption import is_interrupted, unless_interrupted
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    INTERRUPTED,
    print_json,
    print_table,
    print_text,
    say,
)
from bubbleproof.formats.files import write_text
from bubbleproof.papers.claims import Claim, ClaimVerdict, claims
from bubbleproof.parallel import num_cores

ONE_PER_CORE = Workers()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Which claims to decide and how far: none unless ``is_audit``.

    Raises ``ValueError`` for options that contradict each other.
    """

    paper: str | None = None
    is_audit: bool = False
    is_quick: bool = False
    limit: int | None = None
    target: str | None = None
    workers: Workers = ONE_PER_CORE

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"--limit must be 1 or more, got {self.limit}")
        asked = {"--quick": self.is_quick, "--limit": self.limit, "--write": self.target}
        alone = [name for name, value in asked.items() if value]
        if alone and not self.is_audit:
            raise ValueError(f"{alone[0]} goes with --audit; without it nothing is decided")
        if self.target is not None and Path(self.target).suffix != ".md":
            raise ValueError(f"the audit's page must end in .md, got {self.target!r}")

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


def run_claims(request: Request, *, as_json: bool) -> int:
    """List or audit the claims (of one paper, where named). Ctrl-C ends with those decided."""
    chosen = claims(request.paper)
    nothing: tuple[Decisions, str | None] = ({}, None)
    decisions, effort = nothing
    if request.is_audit:
        decisions, effort = unless_interrupted(
            lambda: _decided(chosen, request, quiet=as_json), nothing
        )
    if is_interrupted() and not decisions and not as_json:
        print_text(f"none of the {len(chosen)} claims is decided yet")
        return INTERRUPTED
    is_whole = not request.is_audit or len(decisions) == len(chosen)
    records = [record(claim, decisions.get(name)) for name, claim in chosen.items()]
    if request.target is not None and effort is not None and is_whole:
        command = f"`bubbleproof claims {request.words} --write {request.target}`"
        target = Path(request.target)
        write_text(request.target, page(target, request.paper, records, command, effort))
        say(f"wrote {request.target}")
    if as_json:
        print_json({"claims": records, "effort": effort})
    else:
        _print(records)
        if effort is not None:
            say(effort)
    if not is_whole:
        say(f"{len(chosen) - len(decisions)} claims are not decided, and no page is written")
        return INTERRUPTED
    return BROKEN if uncorrected(decisions) and request.paper is None else HOLDS


def _decided(
    chosen: Mapping[str, Claim], request: Request, *, quiet: bool
) -> tuple[Decisions, str | None]:
    """What became of the claims, and one phrase: how many cases, in how long, by whom."""
    workers, begun, used = request.workers, monotonic(), _processor_seconds()
    decisions = audit(
        chosen, is_wide=not request.is_quick, limit=request.limit, workers=workers, quiet=quiet
    )
    seconds, work = monotonic() - begun, _processor_seconds() - used
    cases = sum(decision.checked for decision in decisions.values())
    by = (
        f"({work:.0f} s of processor time) by {workers.count or num_cores()} of {num_cores()} cores"
    )
    if workers.address is not None:
        by = f"by the cluster at {workers.address}"
    return decisions, f"{cases} cases looked at in {seconds:.0f} s {by}"


def _processor_seconds() -> float:
    """What this process and the workers that it has waited for have used."""
    return sum(os.times()[:4])


def uncorrected(decisions: Decisions) -> list[str]:
    """The refuted claims without a correction that holds."""
    return [
        name
        for name, decision in decisions.items()
        if decision.verdict is ClaimVerdict.REFUTED
        and (
            (better := decisions.get(decision.claim.corrected or "")) is None
            or better.verdict not in (ClaimVerdict.HOLDS, ClaimVerdict.PROVED)
        )
    ]


def _print(records: list[Record]) -> None:
    rows = [(r["id"], r["source"], r["statement"], verdict_of(r)) for r in records]
    print_table("claims", ("claim", "source", "statement", "verdict"), rows)
    counts = Counter(str(r["verdict"]).lower() for r in records if r["verdict"])
    if counts:
        text = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items())
        say(f"{counts.total()} claims: {text}")
