"""Deciding many claims with many workers, with a bar that shows what remains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from rich.console import Console
from rich.progress import Progress, TaskID, TextColumn

from bubbleproof.papers.claims import Claim, ClaimVerdict, Decision
from bubbleproof.papers.claims.shards import Audit, Outcome, Shard, decide_shard
from bubbleproof.papers.theorems import ProofVerdict, theorems
from bubbleproof.parallel import open_executor, run_all

Decisions = Mapping[str, Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Who decides: ``count`` processes (None: one per core), or the cluster at ``address``."""

    count: int | None = None
    address: str | None = None


def audit(
    chosen: Mapping[str, Claim],
    *,
    is_wide: bool,
    limit: int | None = None,
    workers: Workers,
    quiet: bool = False,
) -> Decisions:
    """What becomes of each claim; the same whoever decides.

    Ctrl-C ends it with the claims that have been decided by then; the others are missing.
    """
    work = Audit(chosen=chosen, is_wide=is_wide, limit=limit)
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[what]}"))
    screen = Console(stderr=True)
    left = Counter(name for name, claim in chosen.items() if claim.missing is None)
    decided: dict[str, Decision] = {}
    try:
        with (
            open_executor(workers.count, address=workers.address) as executor,
            Progress(*columns, console=screen, disable=quiet, transient=True) as progress,
        ):
            task = progress.add_task("smallest cases", total=None, what="")
            _run(work, executor, work.heads(), progress, task)
            cells = work.cells()
            left = _claims_in(cells)
            task = progress.add_task("other cases", total=None, what="")
            _run(work, executor, cells, progress, task, left)
        proved: dict[str, bool] = {}
        for name, found in work.decisions().items():
            decided[name] = _with_proof(found, proved)
    except KeyboardInterrupt:
        known = {n: d for n, d in work.decisions().items() if not left[n] or d.counterexample}
        return known if any(left.values()) else decided
    return decided


def _claims_in(shards: Sequence[Shard]) -> Counter[str]:
    """In how many of the shards each claim has cases."""
    return Counter(claim for shard in shards for claim in shard.claims)


def _run(
    work: Audit,
    executor: Executor | None,
    shards: Sequence[Shard],
    progress: Progress,
    task: TaskID,
    left: Counter[str] | None = None,
) -> None:
    """Decide the shards; ``left`` counts for each claim those that are not done."""
    left = _claims_in(shards) if left is None else left
    progress.update(task, total=sum(shard.load for shard in shards))

    def done(index: int, outcomes: Sequence[Outcome]) -> None:
        work.note(outcomes)
        shard = shards[index]
        left.subtract(shard.claims)
        remaining = sum(count > 0 for count in left.values())
        progress.update(
            task, advance=shard.load, what=f"{shard.claims[0]}, {remaining} claims remain"
        )

    run_all(executor, decide_shard, shards, on_done=done)


def _with_proof(decision: Decision, proved: dict[str, bool]) -> Decision:
    """PROVED, where all measured cases hold and the theorem behind the claim proves anew."""
    name = decision.claim.theorem
    if name is None or decision.verdict is not ClaimVerdict.HOLDS:
        return decision
    if name not in proved:
        from bubbleproof.papers.theorems.prover import prove  # loads Z3

        proved[name] = prove(theorems()[name]).verdict is ProofVerdict.PROVED
    return replace(decision, verdict=ClaimVerdict.PROVED) if proved[name] else decision
