"""What counting the work of every action costs a replay on ``virtual``.

    python -m benchmarks.replay_work [--rounds 15]

Each replay (``replay()`` as a whole: verification, ranks, oracles, comparison) runs with the count
and without, in turns; the ratio is of processor time, the median over the rounds of one run.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from statistics import median

import typer

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.run_options import ReplayOptions
from bubbleproof.reference_exec.replaying import replay
from bubbleproof.theory.families import member

SMALL = ModelSpec()
CASES = (
    ("1f1b", SMALL),
    ("zb-h1", SMALL),
    ("zb-h1", replace(SMALL, kind="llama", hidden=16)),
    ("1f1b", replace(SMALL, kind="transformer", hidden=32, layers=2, sequence=32)),
)


def main(rounds: int = 15, ranks: int = 4, microbatches: int = 8) -> None:
    """Measure and print."""
    for family, spec in CASES:
        found = member(family, p=ranks, m=microbatches)
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(rounds + 1):
            for count_work in (turn % 2 == 0, turn % 2 == 1):
                begun = time.process_time()
                report = replay(
                    found.pipeline, found.schedule, spec, ReplayOptions(count_work=count_work)
                )
                spent = time.process_time() - begun
                if not report.ok:
                    raise RuntimeError(str(report))
                if turn:  # the first one loads and warms up
                    seconds[count_work].append(spent)
        pairs = zip(seconds[True], seconds[False], strict=True)
        ratio = median(counted / plain for counted, plain in pairs)
        plain = 1000 * median(seconds[False])
        which = f"{family} p={ranks} m={microbatches}, {spec.kind} hidden {spec.hidden}"
        sys.stdout.write(f"{which}: {ratio:.2f} of the processor time without ({plain:.0f} ms)\n")


if __name__ == "__main__":
    typer.run(main)
