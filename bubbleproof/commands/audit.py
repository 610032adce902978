"""Deciding many claims with many workers, with a bar that shows what remains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.progress import Progress, TextColumn

from bubbleproof.papers.audit.audit import Advance, Audit, run
from bubbleproof.papers.audit.shards import Shard
from bubbleproof.papers.claims import Claim, Decision, claims
from bubbleproof.parallel import open_executor

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
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[what]}"))
    work = Audit(chosen=chosen, library=claims, is_wide=is_wide, limit=limit)
    with (
        open_executor(workers.count, address=workers.address) as executor,
        Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as progress,
    ):

        def begin(stage: str, load: int) -> Advance:
            task = progress.add_task(stage, total=load, what="")

            def advance(shard: Shard, left: int) -> None:
                what = f"{shard.claims[0]}, {left} claims remain"
                progress.update(task, advance=shard.load, what=what)

            return advance

        return run(work, executor, begin)
