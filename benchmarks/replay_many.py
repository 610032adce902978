"""How long it takes to replay many small schedules, verification included.

    python -m benchmarks.replay_many [--sizes 10] [--ways virtual,gloo,gloo-pool]

Six families at ten sizes each, with the small MLP in float64: each is built, verified, run and
compared with both oracles. A schedule that breaks a promise ends the run. The ways to run:

``virtual``
    all ranks in this process;
``gloo``
    a process per rank, started and ended by each replay;
``gloo-pool``
    the same in one pool of processes, which stay (``GlooPool``); their start is counted.

Before the first way on gloo one replay is not counted: the server that processes are forked from
loads torch in it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import typer

from bubbleproof.reference_exec.drivers.gloo import GlooPool
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.theory.families import member

FAMILIES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipev")
SIZES = ((2, 4), (2, 6), (2, 8), (3, 6), (3, 9), (4, 8), (4, 12), (5, 10), (6, 12), (8, 16))
WAYS = ("virtual", "gloo", "gloo-pool")
Sizes = Sequence[tuple[int, int]]


def main(sizes: int = len(SIZES), ways: str = ",".join(WAYS)) -> None:
    """Replay and print; see the module's text."""
    if ways != "virtual":
        _replayed("gloo", None, 2, 2, "1f1b")
    for way in ways.split(","):
        sys.stdout.write(f"{way}: {_measured(way, SIZES[:sizes])}\n")
        sys.stdout.flush()
    sys.stdout.write(f"on {this_machine()}\n")


def _measured(way: str, sizes: Sizes) -> str:
    """The seconds of all replays of one way, told."""
    wall, processor = time.monotonic(), time.process_time()
    if way == "gloo-pool":
        with GlooPool() as pool:
            ranks = _all_replayed("gloo", pool, sizes)
    else:
        ranks = _all_replayed(way, None, sizes)
    wall, processor = time.monotonic() - wall, time.process_time() - processor
    return (
        f"{len(FAMILIES) * len(sizes)} schedules replayed in {wall:.1f} s ({processor:.1f} s of "
        f"this process's processor time, all threads), of which the ranks took {ranks:.1f} s"
    )


def _all_replayed(backend: str, pool: GlooPool | None, sizes: Sizes) -> float:
    """The seconds that the ranks took."""
    return sum(_replayed(backend, pool, p, m, family) for family in FAMILIES for p, m in sizes)


def _replayed(backend: str, pool: GlooPool | None, p: int, m: int, family: str) -> float:
    """The seconds of one replay's ranks. Raises ``RuntimeError`` where a promise is broken."""
    found = member(family, p=p, m=m)
    report = replay(
        found.pipeline, found.schedule, ModelSpec(), ReplayOptions(backend=backend), pool=pool
    )
    if not report.ok:
        raise RuntimeError(f"{family} p={p} m={m}: {report}")
    return report.seconds


if __name__ == "__main__":
    typer.run(main)
