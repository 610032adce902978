"""Random models of unlike layers: a tower in front, layers of kinds, any embedding and head.

    python -m proofs_tests.planners.unlike_layers 200

plans each with any cut and sets it beside every cut there is, timed by the same orders: none is
shorter where the planner is right. The exit status is 1 where one is.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.planners.looks import FirstSearch, first_look
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_lists import NamedCuts
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut, LayerPart, Layers
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped

ORDERS = ("1f1b", "gpipe", "interleaved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A model's plan beside all its cuts: ticks, None where nothing fits."""

    space: PlanSpace
    found: int | None
    lower: int
    best: int | None
    cuts: int

    @property
    def is_right(self) -> bool:
        """No cut is shorter than the plan, nor than its bound."""
        if self.best is None:
            return self.found is None
        return self.found is not None and self.lower <= self.best and self.found <= self.best


def drawn(seed: int) -> PlanSpace:
    """A model on two to four ranks, of one or two chunks."""
    draw = random.Random(seed)

    def part(most: int) -> LayerPart:
        forward, back, late = (draw.randint(0, most) for _ in range(3))
        return LayerPart(
            forward=1 + forward,
            backward=back + late,
            input_backward=back,
            weight_backward=late,
            activation=draw.randint(0, 3),
            static=draw.randint(0, 4),
        )

    ranks, chunks = draw.choice([(2, 1), (3, 1), (4, 1), (4, 1), (2, 2)])
    kinds = [part(draw.choice([3, 9])) for _ in range(draw.randint(1, 3))]
    number = draw.randint(ranks * chunks, 14 if chunks == 1 else 7)
    runs = [(draw.choice(kinds), draw.randint(1, 3)) for _ in range(number)]
    tower = [(part(draw.choice([9, 60])), 1)] * draw.randint(0, 1)
    listed = [each for each, count in [*tower, *runs] for _ in range(count)][:number]
    layers = Layers(
        runs=tuple((each, 1) for each in listed),
        rule=NamedCuts(kinds=("any",)),
        embedding=draw.choice([LayerPart(), LayerPart(static=draw.randint(1, 9)), part(20)]),
        head=draw.choice([LayerPart(), part(5), part(30)]),
    )
    total = sum(each.static + each.activation for each in listed)
    capacity = draw.choice([None, None, total, 2 * total // ranks + 12])
    pipeline = Pipeline(
        num_ranks=ranks, num_microbatches=draw.choice([1, 2, 4, 8]), capacity=capacity
    )
    return PlanSpace(pipeline=pipeline, layers=layers, chunks=(chunks,))


def every_cut(layers: Layers, stages: int) -> Iterator[Cut]:
    """Every cut whose stages have what they have at least."""
    least = layers.least(stages)
    for cut in product(*(range(few, layers.number + 1) for few in least)):
        if sum(cut) == layers.number:
            yield cut


def compared(seed: int) -> Compared:
    """The plan of a model beside all its cuts."""
    space = drawn(seed)
    assert space.layers is not None
    found = plan(space, PlanOptions(orders=ORDERS))
    values, cuts = [], list(every_cut(space.layers, space.pipeline.num_ranks * space.chunks[0]))
    for cut in cuts:
        one = Candidate(
            chunks=space.chunks[0], placement="loop", backward="whole", slices=1, layers=cut
        )
        try:
            seen = first_look(FirstSearch(shaped=shaped(space, one), orders=ORDERS))
        except NotLegalError:  # its weights alone are more than a rank has
            continue
        values += [] if seen.found is None else [seen.found.value]
    return Compared(
        space=space,
        found=found.value if isinstance(found, Plan) else None,
        lower=found.lower_bound,
        best=min(values, default=None),
        cuts=len(cuts),
    )


def main(count: int) -> int:
    """Print what is not right, and how many cuts there were; the exit status."""
    rows = [compared(seed) for seed in range(count)]
    wrong = [seed for seed, row in enumerate(rows) if not row.is_right]
    exact = sum(row.found is not None and row.lower == row.found for row in rows)
    print(f"{count} models, {sum(row.cuts for row in rows):,} cuts, at most "  # noqa: T201 - a report
          f"{max(row.cuts for row in rows)} of one; {exact} plans are at their bound; "
          f"wrong: {wrong or 'none'}")  # fmt: skip
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
