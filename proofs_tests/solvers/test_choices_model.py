"""The model of open choices: without one of its families the checker refuses its schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.solvers.choices.choices_symmetry import Symmetry
from bubbleproof.solvers.choices.option_lifetimes import OptionLifetimes
from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants
from bubbleproof.solvers.choices.variants import Option
from bubbleproof.solvers.engines import cpsat_choices
from bubbleproof.solvers.engines.choices_frame import Frame, is_anchored
from bubbleproof.solvers.engines.cpsat_choices import ChoicesModel, run_model
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.starts import schedule_of_starts
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import Rule, check
from proofs_tests.counted_steps import counted_steps
from proofs_tests.patience import in_time
from proofs_tests.solvers.derived_floor import with_floor
from proofs_tests.solvers.small import prefetch

# Slow messages want three forwards ahead on rank 0, which has room for two and may park on rank 1.
PIPELINE = Pipeline(num_ranks=2, num_microbatches=4, latency=3, capacity=2)
EVICT = AllowedChoices(evict=AllowedEvictions(pairs=((0, 1),), duration=1))


def broken(monkeypatch: pytest.MonkeyPatch, *methods: str) -> tuple[Rule, ...]:
    """The rules that the model's schedule breaks when some families are left out."""
    for method in methods:
        monkeypatch.setattr(ChoicesModel, method, lambda _: None)
    variants = PipelineVariants(PIPELINE, EVICT).variants
    model = ChoicesModel(Frame(variants=variants, limit=40, order=Symmetry.NONE))
    model.build()
    found = run_model(model, Budget(deadline=in_time(), threads=1))
    assert found.start is not None
    assert found.taken is not None
    problem = variants.taken(found.taken)
    start = found.start[variants.whole.locate(problem.actions)]
    return check(problem, schedule_of_starts(problem, start)).broken


def test_with_all_families_the_schedule_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(monkeypatch) == ()


@pytest.mark.parametrize(
    ("methods", "rule"),
    [
        (("add_dependencies",), Rule.DEPENDENCIES),
        (("add_exclusion",), Rule.EXCLUSIVE),
        (("add_memory",), Rule.MEMORY),
        (("add_memory", "add_pools"), Rule.MEMORY),
    ],
)
def test_each_family_is_needed(
    methods: tuple[str, ...], rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rule in broken(monkeypatch, *methods)


def test_a_menu_is_anchored_where_transfers_lie_between_computations() -> None:
    assert is_anchored(PipelineVariants(PIPELINE, EVICT).variants)
    # 0LOAD0 of ``prefetch`` waits for nothing, so it may run before the first computation.
    whole = prefetch()
    option = whole.actions.kind * 0 + NONE
    option[whole.task("0LOAD0")] = 0
    free = with_floor(
        whole=whole,
        options=(Option(what="load", stage=0, microbatch=0),),
        task_option=option,
        edge_option=whole.edges.lag * 0,
        event_option=option[:0],
    )
    assert not is_anchored(free)


def test_a_model_that_time_does_not_suffice_for_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpsat_choices, "run_model", None)  # calling it is an error
    frame = Frame(
        variants=PipelineVariants(PIPELINE, EVICT).variants, limit=40, order=Symmetry.NONE
    )
    found = cpsat_choices.search(frame, Budget(deadline=0.0))
    assert (found.start, found.taken, found.bound, found.is_refuted) == (None, None, 0, False)


def test_lifetimes_take_twice_the_work_for_twice_the_microbatches() -> None:
    allowed = replace(EVICT, recompute=AllowedRecompute(stages=(0,)))  # each excludes the other

    def steps(microbatches: int) -> int:
        pipeline = PIPELINE.with_changes(num_microbatches=microbatches)
        variants = PipelineVariants(pipeline, allowed).variants
        return counted_steps(lambda: OptionLifetimes(variants).of((0, 1)))

    first, second, third = steps(16), steps(32), steps(64)
    assert third - second <= 2.02 * (second - first)  # of a line, exactly twice
