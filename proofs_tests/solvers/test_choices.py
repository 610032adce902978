"""Choices: the best of all concrete problems, each solved by brute force, and known instances."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubbleproof.solvers import SolveOptions, Status
from bubbleproof.solvers.choices import ChoiceResult, solve_choices
from bubbleproof.solvers.engines.cpsat_anonymous import AnonymousModel, can_be_anonymous
from bubbleproof.solvers.engines.cpsat_menu import Frame, run_model
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.menu import Menu
from bubbleproof.solvers.menu_order import Symmetry
from bubbleproof.solvers.pipeline_menu import PipelineMenu
from bubbleproof.theory.allowed import (
    Allowed,
    AllowedEvictions,
    AllowedOffloads,
    AllowedRecompute,
)
from bubbleproof.theory.pipeline import Pipeline
from bubbleproof.verify import check
from bubbleproof.verify.certificate import check_certificate
from proofs_tests.solvers.brute_force import brute_force

Case = tuple[Pipeline, Allowed]
QUICK = SolveOptions(time_limit=60, threads=1)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A tiny pipeline under a tight capacity, and one or two kinds of choices for it."""
    p, m, split = draw(st.sampled_from(((1, 2, False), (1, 2, True), (1, 3, False), (2, 2, False))))
    ticks = {
        name: tuple(draw(st.integers(1, 2)) for _ in range(p))
        for name in ("forward", "backward", "input_backward", "weight_backward")
    }
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        split_backward=split,
        latency=draw(st.integers(0, 1)),
        activation=2,
        released_at_input=draw(st.integers(0, 1)),
        static=tuple(draw(st.integers(0, 1)) for _ in range(p)),
        capacity=tuple(draw(st.integers(2, 5)) for _ in range(p)),
        **ticks,  # type: ignore[arg-type]  # fields by name
    )
    stages = tuple(range(p))
    recompute = AllowedRecompute(
        stages=draw(st.sampled_from((stages[:1], stages))),
        kept=draw(st.integers(0, 1)),
        duration=draw(st.sampled_from((None, 1))),
        per_microbatch=draw(st.booleans()),
    )
    evict = AllowedEvictions(pairs=((0, p - 1),), duration=draw(st.integers(0, 2)))
    offload = AllowedOffloads(
        stages=stages[:1],
        offload=draw(st.integers(0, 2)),
        reload=draw(st.integers(1, 2)),
        host_capacity=draw(st.sampled_from((None, 2))),
    )
    kinds = ["recompute", "offload", "both"] + ["evict"] * 2 * (p > 1)
    kind = draw(st.sampled_from(kinds))
    return pipeline, Allowed(
        recompute=recompute if kind in ("recompute", "both") else None,
        evict=evict if kind == "evict" else None,
        offload=offload if kind in ("offload", "both") else None,
    )


def least_of_all(menu: Menu) -> int | None:
    """The least makespan over every set of options, each by brute force."""
    best: int | None = None
    for taken in menu.choices():
        found = brute_force(menu.taken(taken), every_tick=True, most=best)
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


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_best_choice_is_that_of_brute_force(case: Case) -> None:
    menu = PipelineMenu(*case).menu
    best = least_of_all(menu)
    found = solve_choices(*case, QUICK)
    assert_sound(found)
    if best is None:
        assert found.result.status is Status.INFEASIBLE
    else:
        assert found.result.status is Status.OPTIMAL
        assert found.result.value == best
        assert found.result.lower_bound <= best


def anonymous_bound(menu: Menu) -> int:
    frame = Frame(menu=menu, limit=100, order=Symmetry.ALL)
    model = AnonymousModel(frame)
    model.build()
    found = run_model(model, Budget(deadline=1e18, threads=1))
    return 101 if found.is_refuted else found.bound


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_forgetting_whose_transfer_is_whose_only_lowers_the_optimum(case: Case) -> None:
    menu = PipelineMenu(*case).menu
    if can_be_anonymous(menu):
        best = least_of_all(menu)
        assert best is None or anonymous_bound(menu) <= best
