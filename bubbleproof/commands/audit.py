"""Deciding many claims with many workers, with a bar that shows what remains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from rich.console import Console
from rich.progress import Progress, TaskID, TextColumn

from bubbleproof.parallel import open_executor, run_all
from bubbleproof.theorems import ProofVerdict, theorems
from bubbleproof.theory.claims import Claim, Decision, Standing
from bubbleproof.theory.claims.shards import Audit, Failure, Shard, decide_shard

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
    """What becomes of each claim; the same whoever decides."""
    work = Audit(chosen=chosen, is_wide=is_wide, limit=limit)
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[what]}"))
    screen = Console(stderr=True)
    with (
        open_executor(workers.count, address=workers.address) as executor,
        Progress(*columns, console=screen, disable=quiet, transient=True) as progress,
    ):
        for name, shards in (("smallest cases", work.heads), ("other cases", work.cells)):
            task = progress.add_task(name, total=None, what="")
            _run(work, executor, shards(), progress, task)
    proved: dict[str, bool] = {}
    return {name: _with_proof(found, proved) for name, found in work.decisions().items()}


def _run(
    work: Audit,
    executor: Executor | None,
    shards: Sequence[Shard],
    progress: Progress,
    task: TaskID,
) -> None:
    left = Counter(claim for shard in shards for claim in shard.claims)
    progress.update(task, total=sum(shard.load for shard in shards))

    def done(index: int, failures: Sequence[Failure]) -> None:
        work.note(failures)
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
    if name is None or decision.standing is not Standing.HOLDS:
        return decision
    if name not in proved:
        from bubbleproof.theorems.prover import prove  # loads Z3

        proved[name] = prove(theorems()[name]).verdict is ProofVerdict.PROVED
    return replace(decision, standing=Standing.PROVED) if proved[name] else decision
