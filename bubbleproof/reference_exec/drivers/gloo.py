"""The gloo driver: one process per rank on this machine.

``run_gloo`` starts processes, runs one plan and ends them; ``GlooPool`` keeps them for the next.
They are forked from a server that has torch loaded (``gloo_server``), meet through a file in a
temporary directory, and run a rank each (``gloo_worker``).
"""

from __future__ import annotations

from collections.abc import Callable

from bubbleproof.reference_exec.drivers.gloo_pool import GlooPool
from bubbleproof.reference_exec.drivers.gloo_run import GRACE_SECONDS, STARTUP_SECONDS, RankFailed
from bubbleproof.reference_exec.drivers.gloo_worker import Worker, work
from bubbleproof.reference_exec.plans.plan import Plan
from bubbleproof.reference_exec.runtime.rank import RankResult

__all__ = ["GRACE_SECONDS", "STARTUP_SECONDS", "GlooPool", "RankFailed", "Worker", "run_gloo"]


def run_gloo(
    plan: Plan,
    *,
    timeout: float = 60.0,
    progress: Callable[[str], None] | None = None,
    debug_headers: bool = False,
    worker: Worker = work,
) -> list[RankResult]:
    """Run every rank of a plan in a process that this call starts and ends; see ``GlooPool.run``.

    ``worker``, a module's function, is what each process runs. Raises ``RankFailed``.
    """
    with GlooPool(worker=worker) as pool:
        return pool.run(plan, timeout=timeout, progress=progress, debug_headers=debug_headers)
