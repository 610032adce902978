"""Choices: the best of all concrete problems, each solved by brute force, and known instances."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubbleproof.solvers import ProofOrigin, SolveOptions, Status, solve
from bubbleproof.solvers.choices.choices_symmetry import Symmetry, can_be_anonymous, symmetry
from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants
from bubbleproof.solvers.choices.solving_choices import ChoiceResult, solve_choices, solve_variants
from bubbleproof.solvers.choices.variants import Option, Variants
from bubbleproof.solvers.engines.choices_frame import Frame
from bubbleproof.solvers.engines.cpsat_anonymous import AnonymousModel
from bubbleproof.solvers.engines.cpsat_choices import ChoicesModel, run_model
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Store
from bubbleproof.theory.pipelines.allowed import (
    AllowedChoices,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify import check
from bubbleproof.verify.candidates.certified_distance import check_certificate
from proofs_tests.patience import PATIENCE, in_time
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.solvers.derived_floor import choices_of, with_floor
from proofs_tests.solvers.small import RANK_AND_LINK, by_hand

Case = tuple[Pipeline, AllowedChoices]
QUICK = SolveOptions(time_limit=PATIENCE, threads=1)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A tiny pipeline under a tight capacity, and one or two kinds of choices for it."""
    p, m, split = draw(st.sampled_from(((1, 2, False), (1, 2, True), (1, 3, False), (2, 2, False))))
    ticks = {
        name: tuple(draw(st.integers(0, 2)) for _ in range(p))
        for name in ("forward", "backward", "input_backward", "weight_backward")
    }
    activation = tuple(draw(st.sampled_from((2, 2, 1, 0))) for _ in range(p))
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        split_backward=split,
        latency=draw(st.integers(0, 1)),
        activation=activation,
        released_at_input=tuple(draw(st.integers(0, min(1, held))) for held in activation),
        static=tuple(draw(st.integers(0, 1)) for _ in range(p)),
        capacity=tuple(draw(st.integers(1, 5)) for _ in range(p)),
        **ticks,  # type: ignore[arg-type]  # fields by name
    )
    stages = tuple(range(p))
    recompute = AllowedRecompute(
        stages=draw(st.sampled_from((stages[:1], stages))),
        kept=draw(st.integers(0, min(1, *activation))),
        duration=draw(st.sampled_from((None, 1, 0))),
        per_microbatch=draw(st.booleans()),
    )
    evict = AllowedEvictions(pairs=((0, p - 1),), duration=draw(st.integers(0, 2)))
    offload = AllowedOffloads(
        stages=stages[:1],
        offload=draw(st.integers(0, 2)),
        reload=draw(st.integers(0, 2)),
        host_capacity=draw(st.sampled_from((None, 2, 0))),
    )
    kinds = ["recompute", "offload", "both"] + ["evict"] * 2 * (p > 1)
    kind = draw(st.sampled_from(kinds))
    return pipeline, AllowedChoices(
        recompute=recompute if kind in ("recompute", "both") else None,
        evict=evict if kind == "evict" else None,
        offload=offload if kind in ("offload", "both") else None,
    )


def least_of_all(variants: Variants) -> int | None:
    """The least makespan over every set of options, each by brute force."""
    best: int | None = None
    for taken in choices_of(variants):
        found = brute_force(variants.taken(taken), every_tick=True, most=best)
        if found is not None:
            best = found.makespan
    return best


def assert_sound(found: ChoiceResult) -> None:
    """The schedule solves the problem of the pipeline that is returned; the bound is certified."""
    if found.result.schedule is not None:
        assert check(found.pipeline.problem(), found.result.schedule).ok
    if found.floor_certificate is not None:
        assert check_certificate(found.floor, found.floor_certificate).ok
        assert found.floor_certificate.bound == found.result.lower_bound


@settings(max_examples=sized(10, full=35), deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_best_choice_is_that_of_brute_force(case: Case) -> None:
    variants = PipelineVariants(*case).variants
    best = least_of_all(variants)
    found = solve_choices(*case, QUICK)
    assert_sound(found)
    if best is None:
        assert found.result.status is Status.INFEASIBLE
    else:
        assert found.result.status is Status.OPTIMAL
        assert found.result.value == best
        assert found.result.lower_bound <= best


def anonymous_bound(variants: Variants) -> int:
    frame = Frame(variants=variants, limit=100, order=Symmetry.ALL)
    model = AnonymousModel(frame)
    model.build()
    found = run_model(model, Budget(deadline=1e18, threads=1))
    return 101 if found.is_refuted else found.bound


@settings(max_examples=sized(15, full=60), deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_forgetting_whose_transfer_is_whose_only_lowers_the_optimum(case: Case) -> None:
    variants = PipelineVariants(*case).variants
    if can_be_anonymous(variants):
        best = least_of_all(variants)
        assert best is None or anonymous_bound(variants) <= best


# Where order costs, found at random: two ranks, three microbatches, off-load and reload 4 ticks.
LAST_IN_FIRST_OUT = (
    Pipeline(
        num_ranks=2,
        num_microbatches=3,
        forward=(2, 1),
        backward=(3, 2),
        latency=1,
        activation=2,
        capacity=(4, 2),
    ),
    AllowedChoices(offload=AllowedOffloads(stages=(0, 1), offload=4, reload=4)),
)


def optimum_in_order(variants: Variants, order: Symmetry) -> int:
    model = ChoicesModel(Frame(variants=variants, limit=60, order=order))
    model.build()
    found = run_model(model, Budget(deadline=in_time()))
    assert found.start is not None
    return found.bound


def test_index_order_would_lose_the_optimum_and_one_class_does_not() -> None:
    variants = PipelineVariants(*LAST_IN_FIRST_OUT).variants
    assert symmetry(variants) is Symmetry.ONE
    without = optimum_in_order(variants, Symmetry.NONE)
    assert optimum_in_order(variants, Symmetry.ONE) == without
    assert optimum_in_order(variants, Symmetry.ALL) > without
    found = solve_choices(*LAST_IN_FIRST_OUT, QUICK)
    assert (found.result.status, found.result.value) == (Status.OPTIMAL, without)


RECOMPUTE = AllowedRecompute(stages=(0, 1, 2, 3), kept=1)
FOUR = Pipeline(num_ranks=4, num_microbatches=8, forward=2, backward=4, latency=1, activation=4)
IN_TWO = FOUR.with_changes(capacity=8)  # room for two activations


def test_recomputed_stages_are_the_best_of_all_sixteen() -> None:
    variants = PipelineVariants(IN_TWO, AllowedChoices(recompute=RECOMPUTE)).variants
    each = [solve(variants.taken(taken), QUICK) for taken in choices_of(variants)]
    assert len(each) == 16
    assert all(result.status is Status.OPTIMAL for result in each)
    best = min(result.value or 0 for result in each)
    found = solve_choices(IN_TWO, AllowedChoices(recompute=RECOMPUTE), QUICK)
    assert_sound(found)
    assert (found.result.status, found.result.value) == (Status.OPTIMAL, best)
    # As fast as with room for four activations on each rank, where 126 is optimal without.
    assert best == solve(FOUR.with_changes(capacity=16).problem()).value == 80
    assert each[0].value == 126


def test_a_choice_makes_an_infeasible_problem_feasible() -> None:
    variants = forced_apart()
    assert solve(variants.plain).status is Status.INFEASIBLE
    found = solve_variants(variants, QUICK)
    assert found.result.status is Status.OPTIMAL
    assert found.taken == (0,)
    # 0F0 0-1, 0OFFLOAD0 1-3, 0F1 3-4, 0B1 4-6, 0RELOAD0 6-8, 0B0 8-10.
    assert found.result.value == 10
    assert found.result.schedule is not None
    assert check(variants.taken((0,)), found.result.schedule).ok


def forced_apart() -> Variants:
    """0F0, 0F1, 0B1, 0B0 in this order, one unit of memory; microbatch 0 may move out and back."""
    ways = [("0F0", False, 0, 1), ("0B0", True, 0, -1), ("0F1", False, 0, 1), ("0B1", True, 0, -1)]
    moves = [("0OFFLOAD0", True, 0, -1), ("0RELOAD0", False, 0, 1)]
    whole = by_hand(
        [("0F0", 1, (0,)), ("0B0", 2, (0,)), ("0F1", 1, (0,)), ("0B1", 2, (0,)),
         ("0OFFLOAD0", 2, (1,)), ("0RELOAD0", 2, (1,))],
        [("0F0", "0F1", 0), ("0F1", "0B1", 0), ("0B1", "0B0", 0),
         ("0F0", "0OFFLOAD0", 0), ("0OFFLOAD0", "0RELOAD0", 0), ("0RELOAD0", "0B0", 0)],
        resources=RANK_AND_LINK,
        stores=(Store(name="memory", capacity=1),),
        events=[*ways, *moves],
    )  # fmt: skip
    none = [NONE] * 4
    return with_floor(
        whole=whole,
        options=(Option(what="offload", stage=0, microbatch=0),),
        task_option=np.array([*none, 0, 0]),
        edge_option=np.array([*none[:3], 0, 0, 0]),
        event_option=np.array([*none, 0, 0]),
    )


def test_nothing_allowed_is_a_plain_solve() -> None:
    found = solve_choices(IN_TWO, AllowedChoices(), QUICK)
    plain = solve(IN_TWO.problem(), QUICK)
    assert (found.result.status, found.result.value) == (plain.status, plain.value)
    assert found.result.certificate == plain.certificate
    assert found.chosen == ("nothing",)


def test_too_little_memory_for_any_choice_is_infeasible() -> None:
    small = IN_TWO.with_changes(capacity=3)
    found = solve_choices(small, AllowedChoices(recompute=RECOMPUTE), QUICK)
    assert (found.result.status, found.result.schedule) == (Status.INFEASIBLE, None)


def test_a_time_out_is_no_verdict() -> None:
    evict = AllowedEvictions(pairs=((0, 3), (1, 2), (2, 1), (3, 0)), duration=3)
    capped = FOUR.with_changes(activation=1, capacity=3)
    found = solve_choices(capped, AllowedChoices(evict=evict), SolveOptions(time_limit=0.2))
    assert found.result.status in (Status.FEASIBLE, Status.UNKNOWN)


def test_what_nobody_wants_is_refused() -> None:
    with pytest.raises(ValueError, match="made for the makespan, got 'span_idle'"):
        solve_choices(IN_TWO, AllowedChoices(), SolveOptions(objective="span_idle"))
    with pytest.raises(ValueError, match="made by engine cpsat"):
        solve_choices(IN_TWO, AllowedChoices(), SolveOptions(engine="z3"))


def test_a_limit_below_the_optimum_is_infeasible() -> None:
    limited = SolveOptions(within=79, threads=1)
    found = solve_choices(IN_TWO, AllowedChoices(recompute=RECOMPUTE), limited)
    assert (found.result.status, found.result.proof) == (Status.INFEASIBLE, ProofOrigin.ENGINE)
    assert "with makespan <= 79 (not certified)" in found.result.reason
    hopeless = SolveOptions(within=71, threads=1)
    found = solve_choices(IN_TWO, AllowedChoices(recompute=RECOMPUTE), hopeless)
    assert (found.result.status, found.result.proof) == (Status.INFEASIBLE, ProofOrigin.ARGUMENT)
    assert "71 cannot be: 72 is certified whatever is chosen" in found.result.reason
    enough = SolveOptions(within=80, threads=1)
    assert solve_choices(IN_TWO, AllowedChoices(recompute=RECOMPUTE), enough).result.value == 80


@pytest.mark.sweep
def test_bpipe_like_evictions_are_optimal_where_a_plain_model_leaves_a_gap() -> None:
    evict = AllowedEvictions(pairs=((0, 3), (1, 2), (2, 1), (3, 0)), duration=1)
    capped = FOUR.with_changes(activation=1, capacity=3)
    assert solve(capped.problem()).value == 96
    stop, is_full = threading.Event(), sized(False, full=True)

    def below_plain(who: str, value: int | None, bound: int, seconds: float) -> None:
        del who, seconds
        if value is not None and value < 96 and bound >= 72 and not is_full:
            stop.set()

    options = SolveOptions(time_limit=PATIENCE, stop=stop, progress=below_plain)
    found = solve_choices(capped, AllowedChoices(evict=evict), options)
    assert_sound(found)
    # A plain CP-SAT model finds 78 and proves no more than 72, in 30 s.
    assert found.result.value is not None
    assert 72 <= found.result.lower_bound <= 78 <= found.result.value < 96
    if is_full:
        assert (found.result.status, found.result.value) == (Status.OPTIMAL, 78)


# Room for less than is wanted: windows and engines improve it in turn, and no bound closes it.
TIGHT = Pipeline(
    num_ranks=sized(3, full=8),
    num_microbatches=sized(8, full=16),
    split_backward=True,
    capacity=sized(3, full=6),
    forward=4,
    input_backward=5,
    weight_backward=5,
    latency=1,
)


@pytest.mark.parametrize("work", sized([0.02], full=[0.05, 4.0]))
def test_what_is_found_without_choices_is_found_with_them(work: float) -> None:
    options = SolveOptions(time_limit=PATIENCE, threads=1, work=work)
    plain = solve(TIGHT.problem(), options)
    allowed = AllowedChoices(evict=AllowedEvictions(pairs=((0, TIGHT.num_ranks - 1),), duration=3))
    with_choices = solve_choices(TIGHT, allowed, options).result
    assert plain.value is not None
    assert with_choices.value is not None
    assert with_choices.value <= plain.value
    assert solve_choices(TIGHT, allowed, options).result.value == with_choices.value
