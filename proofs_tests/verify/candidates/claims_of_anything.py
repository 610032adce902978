"""The sweep of rank claims over every number and every kind of choice that a pipeline has.

Each small pipeline is drawn from the declarations (``random_choices.anything``): a kind that is
declared is drawn, or its missing drawer is named. Of every rank each claim is made as strong as it
is accepted, and held against the optimum of ``solvers.exhaustive``, which knows a problem's columns
and nothing else. ``python -m proofs_tests.verify.candidates.claims_of_anything 2000`` prints counts
by claim and by kind of choice.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from bubbleproof.theory.pipelines.choices import CHOICES, Choices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import candidate_refusal
from bubbleproof.verify.candidates.rank_claims import NoRoom, RankClaim, RankMemory, RankWork
from proofs_tests.random_choices import anything, shape_of
from proofs_tests.solvers.exhaustive import Exhaustive, TooMuchWork

MOST_TASKS, MOST_STATES = 22, 3_000
NEVER = 1 << 40


@dataclass(kw_only=True)
class ClaimCounts:
    """``made``: claims that were accepted, by claim and kind; ``above``: those that do not hold."""

    pipelines: int = 0
    infeasible: int = 0
    exact: int = 0
    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    above: list[str] = field(default_factory=list)

    def kinds(self, claim: str) -> dict[str, int]:
        """How often the claim was accepted of a pipeline with each kind of choice."""
        return {name: self.made[claim, name] for name in CHOICES}

    def __str__(self) -> str:
        rows = [
            f"{claim:11} {' '.join(f'{name}={n}' for name, n in self.kinds(claim).items())}"
            for claim in ("RankWork", "RankMemory", "NoRoom")
        ]
        first = f"{self.pipelines} pipelines, {self.infeasible} without a schedule, "
        first += f"{self.exact} bounds exact, {len(self.above)} above the optimum"
        return "\n".join([first, *rows, *self.above[:20]])


def sweep(count: int, seed: int = 0) -> ClaimCounts:
    """``count`` pipelines whose optimum is walked through, from ``seed`` on."""
    counts, number = ClaimCounts(), seed
    while counts.pipelines < count:
        random = Random(number)
        pipeline = anything(random, shape_of(random, 2, 3), every=random.choice((1, 0.3, 0.15)))
        number += 1
        if pipeline.problem().num_tasks > MOST_TASKS:
            continue
        try:
            optimum = Exhaustive(pipeline.problem(), MOST_STATES).optimum()
        except TooMuchWork:
            continue
        counts.pipelines += 1
        counts.infeasible += optimum is None
        for claim in strongest(pipeline):
            hold(counts, f"{number - 1}", pipeline, claim, optimum)
    return counts


def strongest(pipeline: Pipeline) -> Iterator[RankClaim]:
    """Every claim of every rank that is accepted, as strong as it is."""
    for rank in range(pipeline.num_ranks):
        for kind in (RankWork, RankMemory, NoRoom):
            least, most = 0, 1 << 12
            if candidate_refusal(pipeline, None, kind(rank=rank, bound=1)) is not None:
                continue
            while least < most:  # the greatest bound that is accepted
                middle = (least + most + 1) // 2
                is_accepted = (
                    candidate_refusal(pipeline, None, kind(rank=rank, bound=middle)) is None
                )
                least, most = (middle, most) if is_accepted else (least, middle - 1)
            yield kind(rank=rank, bound=least)


def hold(
    counts: ClaimCounts, name: str, pipeline: Pipeline, claim: RankClaim, optimum: int | None
) -> None:
    """Count the claim, and whether it holds."""
    kind = type(claim).__name__
    for choice in CHOICES:
        counts.made[kind, choice] += getattr(pipeline, choice) != getattr(Choices(), choice)
    counts.exact += optimum == claim.bound
    if optimum is not None and claim.bound > optimum:
        counts.above.append(f"{name}: {claim} for {optimum}, {pipeline}")


if __name__ == "__main__":
    sys.stdout.write(f"{sweep(int(sys.argv[1]) if len(sys.argv) > 1 else 500)}\n")
