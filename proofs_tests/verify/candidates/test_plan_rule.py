"""The judge of a plan: accepted as made, and refused for each thing that is not so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.planners import Plan, PlanOptions, plan
from bubbleproof.solvers import solve
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import shaped
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import Rule, Verdict, check_whole
from bubbleproof.verify.candidates.bundle import BundleVerdict, DeploymentSpace, check_bundle
from bubbleproof.verify.candidates.deployment_bundles import check_deployments
from bubbleproof.verify.candidates.plan_rule import (
    Anew,
    GivenPlan,
    foreign_beside,
    no_deployment,
    plan_refusals,
    plan_value,
)
from bubbleproof.verify.candidates.plan_verdict import (
    ChoicesScope,
    DeploymentsScope,
    PlanDistance,
    check_bound,
    check_distance,
    check_winner,
)
from proofs_tests.patience import PATIENCE
from proofs_tests.planners.found_plans import found_plan

SPACE = PlanSpace(
    pipeline=Pipeline(
        num_ranks=2, num_microbatches=3, forward=2, backward=4, activation=2, capacity=8
    ),
    chunks=(1, 2, 3),  # 2 ticks are not divisible by 3
)
HOSTED = SPACE.pipeline.with_changes(state_offload=StateOffload(stages=(1,), step=50))
OTHERS = (("hosted", HOSTED),)
BESIDE = replace(SPACE, others=OTHERS)


@pytest.fixture(scope="module")
def found() -> Plan:
    return found_plan(plan(SPACE, PlanOptions(time_limit=PATIENCE, threads=1)))


def given(found: Plan, **changes: object) -> GivenPlan:
    """The plan as it is given, with changes."""
    winner = found.winner
    assert winner is not None
    assert winner.pipeline is not None
    plain = GivenPlan(
        at=no_deployment(found.space),
        winner=winner.candidate,
        pipeline=winner.pipeline,
        problem=winner.pipeline.problem(),
        schedule=winner.schedule,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields by name


def beside(pipeline: Pipeline = HOSTED, space: PlanSpace = BESIDE) -> GivenPlan:
    """A plan whose winner stands beside the shapes, with an optimal order of its makespan."""
    problem = pipeline.problem()
    solved = solve(problem).schedule
    assert solved is not None
    return GivenPlan(
        at=no_deployment(space),
        winner=space.candidates()[-1],
        pipeline=pipeline,
        problem=problem,
        schedule=left_shift(problem, solved.program),
    )


def nothing(name: str) -> Pipeline:
    raise ValueError(f"no planner makes {name}")


def as_told(name: str) -> Pipeline:
    return dict(OTHERS)[name]


def test_what_a_plan_makes_is_accepted(found: Plan) -> None:
    assert plan_refusals(given(found), nothing) == ()
    assert plan_refusals(beside(), as_told) == ()


def test_a_winner_that_is_no_candidate_is_refused(found: Plan) -> None:
    for winner in (
        Candidate(chunks=4, placement="loop", backward="whole", slices=1),
        Candidate(chunks=1, placement="wave", backward="whole", slices=1),
        BESIDE.candidates()[-1],
    ):
        [why] = plan_refusals(given(found, winner=winner), nothing)
        assert why == f"{winner} is no candidate of the problem"


def test_a_winner_that_is_not_legal_is_refused(found: Plan) -> None:
    winner = SPACE.candidates()[2]
    [why] = plan_refusals(given(found, winner=winner), nothing)
    assert why.startswith(f"{winner} is not legal: ")
    assert "3" in why


def test_a_schedule_of_another_pipeline_is_refused(found: Plan) -> None:
    plan_ = given(found)
    other = next(
        each for each in SPACE.candidates()[:2] if shaped(SPACE, each).pipeline != plan_.pipeline
    )
    [why] = plan_refusals(replace(plan_, winner=other), nothing)
    assert why.startswith(f"the schedule is none of {other}: the pipeline has another shape")
    [none] = plan_refusals(replace(plan_, pipeline=None), nothing)
    assert none == "the plan's schedule comes without its pipeline"


def test_a_pipeline_beside_is_the_one_that_was_named() -> None:
    other = HOSTED.with_changes(latency=1)
    [why] = plan_refusals(beside(other), as_told)
    assert why == "the schedule is none of hosted: v=1 loop whole: it has another pipeline"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"forward": 1}, "forwards of a microbatch take 1 ticks on rank 0, not 2"),
        ({"num_microbatches": 2}, "its num_microbatches is not the problem's"),
        ({"capacity": 5}, "its capacity is not the problem's"),
    ],
)
def test_a_pipeline_beside_that_trains_another_step_is_refused(
    changes: dict[str, object], told: str
) -> None:
    other = HOSTED.with_changes(**changes)
    space = replace(SPACE, others=(("hosted", other),))
    [why] = plan_refusals(beside(other, space), lambda _: other)
    assert why == f"hosted: v=1 loop whole trains another step: {told}"


def test_a_pipeline_beside_is_what_the_file_gives_winner_or_not(found: Plan) -> None:
    """One that was exchanged, though it trains the step and the winner is another."""
    [why] = foreign_beside(BESIDE, lambda _: HOSTED.with_changes(static=1, latency=2))
    told = "another static and another latency"
    assert why == f"the pipeline 'hosted' is not what the file's numbers give: {told}"
    plan_ = given(found, at=no_deployment(BESIDE))
    assert plan_refusals(plan_, as_told) == ()
    assert plan_refusals(plan_, lambda _: SPACE.pipeline) == (
        "the pipeline 'hosted' is not what the file's numbers give: another choices",
    )
    both = replace(SPACE, others=(*OTHERS, ("more", HOSTED)))
    assert foreign_beside(both, nothing) == tuple(
        f"nothing gives the pipeline {name!r} beside the shapes: no planner makes {name}"
        for name in ("hosted", "more")
    )


def test_the_value_counts_what_follows(found: Plan) -> None:
    plan_ = given(found)
    assert plan_value(plan_, 24) == 24
    later = DeploymentSpace(name="t=1", space=SPACE, after=7, rest=3)
    assert plan_value(replace(plan_, at=later), 24) == 31


def test_the_value_beside_the_shapes_is_the_step_of_hosts_too() -> None:
    """Three F and B of 6 ticks keep rank 1 busy from 2 to 20; then 1 of OFFLOAD, 50 of STEP."""
    plan_ = beside()
    assert plan_value(plan_, 24) == 20 + 1 + 50
    assert plan_.schedule is not None
    later = replace(plan_.schedule, start=plan_.schedule.start + 5)
    assert plan_value(replace(plan_, schedule=later), 24) == 71
    # Of a pipeline of the shapes the makespan counts, whatever its hosts do.
    assert plan_value(replace(plan_, winner=SPACE.candidates()[0]), 24) == 24
    assert plan_value(replace(plan_, schedule=None), 24) == 24


def test_what_a_sharded_pipeline_has_in_itself_does_not_follow_it() -> None:
    sharded = SPACE.pipeline.with_changes(sharding=Sharding(zero=1, gather=1, reduce=1))
    space = replace(SPACE, others=(("mesh", sharded),))
    at = DeploymentSpace(name="t=1", space=space, after=70, rest=30)
    plan_ = replace(beside(sharded, space), at=at, schedule=None)
    assert plan_value(plan_, 24) == 54


def judged(plan_: GivenPlan, anew: Anew = as_told) -> Verdict:
    """All rules of the plan's schedule and of its winner."""
    assert plan_.schedule is not None
    return check_winner(plan_, check_whole(plan_.problem, plan_.schedule), anew)


def proofs(found: Plan) -> BundleVerdict:
    return check_bundle(SPACE, found.bundle)


def test_an_optimal_plan_is_called_so(found: Plan) -> None:
    checked = judged(given(found))
    assert checked.ok
    assert Rule.CERTIFICATE not in [one.rule for one in checked.decisions]
    assert found.value is not None
    answer = check_distance(given(found), checked, ChoicesScope(space=SPACE), proofs(found))
    assert answer.ok
    assert (answer.distance.value, answer.distance.gap) == (found.value, 0)
    assert [one.rule for one in answer.verdict.decisions][-1] is Rule.CERTIFICATE
    assert answer.violations == ()
    assert answer.statement.startswith(
        f"optimal over these choices: {found.value} ticks, and no schedule has less "
        "(2 candidates proved, 1 not legal"
    )
    assert repr(answer) == f"<PlanVerdict: {answer.statement}>"


def test_a_plan_above_the_bound_is_told_its_distance(found: Plan) -> None:
    plan_, scope = given(found), ChoicesScope(space=SPACE)
    loose = replace(proofs(found), bound=20, believed=("cpsat", "sat"))
    assert found.value is not None
    answer = check_distance(plan_, judged(plan_), scope, loose)
    gap = found.value - 20
    assert answer.ok
    assert answer.distance.gap == gap
    assert answer.statement == (
        f"within {gap} tick of optimal over these choices: {found.value} ticks, and no schedule "
        "is below 20 (2 candidates proved, 1 not legal, the others by an uncertified bound of "
        "cpsat and sat)"
    )


def test_a_value_below_the_bound_refuses_the_bound(found: Plan) -> None:
    plan_, value = given(found), found.value
    assert value is not None
    tight = replace(proofs(found), bound=value + 1)
    answer = check_distance(plan_, judged(plan_), ChoicesScope(space=SPACE), tight)
    assert not answer.ok
    assert answer.verdict.broken == (Rule.CERTIFICATE,)
    [violation] = answer.violations
    assert violation.message == (
        f"the schedule's makespan is {value}, below the bound {value + 1} of all candidates"
    )
    assert answer.distance.gap is None
    assert answer.statement == "nothing is proved about how good the plan is"
    of_all = DeploymentsScope(deployed=(), num_not_legal=0)
    [other] = check_distance(plan_, judged(plan_), of_all, tight).violations
    assert other.message == (
        f"the schedule's iteration is {value}, below the bound {value + 1} of all deployments"
    )


def test_a_plan_that_is_none_is_no_reason_against_the_bound(found: Plan) -> None:
    """Each is refused by rule 9, and has no value that could be below a bound."""
    foreign = given(found, winner=Candidate(chunks=4, placement="loop", backward="whole", slices=1))
    checked = judged(foreign)
    assert checked.broken == (Rule.CERTIFICATE,)
    tight = replace(proofs(found), bound=1000)
    answer = check_distance(foreign, checked, ChoicesScope(space=SPACE), tight)
    assert (answer.distance.value, answer.distance.proved.bound) == (None, 1000)
    assert "optimal" not in answer.statement
    exchanged = judged(given(found, at=no_deployment(BESIDE)), lambda _: SPACE.pipeline)
    assert exchanged.broken == (Rule.CERTIFICATE,)


def test_a_wrong_schedule_has_no_value(found: Plan) -> None:
    plan_ = given(found)
    schedule = plan_.schedule
    assert schedule is not None
    early = replace(schedule, start=schedule.start * 0)
    checked = judged(replace(plan_, schedule=early))
    assert checked.measured is not None
    assert Rule.CERTIFICATE not in checked.broken
    answer = check_distance(plan_, checked, ChoicesScope(space=SPACE), proofs(found))
    assert answer.distance.value is None
    assert not answer.ok


def test_refused_proofs_are_told_whatever_the_plan_is(found: Plan) -> None:
    refused = check_bundle(SPACE, found.bundle[1:])
    answer = check_distance(given(found), judged(given(found)), ChoicesScope(space=SPACE), refused)
    assert answer.verdict.broken == (Rule.CERTIFICATE,)
    assert "the bundle has no bound of" in answer.violations[0].message
    assert answer.statement == "nothing is proved about how good the plan is"


def test_what_is_refused_or_unbounded_is_never_called_good(found: Plan) -> None:
    """Whatever number stands beside a refusal; and of no candidate there is no bound."""
    scope, proved = ChoicesScope(space=SPACE), proofs(found)
    for bad in (replace(proved, refusals=("x",)), replace(proved, bound=None)):
        told = PlanDistance(scope=scope, proved=bad, value=24)
        assert told.statement == "nothing is proved about how good the plan is"


def test_a_bound_alone_is_told_without_a_plan(found: Plan) -> None:
    answer = check_bound(ChoicesScope(space=SPACE), proofs(found))
    assert answer.ok
    assert answer.distance.value is None
    assert answer.statement == (
        f"no schedule over these choices is below {found.lower_bound} ticks "
        "(2 candidates proved, 1 not legal)"
    )
    assert not check_bound(ChoicesScope(space=SPACE), check_bundle(SPACE, ())).ok


def test_deployments_are_counted_with_what_stands_beside(found: Plan) -> None:
    one = DeploymentSpace(name="d=1", space=SPACE, after=5)
    two = DeploymentSpace(name="d=2", space=SPACE, after=9)
    proved = check_deployments((one, two), (("d=1", found.bundle), ("d=2", found.bundle)))
    scope = DeploymentsScope(deployed=(one, two), num_not_legal=3)
    answer = check_bound(scope, proved)
    assert answer.statement == (
        f"no iteration over these deployments and choices is below {found.lower_bound + 5} ticks "
        "(2 deployments: 4 candidates proved, 0 of them without room for a microbatch; 3 more have "
        "no legal pipeline)"
    )
    single = DeploymentsScope(deployed=(replace(one, space=BESIDE),), num_not_legal=0)
    told = PlanDistance(scope=single, proved=replace(proved, num_proved=1), value=None).by
    assert told == (
        "1 deployment: 1 candidate proved, 0 of them without room for a microbatch; 0 more have "
        "no legal pipeline; 1 pipeline of the plan beside the file's shapes, derived anew from the "
        "file"
    )
    assert ChoicesScope(space=BESIDE).num_beside == 1
    assert DeploymentsScope(deployed=(), num_not_legal=0).unit == ""
