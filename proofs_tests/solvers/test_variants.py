"""Variants: what is taken is what theory builds, and the floor is below every choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from itertools import pairwise

import numpy as np
import pytest

from bubbleproof.solvers import SolveOptions, Status, solve
from bubbleproof.solvers.choices.choices_symmetry import (
    Symmetry,
    can_be_anonymous,
    order_edges,
    symmetry,
)
from bubbleproof.solvers.choices.option_lifetimes import OptionalLifetime, OptionLifetimes
from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants
from bubbleproof.solvers.choices.solving_choices import solve_variants
from bubbleproof.solvers.choices.variants import Option
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem, Store
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.choices_aloud import read_aloud
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sampled
from proofs_tests.solvers.derived_floor import choices_of, with_floor
from proofs_tests.solvers.small import RANK_AND_LINK, by_hand

PIPELINE = Pipeline(
    num_ranks=2,
    num_microbatches=2,
    forward=(1, 2),
    backward=(2, 3),
    latency=1,
    activation=3,
    released_at_input=1,
    capacity=4,
    split_backward=((True, True), (False, False)),
)
RECOMPUTE = AllowedRecompute(stages=(1, 0), kept=1)
PER_SAMPLE = AllowedRecompute(stages=(0,), kept=1, duration=5, per_microbatch=True)
EVICT = AllowedEvictions(pairs=((0, 1),), duration=2)
OFFLOAD = AllowedOffloads(stages=(1,), offload=1, reload=2, host_capacity=9)
ALLOWED = {
    "recompute": AllowedChoices(recompute=RECOMPUTE),
    "samples": AllowedChoices(recompute=PER_SAMPLE),
    "evict": AllowedChoices(evict=EVICT),
    "offload": AllowedChoices(offload=OFFLOAD),
    "all": AllowedChoices(recompute=PER_SAMPLE, evict=EVICT, offload=OFFLOAD),
}


def rows(problem: Problem) -> tuple[Counter[Hashable], ...]:
    """Tasks, edges and events by name, without unused resources and stores."""
    tasks: Counter[Hashable] = Counter()
    homes: dict[int, list[str]] = {}
    for task, resource in zip(
        problem.occupancy.task.tolist(), problem.occupancy.resource.tolist(), strict=True
    ):
        homes.setdefault(task, []).append(problem.resources[resource].name)
    for task, names in homes.items():
        tasks[problem.label(task), int(problem.duration[task]), tuple(sorted(names))] += 1
    edges, events = problem.edges, problem.events
    arcs: Counter[Hashable] = Counter(
        (problem.label(a), problem.label(b), lag)
        for a, b, lag in zip(
            edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True
        )
    )
    changes: Counter[Hashable] = Counter(
        (problem.label(task), at_end, problem.stores[store], delta)
        for task, at_end, store, delta in zip(
            events.task.tolist(),
            events.at_end.tolist(),
            events.store.tolist(),
            events.delta.tolist(),
            strict=True,
        )
    )
    return tasks, arcs, changes


@pytest.mark.parametrize("allowed", ALLOWED.values(), ids=ALLOWED)
def test_what_is_taken_is_what_theory_builds(allowed: AllowedChoices) -> None:
    made = PipelineVariants(PIPELINE, allowed)
    choices = list(choices_of(made.variants))
    assert len(choices) > 1
    for taken in choices:
        assert rows(made.variants.taken(taken)) == rows(made.chosen(taken).problem())
    assert rows(made.variants.plain) == rows(PIPELINE.problem())


@pytest.mark.parametrize("allowed", ALLOWED.values(), ids=ALLOWED)
def test_no_choice_is_better_than_the_floor(allowed: AllowedChoices) -> None:
    variants = PipelineVariants(PIPELINE, allowed).variants
    options = SolveOptions(threads=1, time_limit=PATIENCE)
    floor = solve(variants.floor, options)
    assert floor.value is not None
    choices = [*choices_of(variants)]
    for taken in sampled(choices, every=3 if len(choices) < 9 else 11):
        found = solve(variants.taken(taken), options)
        assert found.value is None or found.value >= floor.best_bound


def test_options_of_one_sample_exclude_each_other() -> None:
    made = PipelineVariants(PIPELINE, ALLOWED["all"])
    # Stage 0 recomputes or evicts each of two microbatches; stage 1 off-loads each or not.
    assert len(made.options) == 6
    assert len(list(choices_of(made.variants))) == 3 * 3 * 2 * 2
    again, evicted = (
        made.options.index(Option(what=what, stage=0, microbatch=1))
        for what in ("recompute", "evict")
    )
    with pytest.raises(ValueError, match="these options exclude each other"):
        made.variants.taken((again, evicted))


def test_a_pool_has_the_joint_capacity_and_others_none() -> None:
    static = PIPELINE.with_changes(static=(1, 0))
    evict = PipelineVariants(static, ALLOWED["evict"]).variants
    assert evict.pools == evict.safe_pools == ((0, 1),)
    stores = evict.floor.stores
    assert (stores[0].base, stores[0].capacity, stores[1].capacity) == (1, 8, None)
    # A recomputed forward drops load of the pool: it bounds nothing then.
    both = PipelineVariants(static, AllowedChoices(recompute=RECOMPUTE, evict=EVICT)).variants
    assert (both.pools, both.safe_pools) == (((0, 1),), ())
    assert [store.capacity for store in both.floor.stores] == [None, None]


def test_lifetimes_of_an_evicted_activation() -> None:
    plain = PIPELINE.with_changes(split_backward=False)
    variants = PipelineVariants(plain, ALLOWED["evict"]).variants
    f, b, e, load = (variants.whole.task(text) for text in ("0F0", "0B0", "0EVICT0", "0LOAD0"))
    first = Option(what="evict", stage=0, microbatch=0)
    option = variants.options.index(first)
    own = OptionLifetimes(variants).of((0,))
    assert own is not None
    # Left: on rank 0 from F to B. Taken: from F to the end of EVICT, and from LOAD to B.
    assert {lifetime for lifetime in own if lifetime.first in (f, load)} == {
        OptionalLifetime(f, b, 3, (), (option,)),
        OptionalLifetime(f, e, 3, (option,)),
        OptionalLifetime(load, b, 3, (option,)),
    }
    joint = OptionLifetimes(variants).of((0, 1))
    assert joint is not None
    # Together: from F to B in any case, and once more while it moves.
    assert {lifetime for lifetime in joint if lifetime.first in (f, e, load)} == {
        OptionalLifetime(f, b, 3),
        OptionalLifetime(e, e, 3, (option,)),
        OptionalLifetime(load, load, 3, (option,)),
    }


def test_a_load_that_is_no_hold_is_said_otherwise() -> None:
    # What OFFLOAD takes at its start has nobody that gives it back later.
    whole = by_hand(
        [("0F0", 1, (0,)), ("0OFFLOAD0", 1, (1,))],
        [("0F0", "0OFFLOAD0", 0)],
        resources=RANK_AND_LINK,
        stores=(Store(name="memory", capacity=3),),
        events=[("0F0", False, 0, 1), ("0OFFLOAD0", False, 0, 1)],
    )
    variants = with_floor(
        whole=whole,
        options=(Option(what="off-load", stage=0, microbatch=0),),
        task_option=np.array([NONE, 0]),
        edge_option=np.array([0]),
        event_option=np.array([NONE, 0]),
    )
    assert OptionLifetimes(variants).of((0,)) is None


def test_index_order_holds_for_stages_and_for_one_class_of_samples() -> None:
    whole = PIPELINE.with_changes(split_backward=False)
    per_stage, per_sample, uneven = (
        PipelineVariants(pipeline, allowed).variants
        for pipeline, allowed in (
            (whole, ALLOWED["recompute"]),
            (whole, ALLOWED["samples"]),
            (whole.with_changes(split_backward=((True, False),) * 2), ALLOWED["recompute"]),
        )
    )
    assert symmetry(per_stage) is Symmetry.ALL
    assert symmetry(per_sample) is Symmetry.ONE
    assert symmetry(uneven) is Symmetry.NONE
    assert not can_be_anonymous(per_stage)
    assert not can_be_anonymous(per_sample)  # a forward drops part of its load by option
    edges = order_edges(per_sample, Symmetry.ONE)
    first = [per_sample.whole.task(f"0F{j}") for j in range(2)]
    assert list(zip(edges.before.tolist(), edges.after.tolist(), strict=True)) == [*pairwise(first)]
    # All classes: F, B and R of two stages, two microbatches each.
    assert len(order_edges(per_stage, Symmetry.ALL)) == 6
    assert len(order_edges(uneven, Symmetry.NONE)) == 0


def test_one_sample_that_may_do_less_than_the_others_breaks_the_symmetry() -> None:
    variants = PipelineVariants(PIPELINE, ALLOWED["evict"]).variants
    assert symmetry(variants) is Symmetry.ONE
    assert can_be_anonymous(variants)
    renamed = [
        Option(what=f"evict {o.microbatch}", stage=0, microbatch=o.microbatch)
        for o in variants.options
    ]
    odd = with_floor(
        whole=variants.whole,
        options=tuple(renamed),
        task_option=variants.task_option,
        edge_option=variants.edge_option,
        event_option=variants.event_option,
    )
    assert symmetry(odd) is Symmetry.NONE


def test_choices_in_words() -> None:
    made = PipelineVariants(PIPELINE, ALLOWED["all"])
    wanted = [
        Option(what="recompute", stage=0, microbatch=1),
        Option(what="evict", stage=0, microbatch=0),
        Option(what="off-load", stage=1, microbatch=0),
        Option(what="off-load", stage=1, microbatch=1),
    ]
    chosen = made.chosen([made.options.index(option) for option in wanted])
    assert read_aloud(chosen) == (
        "stage 0 recomputes microbatches 1",
        "rank 0 evicts microbatches 0 to rank 1",
        "stage 1 off-loads microbatches 0 1",
    )
    stages = PipelineVariants(PIPELINE, ALLOWED["recompute"])
    both, none = stages.chosen((0, 1)), stages.chosen(())
    assert read_aloud(both) == ("stage 1 recomputes", "stage 0 recomputes")
    assert read_aloud(none) == ()


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (
            AllowedChoices(recompute=AllowedRecompute(stages=(2,))),
            "recompute may name each stage of 0..1",
        ),
        (
            AllowedChoices(offload=AllowedOffloads(stages=(0, 0), offload=1, reload=1)),
            "offload may name each stage",
        ),
        (
            AllowedChoices(evict=AllowedEvictions(pairs=((0, 2),), duration=1)),
            r"evictions go between two ranks of 0..1, got \(0, 2\)",
        ),
    ],
)
def test_a_menu_names_what_the_pipeline_has(allowed: AllowedChoices, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PipelineVariants(PIPELINE, allowed)


def test_columns_must_fit_the_whole_problem() -> None:
    variants = PipelineVariants(PIPELINE, ALLOWED["evict"]).variants
    with pytest.raises(ValueError, match="task_option must have 14 rows, got 13"):
        with_floor(
            whole=variants.whole,
            options=variants.options,
            task_option=variants.task_option[1:],
            edge_option=variants.edge_option,
            event_option=variants.event_option,
        )
    with pytest.raises(ValueError, match=r"event [0-9]+ belongs to a task of option 0"):
        with_floor(
            whole=variants.whole,
            options=variants.options,
            task_option=variants.task_option,
            edge_option=variants.edge_option,
            event_option=np.full_like(variants.event_option, NONE),
        )


def test_an_option_may_bring_what_others_release() -> None:
    # B gives back a unit that only R, which is an option, has taken: without R it falls below 0.
    # So the floor must not forbid it. R and B take a tick each.
    whole = by_hand(
        [("0R0", 1, (0,)), ("0B0", 1, (0,))],
        [("0R0", "0B0", 0)],
        stores=[Store(name="memory", capacity=1)],
        events=[("0R0", False, 0, 1), ("0B0", True, 0, -1)],
    )
    variants = with_floor(
        whole=whole,
        options=(Option(what="recompute", stage=0),),
        task_option=np.array([0, NONE]),
        edge_option=np.array([0]),
        event_option=np.array([0, NONE]),
    )
    assert len(variants.floor.events) == 0
    found = solve_variants(variants)
    assert (found.result.status, found.result.makespan, found.taken) == (Status.OPTIMAL, 2, (0,))


def test_transfers_outside_all_computation_are_chosen_too() -> None:
    # Room for one of two F; an off-load to nowhere (its link is free, nothing waits for it) makes
    # room for the other: F 0-1, off-load 1-2, F 2-3. Its time does not lie within computation.
    whole = by_hand(
        [("0F0", 1, (0,)), ("0F1", 1, (0,)), ("0OFFLOAD0", 1, (1,)), ("0OFFLOAD1", 1, (1,))],
        [("0F0", "0OFFLOAD0", 0), ("0F1", "0OFFLOAD1", 0)],
        resources=RANK_AND_LINK,
        stores=[Store(name="memory", capacity=1)],
        events=[(f"0F{j}", False, 0, 1) for j in range(2)]
        + [(f"0OFFLOAD{j}", True, 0, -1) for j in range(2)],
    )
    variants = with_floor(
        whole=whole,
        options=tuple(Option(what="off-load", stage=0, microbatch=j) for j in range(2)),
        task_option=np.array([NONE, NONE, 0, 1]),
        edge_option=np.array([0, 1]),
        event_option=np.array([NONE, NONE, 0, 1]),
    )
    assert can_be_anonymous(variants)
    found = solve_variants(variants)
    assert (found.result.status, found.result.makespan) == (Status.OPTIMAL, 3)
