"""Random programs that rule 6 calls safe, run on processes.

Messages and transfers of published schedules are moved at random. What is safe under
``pair-stream`` must come to its end on gloo, with the bits of the order-matched oracle.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bubbleproof.reference_exec.bits import are_equal
from bubbleproof.reference_exec.drivers.gloo import GlooPool, RankFailed
from bubbleproof.reference_exec.evidence.compare import summed_replicas
from bubbleproof.reference_exec.evidence.oracle import order_matched, single_threaded
from bubbleproof.verify import Semantics, check_communication
from proofs_tests.patience import PATIENCE
from proofs_tests.reference_exec.cases import family_case, shuffled

SHAPES: tuple[tuple[str, dict[str, int]], ...] = (
    ("1f1b", {"p": 3, "m": 3}),
    ("zb-v", {"p": 2, "m": 4}),
    ("interleaved", {"p": 2, "m": 4, "v": 2}),
    ("bpipe", {"p": 4, "m": 5}),
    ("chimera", {"p": 2, "m": 4}),
)
MOST_RANKS = max(shape["p"] for _, shape in SHAPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafePrograms:
    """How many runs had the gradients expected, what ended the others, how many never ran."""

    equal: int
    failures: tuple[str, ...]
    unsafe: int


def replay_safe_programs(wanted: int, pool: GlooPool) -> SafePrograms:
    """Draw programs of the ``SHAPES`` in turn until ``wanted`` safe ones have run.

    ``pool`` has ``MOST_RANKS`` processes or more.
    """
    cases = [family_case(name, **shape) for name, shape in SHAPES]
    choice = random.Random(5)
    equal, unsafe = 0, 0
    failures: list[str] = []
    while equal + len(failures) < wanted:
        case = cases[(equal + len(failures)) % len(cases)]
        program = shuffled(case, choice)
        if not check_communication(case.problem, program, (Semantics.PAIR_STREAM,)).ok:
            unsafe += 1
            continue
        plan = case.plan(program=program)
        try:
            found = summed_replicas(pool.run(plan, timeout=PATIENCE))
        except RankFailed as error:
            failures.append(str(error))
            continue
        with single_threaded():
            if are_equal(found, order_matched(plan)[0]):
                equal += 1
            else:
                failures.append(f"gradients differ: {program.orders(plan.num_ranks)}")
    return SafePrograms(equal=equal, failures=tuple(failures), unsafe=unsafe)
