"""The joint plan with a paper's choice among its candidates: never worse, by the same costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from bubbleproof.papers.planning.joint_plan import with_paper
from bubbleproof.papers.planning.paper_choice import (
    AcceptedSchedule,
    PaperChoice,
    PaperInput,
    known_of,
)
from bubbleproof.papers.planning.planner_list import paper_choice, planners
from bubbleproof.planners import Plan, SolvedCandidate, plan
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.verify import check_whole
from bubbleproof.verify.candidates.bundle import check_bundle
from bubbleproof.verify.candidates.chosen import foreign_step
from proofs_tests.planners.first_looks import FIRST_LOOKS
from proofs_tests.planners.found_plans import found_plan, value_found
from proofs_tests.sized import sized
from proofs_tests.zeros import zero_or

PARAMETERS, REPLICAS, OPERATION = 3, 4, {"name": "gelu", "activation": 2, "ticks": 3, "count": 4}


def drawn(paper: str, seed: int) -> PaperInput:
    """A random small file; ranks of four units of activation, so that two chunks divide it."""
    random = Random(f"{paper} {seed}")
    p, m = random.randint(2, 5), random.randint(1, 8)
    static = random.randint(21, 30)  # (12/4 + 4) 3 units of model state, and what else there is
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=m,
        forward=4 * zero_or(random, 1, 5),
        backward=4 * zero_or(random, 1, 9),
        activation=8,
        static=static,
        capacity=random.choice([None, static + random.randint(8, 8 * p + 16)]),
        latency=random.choice([0, 0, 1]),
    )
    again = AllowedRecompute(stages=tuple(range(p)), kept=4 * random.randint(0, 1))
    pairs = tuple((r, p - 1 - r) for r in range(p) if 2 * r != p - 1)
    evict = AllowedEvictions(pairs=pairs, duration=4 * zero_or(random, 1, 2))
    allowed = AllowedChoices(
        recompute=random.choice([None, again]), evict=evict if paper == "bpipe" else None
    )
    space = PlanSpace(
        pipeline=pipeline,
        allowed=random.choice([None, allowed]),
        chunks=random.choice([(1,), (2,), (1, 2)]),
        placements=random.choice([("loop",), ("wave", "loop"), ("wave",)]),
    )
    return PaperInput(space=space, table=table(paper, random))


def table(paper: str, random: Random) -> Mapping[str, object]:
    """The file's table of the paper, sometimes none."""
    if random.random() < 0.3:
        return {}
    if paper == "pipemesh":
        return {
            "parameters": PARAMETERS,
            "replicas": REPLICAS,
            "communication": random.randint(0, 60),
            "operations": [OPERATION],
        }
    if paper == "tpipe":
        return {
            "state": random.randint(2, 12),
            "offload": random.randint(0, 20),
            "step": random.randint(0, 40),
            "upload": random.randint(0, 9),
        }
    if paper == "bpipe":
        return {"tensor": 4, "transfer_between_nodes": 3}
    return {"temporary": random.randint(0, 9)}


def last_end(problem: Problem, schedule: Schedule) -> int:
    """From the first start to the last end, task by task."""
    at = problem.locate(schedule.program.actions)
    starts = schedule.start.tolist()
    ends = [start + int(problem.duration[task]) for start, task in zip(starts, at, strict=True)]
    found: int = max(ends) - min(starts)
    return found


def refused(paper: str, given: PaperInput) -> PaperChoice | None:
    try:
        return paper_choice(paper, given)
    except ValueError:  # no chunk has a whole number of operations
        return None


@pytest.mark.parametrize("paper", planners())
def test_the_plan_is_never_worse_than_what_runs_of_the_paper(paper: str) -> None:
    beside, executable = 0, 0
    for seed in range(sized(6, full=300)):
        given = drawn(paper, seed)
        if (chosen := refused(paper, given)) is None:
            continue
        start = known_of(chosen)
        found = plan(given.space, FIRST_LOOKS, known=() if start is None else (start,))
        joint = with_paper(found, chosen)
        # A bound of every candidate, each shown.
        assert check_bundle(joint.space, joint.bundle).refusals == (), seed
        for _, other in joint.space.others:
            assert foreign_step(given.space, other) is None, seed
        if chosen.value is None:
            assert isinstance(joint, Plan) == isinstance(found, Plan)
            continue
        executable += chosen.executable
        assert isinstance(joint, Plan), seed
        assert joint.lower_bound <= joint.value <= chosen.value, seed
        winner = joint.winner
        assert joint.verdict.ok
        if winner.candidate.beside:
            beside += 1
            problem = winner.pipeline.problem()
            assert joint.value == last_end(problem, winner.schedule)
            assert check_whole(problem, winner.schedule).ok
            assert dict(joint.space.others)[winner.candidate.beside] == winner.pipeline
    assert executable > sized(1, full=5)
    # What MEPipe and BPipe run is mostly one of the candidates.
    assert beside or paper in ("bpipe", "mepipe")


def test_a_candidate_has_what_the_paper_counts_beside_its_makespan() -> None:
    """1F1B of two ranks: 3 (4 + 8) ticks, gathers of 5 before and reductions of 5 behind."""
    pipeline = Pipeline(
        num_ranks=2, num_microbatches=2, forward=4, backward=8, activation=8, static=21
    )
    space = PlanSpace(pipeline=pipeline)
    given = PaperInput(
        space=space, table={"parameters": PARAMETERS, "replicas": REPLICAS, "communication": 5}
    )
    chosen = paper_choice("pipemesh", given)
    joint = found_plan(with_paper(plan(space, FIRST_LOOKS), chosen))
    (own, *others) = joint.judged
    assert isinstance(own, SolvedCandidate)
    assert (own.measured.makespan, own.value) == (36, 46)
    assert [one.candidate.beside for one in others] == ["pipemesh"]
    assert joint.value == chosen.value == 46


def test_a_run_of_a_candidate_that_is_longer_there_stands_beside() -> None:
    """Where the search did not begin with it, the paper's own schedule is still a candidate."""
    pipeline = Pipeline(num_ranks=2, num_microbatches=4, forward=4, backward=8, activation=8)
    given = PaperInput(space=PlanSpace(pipeline=pipeline), table={})
    chosen = paper_choice("mepipe", given)
    run = chosen.run
    assert isinstance(run, AcceptedSchedule)
    assert run.candidate is not None
    found = plan(given.space, FIRST_LOOKS)
    longer = tuple(replace(one, value=10**9, has_more=True) for one in found.solved)
    dear = replace(chosen, cost=lambda *_: 10**9)
    joint = found_plan(with_paper(replace(found, judged=longer), dear))
    assert joint.value == chosen.value
    assert joint.winner.candidate.beside == "mepipe"


def test_without_a_run_the_plan_is_as_it_was() -> None:
    space = drawn("tpipe", 0).space
    nothing = PaperChoice(paper="tpipe", choice={}, executable=False, note="", value=None, run=None)
    found = plan(space, FIRST_LOOKS)
    joint = with_paper(found, nothing)
    assert (value_found(joint), joint.lower_bound, joint.status) == (
        value_found(found),
        found.lower_bound,
        found.status,
    )
