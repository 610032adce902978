"""What rejects a reading about a schedule is a counterexample that the command itself shows.

The cases are those that the decision finds; their values are read off ``bubbleproof measure`` or
off the orders and starts of ``bubbleproof convert``, by code that the claims do not use. Messages
that take time and collectives have no word on the command line: there the schedule is checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bubbleproof.papers.claims import EvidenceKind, PaperClaim
from bubbleproof.papers.claims.decision import decide_reading
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.claims.standing import watched
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
Order = list[tuple[str, int]]  # (label without microbatch's slice, start) in order
Orders = Callable[[str], list[Order]]

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
    "mepipe.figure-6.bubble": lambda at, ask: idle(ask("svpp-printed", at)),
    "mepipe.figure-5.bubble": figure_5,
    "tpipe.sec4.1.peak": lambda at, ask: share(ask("tpipe", at)),
    "tpipe.sec4.1.half": lambda at, ask: peak(ask("tpipe", at)),
    "tpipe.sec4.1.double": lambda at, ask: idle(ask("tpipe", at)),
    "tpipe.appA.joint": lambda at, ask: peak(ask("tpipe", at)),
    "tpipe.appA.ratio": lambda at, ask: idle(ask("tpipe", at)),
    "tpipe.appC.quarter": lambda at, ask: share(ask("trecomp", at)),
    "tpipe.appC.time": lambda at, ask: Fraction(ask("trecomp", at)["makespan"]),
    "pipemesh.sec4A.peak": lambda at, ask: Fraction(
        ask("pipemesh-printed", at)["peak_activations"][at["r"]]
    ),
    "pipemesh.sec3B.requirement": lambda at, ask: Fraction(
        max(ask("pipemesh-printed", at)["idle_ticks"])
    ),
}


def start(orders: list[Order], label: str) -> int:
    return next(begin for order in orders for name, begin in order if name == label)


def kind_and_stage(label: str) -> tuple[str, int]:
    stage, kind, _ = re.fullmatch(r"(\d+)([FBR])(\d+)", label).groups()  # type: ignore[union-attr]  # all are
    return kind, int(stage)


def held(order: Order, stages: range) -> int:
    """The most activations of the stages at once: one from each F to its B."""
    counts, now = [0], 0
    for label, _ in order:
        kind, stage = kind_and_stage(label)
        now += (stage in stages) * {"F": 1, "B": -1, "R": 0}[kind]
        counts.append(now)
    return max(counts)


def forwards_first(order: Order) -> int:
    return [kind_and_stage(label)[0] for label, _ in order].index("B")


def next_chunk(order: Order, kind: str, p: int, chunk: int) -> int:
    """The chunk (from 1) that rank 0 turns to after the first passes of ``chunk``."""
    of_kind = [
        stage // p + 1 for k, stage in (kind_and_stage(name) for name, _ in order) if k == kind
    ]
    return next(b for a, b in pairwise(of_kind) if a == chunk and b != a)


def hops(orders: list[Order]) -> int:
    """Messages: the F and B whose neighbouring stage is on another rank."""
    home = {kind_and_stage(name)[1]: r for r, order in enumerate(orders) for name, _ in order}
    last = max(home)
    return sum(
        home[stage] != home[stage + (1 if kind == "F" else -1)]
        for order in orders
        for kind, stage in (kind_and_stage(name) for name, _ in order)
        if 0 <= stage + (1 if kind == "F" else -1) <= last
    )


def window(orders: list[Order], at: Params, kind: str) -> int:
    """Rank 0's idle ticks between chunk 2's and chunk 1's last backwards, or first forwards."""
    p, last, ticks = at["p"], at["m"] - 1, {"F": 1, "B": 2}
    pair = ("0F0", f"{p}F0") if kind == "F" else (f"{p}B{last}", f"0B{last}")
    begin, end = start(orders, pair[0]) + ticks[kind], start(orders, pair[1])
    between = [name for name, begun in orders[0] if begin <= begun < end]
    return end - begin - sum(ticks[kind_and_stage(name)[0]] for name in between)


SHOWN: dict[str, tuple[str, Callable[[Params, list[Order]], Fraction]]] = {
    "tpipe.sec2.3.skew": (
        "interleaved",
        lambda at, o: Fraction(held(o[0], range(at["p"])), held(o[0], range(at["p"], 2 * at["p"]))),
    ),
    "tpipe.appA.eq1-defined": (
        "tpipe",
        lambda at, o: Fraction(
            start(o, f"{at['p']}B{at['m'] // 2}") - start(o, f"{at['p']}F{at['m'] // 2}") - 1
        ),
    ),
    "tpipe.appA.rounds": ("tpipe", lambda _, o: Fraction(hops(o))),
    "tpipe.appD.eq6-large": ("tpipe", lambda at, o: Fraction(window(o, at, "B"), 2)),
    "tpipe.appD.eq8-large": ("tpipe", lambda at, o: Fraction(window(o, at, "F"))),
    "pipemesh.sec2A.consecutive": ("interleaved", lambda _, o: Fraction(forwards_first(o[0]))),
    "pipemesh.alg1.next-forward": (
        "pipemesh",
        lambda at, o: Fraction(next_chunk(o[0], "F", at["p"], at["k"])),
    ),
    "pipemesh.alg1.next-backward": (
        "pipemesh",
        lambda at, o: Fraction(next_chunk(o[0], "B", at["p"], at["k"])),
    ),
}

COLLECTIVES = {
    "pipemesh.eq2.windows": (1, 5),
    "pipemesh.eq3": (2, 0),
    "pipemesh.eq5": (3, 0),
    "pipemesh.sec4A.sum": (3, 0),
}
PRINTED = {"pipemesh.alg1.runs", "pipemesh.alg1.planned"}
# Four chunks' parameters of five: no word on the command line has collectives; derived by hand in
# test_claims_pipemesh.
BY_HAND = {"pipemesh.sec4A.few-chunks"}
LATE = {"pipemesh.sec4A.messages"}


def is_refuted_on_schedules(claim: PaperClaim) -> bool:
    """It has a correction, or two places of the paper differ, and its first reading is measured."""
    if claim.corrected is None and claim.against is None:
        return False
    first = claim.readings[0]
    return watched(first.measured, first.domain.points[0]) is EvidenceKind.MEASURED


def test_every_refuted_claim_about_a_schedule_is_reproduced() -> None:
    shown = [*MEASURED, *SHOWN, *COLLECTIVES, *PRINTED, *LATE, *BY_HAND]
    assert len(set(shown)) == len(shown)
    assert {n for n, claim in CLAIMS.items() if is_refuted_on_schedules(claim)} <= set(shown)


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


@pytest.mark.parametrize("name", SHOWN)
def test_the_orders_show_the_counterexample(command: Run, name: str, tmp_path: Path) -> None:
    at, expected = case(name)
    family, value = SHOWN[name]
    if name == "tpipe.sec2.3.skew":
        at = {**at, "v": 2}
    target = tmp_path / "schedule.json"
    assert command("convert", *words(family, at), target).status == 0
    orders = json.loads(target.read_text())["orders"].values()
    assert value(at, [[(label, begin) for label, begin in order] for order in orders]) == expected


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


def test_a_checked_schedule_with_messages_is_the_counterexample() -> None:
    at, expected = case("pipemesh.sec4A.messages")
    family, pipeline = plain(at)
    delayed = pipeline.with_changes(latency=at["c"])
    assert checked_makespan(family, delayed) - checked_makespan(family, pipeline) == expected
