"""``bubbleproof claims``: what the papers say, and with ``--audit`` what becomes of it.

Without ``--audit`` claims are listed and nothing is measured. ``--audit`` decides each claim by
measuring every case of its readings' wide domains (``papers.claims``), ``--audit --quick`` of the
small ones. A refuted claim names the smallest counterexample of each reading and the claim that
should stand in its place. The exit status of an audit is 0 when each refuted claim has a correction
that holds, 1 when one has not. Table and ``--json`` are one record of each claim
(``claims_record``), written two ways. Claims may be named by their ids; ``--set`` evaluates one of
them at one case (``claims_case``), ``--engine`` compares what they call least (``claims_engine``).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from time import monotonic

from rich.console import Console
from rich.progress import Progress, TextColumn

from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    INTERRUPTED,
    print_json,
    print_table,
    print_text,
    say,
)
from bubbleproof.papers.audit.audit import Advance, Audit, Shard, run
from bubbleproof.papers.claims import ClaimDecision, ClaimVerdict, PaperClaim
from bubbleproof.papers.commands.claims_case import claim_named, run_case
from bubbleproof.papers.commands.claims_engine import run_engine
from bubbleproof.papers.commands.claims_options import ClaimsRequest
from bubbleproof.papers.commands.claims_record import (
    Record,
    outcome_of,
    readings_of,
    record,
    verdict_of,
)
from bubbleproof.papers.registry import claims
from bubbleproof.parallel import open_executor
from bubbleproof.platforms import num_cores

Decisions = Mapping[str, ClaimDecision]


def run_claims(request: ClaimsRequest) -> int:
    """List or audit the claims (of one paper, where named). Ctrl-C ends with those decided."""
    if request.settings:
        return run_case(claim_named(request.ids[0]), request.settings, request.json)
    chosen = _chosen(request)
    if request.engine is not None:
        return run_engine(chosen, request, request.engine)
    nothing: tuple[Decisions, str | None] = ({}, None)
    decisions, effort = nothing
    if request.audit:
        decisions, effort = unless_interrupted(lambda: _decided(chosen, request), nothing)
    if is_interrupted() and not decisions and not request.json:
        print_text(f"none of the {len(chosen)} claims is decided yet")
        return INTERRUPTED
    is_whole = not request.audit or len(decisions) == len(chosen)
    records = [record(claim, decisions.get(name)) for name, claim in chosen.items()]
    if request.json:
        print_json({"claims": records, "effort": effort})
    else:
        _print(records)
        if effort is not None:
            say(effort)
    if not is_whole:
        say(f"{len(chosen) - len(decisions)} claims are not decided")
        return INTERRUPTED
    is_all = request.paper is None and not request.ids
    return BROKEN if uncorrected(decisions) and is_all else HOLDS


def _chosen(request: ClaimsRequest) -> Mapping[str, PaperClaim]:
    """The claims that are named, of the paper, or all."""
    if request.ids:
        return {name: claim_named(name) for name in request.ids}
    return claims(request.paper)


def _decided(
    chosen: Mapping[str, PaperClaim], request: ClaimsRequest
) -> tuple[Decisions, str | None]:
    """What became of the claims, and one phrase: how many cases, in how long, by whom."""
    begun, used = monotonic(), _processor_seconds()
    decisions = audit(chosen, request)
    seconds, work = monotonic() - begun, _processor_seconds() - used
    cases = sum(decision.checked for decision in decisions.values())
    cores = num_cores()
    by = f"({work:.0f} s of processor time) by {request.workers or cores} of {cores} cores"
    if (address := request.elsewhere.scheduler) is not None:
        by = f"by the workers of {address}"
    return decisions, f"{cases} cases looked at in {seconds:.0f} s {by}"


def audit(chosen: Mapping[str, PaperClaim], request: ClaimsRequest) -> Decisions:
    """What becomes of each claim, the same whoever decides; a bar shows what remains.

    Ctrl-C ends it with the claims that have been decided by then; the others are missing.
    """
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[what]}"))
    bar = Progress(*columns, console=Console(stderr=True), disable=request.json, transient=True)
    work = Audit(chosen=chosen, library=claims, is_wide=not request.quick, limit=request.limit)
    address = request.elsewhere.scheduler
    with open_executor(request.workers, address=address) as executor, bar as progress:

        def begin(load: int) -> Advance:
            task = progress.add_task("cases", total=load, what="")

            def advance(shard: Shard, left: int) -> None:
                what = f"{shard.claims[0]}, {left} claims remain"
                progress.update(task, advance=shard.load, what=what)

            return advance

        return run(work, executor, begin)


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
    rows = [(r["id"], r["source"], r["statement"], _told(r)) for r in records]
    print_table("claims", ("claim", "source", "statement", "verdict"), rows)
    counts = Counter(str(r["verdict"]).lower() for r in records if r["verdict"])
    if counts:
        text = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items())
        say(f"{counts.total()} claims: {text}")


def _told(told: Record) -> str:
    """The verdict, and what became of each reading; empty where nothing was decided."""
    if told["verdict"] is None:
        return ""
    lines = readings_of(told, has_domain=False)
    if len(lines) != 1 or told["against"]:
        return "\n".join([verdict_of(told), *lines])
    _, _, cases = outcome_of(told["readings"][0]).partition(" ")
    return verdict_of(told, f" {cases}")
