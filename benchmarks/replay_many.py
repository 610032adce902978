"""How long it takes to replay many small schedules in one process, verification included.

    python -m benchmarks.replay_many [--sizes 10]

Six families at ten sizes each, on ``virtual``, with the small MLP in float64: each is built,
verified, run and compared with both oracles. A schedule that breaks a promise ends the run.
"""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks.machine import this_machine
from bubbleproof.reference_exec.replay import replay
from bubbleproof.reference_exec.spec import ModelSpec
from bubbleproof.theory.families import member

FAMILIES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipev")
SIZES = ((2, 4), (2, 6), (2, 8), (3, 6), (3, 9), (4, 8), (4, 12), (5, 10), (6, 12), (8, 16))


def main(arguments: list[str] | None = None) -> None:
    """Replay and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="benchmarks.replay_many", description=__doc__)
    parser.add_argument("--sizes", type=int, default=len(SIZES))
    sizes = SIZES[: parser.parse_args(arguments).sizes]
    wall, processor, ranks = time.monotonic(), time.process_time(), 0.0
    for family in FAMILIES:
        for p, m in sizes:
            found = member(family, p=p, m=m)
            report = replay(found.problem, found.schedule, ModelSpec())
            if not report.ok:
                raise RuntimeError(f"{family} p={p} m={m}: {report}")
            ranks += report.seconds
    wall, processor = time.monotonic() - wall, time.process_time() - processor
    sys.stdout.write(
        f"{len(FAMILIES) * len(sizes)} schedules replayed in {wall:.1f} s ({processor:.1f} s of "
        f"processor time, all threads), of which the ranks took {ranks:.1f} s\n"
        f"on {this_machine()}\n"
    )


if __name__ == "__main__":
    main()
