"""Rule 6 over the programs of every family of ours, as ``lower`` makes them."""

from __future__ import annotations

from itertools import product

from benchmarks.findings import Tally
from benchmarks.torch_tables import Size
from bubbleproof.theory.families import families, make_parameters
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify import check_communication

OPTIONS: tuple[dict[str, int], ...] = ({}, {"v": 2}, {"v": 4}, {"s": 2}, {"v": 2, "s": 2})


def own_programs(max_ranks: int) -> dict[str, Tally]:
    """By family: how many lowered programs there are, and what they violate.

    Of each option the family takes p ranks up to the limit and p, 2p and 2p + 1 microbatches.
    """
    found = {name: Tally() for name in families()}
    for name, family in families().items():
        for p, options in product(range(2, max_ranks + 1), OPTIONS):
            for m in (p, 2 * p, 2 * p + 1):
                try:
                    made = family.member(make_parameters({"p": p, "m": m, **options}))
                except ValueError:
                    continue
                size = Size(ranks=p, microbatches=m, chunks=options.get("v", 1))
                verdict = check_communication(made.problem, lower(made.problem, made.schedule))
                found[name].judged += 1
                for decision in verdict.decisions:
                    if not decision.ok:
                        found[name].note(decision.detail, size, decision.violations[0])
    return found
