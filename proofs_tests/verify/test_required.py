"""Problems are what their pipelines require: all families, random choices, what is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given

from bubbleproof.testing.strategies import pipelines
from bubbleproof.theory.families import families
from bubbleproof.theory.model.actions import Ints
from bubbleproof.theory.model.problem import Problem, Store
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline, problem_of
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.transfers import Eviction
from bubbleproof.verify import Rule, required
from bubbleproof.verify.every_rule import check_required
from bubbleproof.verify.required import differences
from bubbleproof.verify.required_alike import one_of_each_kind
from proofs_tests.random_choices import combined
from proofs_tests.sized import sized
from proofs_tests.zeros import zero_or, zeros_or

RANDOM = sized(24, full=3_000)


@pytest.mark.sweep
def test_every_family_poses_what_its_pipeline_requires() -> None:
    ranks, counts = sized(((2, 4), (3, 4)), full=((2, 3, 4, 6), (1, 2, 3, 5, 8, 12)))
    tried = 0
    for family, p, m in product(families().values(), ranks, counts):
        try:
            member = family(p=p, m=m)
        except ValueError:  # not of this shape
            continue
        assert differences(member.pipeline, member.problem) == [], (family.name, p, m)
        tried += 1
    assert tried > 2 * len(families())


@given(pipelines())
def test_odd_pipelines_pose_what_they_require(pipeline: Pipeline) -> None:
    assert differences(pipeline, pipeline.problem()) == []


def numbers(random: Random) -> dict[str, object]:
    """A small shape with numbers of its own for every stage."""
    p, v, s = random.randint(1, 4), random.randint(1, 2), random.randint(1, 2)
    stages = range(p * v)
    a = zeros_or(random, 1, 5, p * v)
    parts = random.choice([1, 2, 3])
    gemms = [tuple(random.randint(0, 3) for _ in range(parts)) for _ in stages]
    links = [Link(ranks=(0, 1), latency=random.randint(0, 3))] if p > 1 else []
    return {
        "num_ranks": p,
        "num_microbatches": random.randint(2, 4),
        "num_chunks": v,
        "num_slices": s,
        "placement": random.choice(["loop", "wave"]),
        "forward": tuple(random.randint(0, 4) for _ in stages),
        "backward": tuple(random.randint(0, 4) for _ in stages),
        "input_backward": tuple(random.randint(0, 4) for _ in stages),
        "weight_backward": tuple(map(sum, gemms)),
        "weight_parts": tuple(gemms) if parts > 1 else (),
        "weight_workspace": random.choice([0, tuple((2,) * parts for _ in stages), 3]),
        "activation": a,
        "released_at_input": tuple(random.randint(-2, most) for most in a),
        "static": tuple(random.randint(0, 3) for _ in stages),
        "capacity": random.choice([None, 40, tuple(range(20, 20 + p))]),
        "latency": random.randint(0, 2),
        "links": tuple(links),
        "message": tuple(random.randint(0, 3) for _ in stages),
        "bandwidth": random.choice([None, None, 1, Fraction(3, 2)]),
        "duplex": random.choice(["half", "full"]),
    }


def chosen(random: Random) -> Pipeline:
    """Each sample is recomputed, evicted, off-loaded, or none of these."""
    shape = numbers(random)
    flags = random.choice([True, False])
    plain = Pipeline(**shape, split_backward=flags)  # type: ignore[arg-type]  # fields by name
    choices: dict[str, list[tuple[int, int]]] = {"none": [], "again": [], "peer": [], "host": []}
    for sample in product(range(plain.num_stages), range(plain.num_microbatches)):
        choices[random.choice(list(choices))].append(sample)
    p, held = plain.num_ranks, plain.per_stage.activation.tolist()
    kept = random.randint(0, min([1, *(held[stage] for stage, _ in choices["again"])]))
    return Pipeline(
        **shape,  # type: ignore[arg-type]  # fields by name
        split_backward=flags,
        recompute=Recompute(samples=tuple(choices["again"]), kept=kept),
        evictions=tuple(
            Eviction(
                stage=g,
                microbatch=j,
                source=plain.stage_ranks[g],
                target=(plain.stage_ranks[g] + 1) % p,
                duration=random.randint(0, 2),
            )
            for g, j in choices["peer"]
            if p > 1
        ),
        offloads=tuple(
            ActivationOffload(
                stage=g, microbatch=j, offload=zero_or(random, 1, 2), reload=zero_or(random, 1, 3)
            )
            for g, j in choices["host"]
        ),
        host_capacity=random.choice([None, 9]),
    )


def updated_by_the_host(random: Random) -> Pipeline:
    shape = numbers(random)
    stages = range(Pipeline(**shape).num_stages)  # type: ignore[arg-type]  # fields by name
    return Pipeline(
        **shape,  # type: ignore[arg-type]  # fields by name
        recompute=random.choice([None, Recompute(stages=tuple(stages)[:1], duration=2)]),
        state_offload=StateOffload(
            stages=tuple(g for g in stages if random.random() < 0.6),
            **{
                name: zero_or(random, amount, amount)
                for amount, name in enumerate(
                    ("offload", "step", "reload", "weight", "gradient", "state"), 2
                )
            },
        ),
    )


def sharded(random: Random) -> Pipeline:
    shape = numbers(random) | {"num_slices": 1, "num_microbatches": 5}
    stages = int(str(shape["num_ranks"])) * int(str(shape["num_chunks"]))
    return Pipeline(
        **shape,  # type: ignore[arg-type]  # fields by name
        sharding=Sharding(
            enqueue=random.choice([None, (2, 3), (1, 2, 2)]),
            dequeue=random.choice([None, (3, 2), (2, 2, 1)]),
            zero=random.randint(1, 3),
            gather=zero_or(random, 4, 4),
            reduce=zero_or(random, 5, 5),
            regather=random.choice([None, 2, 0]),
            rereduce=random.choice([None, 3, 0]),
            parameter=zeros_or(random, 1, 4, stages),
            gradient=zero_or(random, 2, 2),
        ),
    )


@pytest.mark.sweep
@pytest.mark.parametrize("make", [chosen, updated_by_the_host, sharded, combined])
def test_random_choices_pose_what_they_require(make: object) -> None:
    assert callable(make)
    for number in range(RANDOM):
        pipeline = make(Random(number))
        assert differences(pipeline, pipeline.problem()) == [], (number, pipeline)


def plus_one(column: Ints, at: int) -> Ints:
    changed = column.copy()
    changed[at] += 1
    return changed


def forgetful(problem: Problem, random: Random) -> dict[str, Problem]:
    """The problem with one thing forgotten or changed, by what it is."""
    edges, first = problem.edges, problem.stores[0]
    row, task = random.randrange(len(edges)), random.randrange(problem.num_tasks)
    without = np.delete(np.arange(len(edges)), row)
    more = Store(name=first.name, base=first.base + 1, capacity=first.capacity)
    return {
        "an edge": replace(
            problem,
            edges=replace(
                edges,
                before=edges.before[without],
                after=edges.after[without],
                lag=edges.lag[without],
            ),
        ),
        "a lag": replace(problem, edges=replace(edges, lag=plus_one(edges.lag, row))),
        "a duration": replace(problem, duration=plus_one(problem.duration, task)),
        "a base load": replace(problem, stores=(more, *problem.stores[1:])),
        **(forgetful_of_memory(problem, random) if len(problem.events) else {}),
    }


def forgetful_of_memory(problem: Problem, random: Random) -> dict[str, Problem]:
    events, event = problem.events, random.randrange(len(problem.events))
    kept, mark = np.delete(np.arange(len(events)), event), np.arange(len(events)) == event
    return {
        "an event": replace(
            problem,
            events=replace(
                events,
                task=events.task[kept],
                at_end=events.at_end[kept],
                store=events.store[kept],
                delta=events.delta[kept],
            ),
        ),
        "an amount": replace(problem, events=replace(events, delta=plus_one(events.delta, event))),
        "a moment": replace(problem, events=replace(events, at_end=events.at_end ^ mark)),
    }


@pytest.mark.parametrize("make", [chosen, updated_by_the_host, sharded, combined])
def test_whatever_is_forgotten_is_named(make: object) -> None:
    assert callable(make)
    told = Counter[str]()
    for number in range(sized(8, full=24)):
        random = Random(number)
        pipeline = make(random)
        for what, problem in forgetful(pipeline.problem(), random).items():
            told[what] += 1
            found = differences(pipeline, problem)
            assert found, (number, what)
            assert all("requires" in sentence for sentence in found)
    assert len(told) == 7
    assert min(told.values()) > sized(4, full=15)


def test_the_finding_names_the_edge_that_is_missing() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=1)
    problem = pipeline.problem()
    edges = problem.edges
    lone = replace(edges, before=edges.before[1:], after=edges.after[1:], lag=edges.lag[1:])
    finding = check_required(pipeline, replace(problem, edges=lone))
    assert (finding.rule, finding.count) == (Rule.REQUIRED, 1)
    assert finding.violations[0].message == (
        "wait 0F0 1F0 0: the pipeline requires 1, the problem has nothing"
    )
    assert check_required(pipeline, problem).ok


def test_one_capacity_for_all_ranks_is_that_of_each() -> None:
    pipeline = Pipeline(num_ranks=3, num_microbatches=2, capacity=(7,))
    problem = pipeline.problem()
    assert [store.capacity for store in problem.stores] == [7, 7, 7]
    assert differences(pipeline, problem) == []
    assert differences(pipeline.with_changes(capacity=(7, 7, 6)), problem) != []


@pytest.mark.parametrize(
    ("capacity", "mutant"),
    [
        (7, lambda own: (*own[1:], None)),  # one rank has no limit
        ((7, 8, 9), lambda own: own[::-1]),
        ((7, 8, 9), lambda own: own[:1] * 3),
        ((None, 8, None), lambda _: (8, 8, 8)),
        (None, lambda _: (0, 0, 0)),
    ],
)
def test_a_wrong_capacity_of_each_rank_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capacity: object, mutant: Callable[[object], object]
) -> None:
    """The capacity rule is stated twice: what makes the problem by a wrong one is found out."""
    pipeline = Pipeline(num_ranks=3, num_microbatches=2, capacity=capacity)  # type: ignore[arg-type]  # by name
    assert differences(pipeline, pipeline.problem()) == []
    right = pipeline.capacities
    monkeypatch.setattr(Pipeline, "capacities", property(lambda _: mutant(right)))
    found = differences(pipeline, problem_of(pipeline))  # not one that is kept
    assert found
    assert all(sentence.startswith("store memory of rank") for sentence in found)


@pytest.mark.parametrize("placement", [(0, 1, 1, 0), (1, 0, 1, 0), (1, 0, 0, 1)])
def test_stages_lie_where_a_placement_by_hand_puts_them(placement: tuple[int, ...]) -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=2, num_chunks=2, placement=placement)
    assert differences(pipeline, pipeline.problem()) == []
    other = pipeline.with_changes(placement=tuple(1 - rank for rank in placement))
    assert differences(other, pipeline.problem()) != []


def test_a_difference_in_one_microbatch_of_many_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One number of one row is off: told as by looking at all microbatches by name."""
    random, told = Random(5), 0
    shapes = [
        Pipeline(num_ranks=2, num_microbatches=5, latency=1),
        Pipeline(num_ranks=2, num_chunks=2, num_microbatches=4, split_backward=True),
        Pipeline(num_ranks=2, num_microbatches=4, placement="bidirectional"),
        Pipeline(num_ranks=2, num_slices=2, num_microbatches=3, message=3, bandwidth=2),
    ]
    for pipeline in shapes:
        assert len(one_of_each_kind(pipeline, pipeline.problem()) or range(9)) <= 2
        for _ in range(RANDOM):
            problem = one_number_off(pipeline.problem(), random)
            found = differences(pipeline, problem)
            with monkeypatch.context() as patched:
                patched.setattr(required, "one_of_each_kind", lambda *_: None)
                assert differences(pipeline, problem) == found
            told += bool(found)
    assert told > len(shapes) * RANDOM / 2


def one_number_off(problem: Problem, random: Random) -> Problem:
    """Some duration, lag, change of load or end of a precedence is another."""
    table, column = random.choice(
        [("duration", ""), ("edges", "lag"), ("edges", "before"), ("events", "delta")]
    )
    held = problem.duration if not column else getattr(getattr(problem, table), column)
    changed = held.copy()
    row = random.randrange(len(changed))
    changed[row] = (changed[row] + 1) % (problem.num_tasks if column == "before" else 1 << 30)
    if not column:
        return replace(problem, duration=changed)
    return replace(problem, **{table: replace(getattr(problem, table), **{column: changed})})
