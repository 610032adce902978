"""ZB-V beside PyTorch's ``ScheduleZBVZeroBubble``: the phases are its order, action by action."""

from __future__ import annotations

from benchmarks.torch_tables import Size, schedule_classes, to_program, torch_table
from bubbleproof.theory.families import family
from bubbleproof.theory.families.zero_bubble.zb_v import phase_order
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

NAME = "ZBVZeroBubble"


def test_the_phases_are_pytorchs_order_and_the_family_is_never_longer() -> None:
    shorter = 0
    for p in range(2, 6):
        for m in range(1, 3 * p + 2):
            size = Size(ranks=p, microbatches=m, chunks=2)
            table = torch_table(schedule_classes()[NAME], size)
            assert table is not None
            theirs = to_program(table.compute)
            assert list(theirs.actions) == list(phase_order(p, m).actions), str(size)
            step = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=2)
            pipeline = family("zb-v").fitted(step)
            problem = pipeline.problem()
            ours = measure(problem, family("zb-v").schedule(pipeline)).makespan
            published = measure(problem, left_shift(problem, theirs)).makespan
            assert ours <= published
            assert m < 2 * p - 1 or ours == published
            shorter += ours < published
    assert shorter
