"""What rejects a reading about a schedule is a counterexample that the command itself shows.

The cases are those that the decision finds; their values are read off ``bubbleproof measure``.
Collectives have no word on the command line: there the schedule is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from bubbleproof.papers.claims.decision import decide_reading
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.mepipe import mepipe_svpp, mepipe_table3
from bubbleproof.papers.pipemesh import pipemesh_claims
from bubbleproof.papers.tpipe import tpipe_claims
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.verify import check
from proofs_tests.commands.conftest import Run
from proofs_tests.sized import sized

Json = dict[str, Any]  # as json gives it
Measure = Callable[..., Json]

CLAIMS = {
    claim.id: claim
    for module in (
        mepipe_table3,
        mepipe_svpp,
        tpipe_claims,
        pipemesh_claims,
    )
    for claim in module.CLAIMS
}
LIMIT = 200  # cases of a reading, among which is the one that rejects it


def case(name: str) -> tuple[Params, Fraction]:
    """The smallest counterexample of a claim's first reading that fails, and what it measures."""
    findings = (decide_reading(each, limit=LIMIT) for each in CLAIMS[name].readings)
    found = next((each.counterexample for each in findings if not each.holds), None)
    assert found is not None, f"no reading of {name} is rejected"
    return found.params, found.measured


def two(first: int, total: int, count: int) -> str:
    """A sequence of one or two operations, as the command takes it."""
    assert count == 1 + (first < total)
    return str(total) if count == 1 else f"{first},{total - first}"


def words(family: str, at: Params) -> list[str]:
    """The command's words for a family at a case."""
    taken = {"p", "m", "tF", "tB"}
    taken |= (
        {"v"} if family.startswith(("interleaved", "bfs", "hanayo", "svpp", "pipemesh")) else set()
    )
    taken |= {"s", "f"} if family.startswith("svpp") else set()
    listed = [f"{name}={value}" for name, value in at.items() if name in taken]
    if family.startswith("pipemesh"):
        listed += [f"e={two(at['e'], at['m'], at['R'])}", f"d={two(at['d'], at['m'], at['S'])}"]
    return [family, *listed]


def idle(answer: Json) -> Fraction:
    return Fraction(answer["idle_ratio"])


def share(answer: Json) -> Fraction:
    return max(map(Fraction, answer["peak_fraction"]))


def peak(answer: Json) -> Fraction:
    return Fraction(max(answer["peak_activations"]))


def figure_5(at: Params, measure: Measure) -> Fraction:
    least = idle(measure("svpp-filled", at, f=at["v"] * at["s"]))
    return least / idle(measure("svpp-filled", at))


MEASURED: dict[str, Callable[[Params, Measure], Fraction]] = {
    "mepipe.table3.vpp.memory-many": lambda at, ask: share(ask("interleaved", at)),
    "mepipe.table3.hanayo.bubble-many": lambda at, ask: idle(ask("hanayo", at)),
    "mepipe.table3.hanayo.bubble-few": lambda at, ask: idle(ask("hanayo", at)),
    "mepipe.table3.svpp.bubble-many": lambda at, ask: idle(ask("svpp-printed", at)),
    "mepipe.table3.svpp.bubble-few": lambda at, ask: idle(ask("svpp-printed", at)),
    "mepipe.figure-5.bubble": figure_5,
    "tpipe.sec4.1.peak": lambda at, ask: share(ask("tpipe", at)),
    "tpipe.sec4.1.half": lambda at, ask: peak(ask("tpipe", at)),
    "tpipe.sec4.1.double": lambda at, ask: idle(ask("tpipe", at)),
    "tpipe.appA.joint": lambda at, ask: peak(ask("tpipe", at)),
    "tpipe.appC.quarter": lambda at, ask: share(ask("trecomp", at)),
    "pipemesh.sec3B.requirement": lambda at, ask: Fraction(max(ask("pipemesh", at)["idle_ticks"])),
}


COLLECTIVES = {
    "pipemesh.eq2.windows": (1, 5),
    "pipemesh.eq3": (2, 0),
}
PRINTED = {"pipemesh.alg1.runs", "pipemesh.alg1.planned"}


def test_every_refuted_claim_is_reproduced() -> None:
    shown = [*MEASURED, *COLLECTIVES, *PRINTED]
    assert len(set(shown)) == len(shown)
    assert {name for name, claim in CLAIMS.items() if claim.corrected or claim.against} <= set(
        shown
    )


LONG = {
    "mepipe.table3.hanayo.bubble-many",
    "pipemesh.eq3",
}  # to decide; they have a shorter sibling


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name", sized([n for n in MEASURED if n not in LONG][::4], full=[*MEASURED])
)
def test_measure_shows_the_counterexample(command: Run, name: str) -> None:
    at, expected = case(name)

    def measure(family: str, at: Params, **changed: int) -> Json:
        answer = command("measure", *words(family, {**at, **changed}), "--json")
        assert answer.status == 0, answer.err
        found: Json = json.loads(answer.out)
        return found

    assert MEASURED[name](at, measure) == expected


def test_algorithm_1_as_printed_does_not_end(command: Run) -> None:
    at, expected = case("pipemesh.alg1.runs")
    assert expected == 0
    # Two enqueues of 2 and a dequeue of 4, at B = 2P and M = 2: it waits for a queue of four.
    assert at == {"p": 2, "v": 2, "m": 4, "e": 2, "R": 2, "d": 4, "S": 1}
    # 2(P-1) = 4 forwards are asked for at P = B = 3 and M = 1, where there are 3.
    few = {"p": 3, "v": 1, "m": 3, "e": 3, "R": 1, "d": 3, "S": 1}
    # What section IV-B makes of q = 3 and C_DP = 7, C_bwd = 2: e = (3, 3), d = (2, 4).
    plan = {"p": 2, "v": 2, "m": 6, "e": 3, "R": 2, "d": 2, "S": 2}
    short = "Algorithm 1 warms up with 4 forwards of 3"
    for params, message in ((few, short), (at, "deadlock"), (plan, "deadlock")):
        answer = command("measure", *words("pipemesh-printed", params))
        assert answer.status == 2
        assert answer.err.startswith(f"bubbleproof: {message}")
        assert command("measure", *words("pipemesh", params)).status == 0


def plain(at: Params) -> tuple[PipeMesh, Pipeline]:
    e, d = (
        tuple(map(int, two(at[first], at["m"], at[count]).split(",")))
        for first, count in (("e", "R"), ("d", "S"))
    )
    family = PipeMesh(e, d)
    params = FamilyParameters(
        p=at["p"], m=at["m"], v=at["v"], tF=at.get("tF", 1), tB=at.get("tB", 2)
    )
    return family, family.pipeline(params)


def checked_makespan(family: PipeMesh, pipeline: Pipeline) -> int:
    """The end of the last task of any kind, of a schedule that passes every rule."""
    problem = pipeline.problem()
    schedule = family.schedule(pipeline, problem)
    assert check(problem, schedule).ok
    ticks = problem.duration[problem.locate(schedule.program.actions)]
    return int((schedule.start + ticks).max())


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name", sized([n for n in COLLECTIVES if n not in LONG][:1], full=[*COLLECTIVES])
)
def test_a_checked_schedule_with_collectives_is_the_counterexample(name: str) -> None:
    at, expected = case(name)
    zero, more = COLLECTIVES[name]
    family, pipeline = plain(at)
    sharding = Sharding(zero=zero, gather=at["C"], reduce=at["C"] + more)
    sharded = family.sharded(pipeline, sharding)
    late = checked_makespan(family, sharded) - checked_makespan(family, pipeline)
    assert late == expected
