"""``solve``: statuses, reasons, options, progress, seeds, and the example problems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bubbleproof.formats import read_problem
from bubbleproof.formats.clusters.cluster_toml import is_cluster_file
from bubbleproof.solvers import (
    ENGINES,
    OBJECTIVES,
    ProofOrigin,
    SolveOptions,
    Status,
    bound_search,
    search,
    solve,
)
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.lists.greedy import greedy_programs
from bubbleproof.solvers.lists.modulo_lists import ModuloLists
from bubbleproof.theory.families import family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check
from bubbleproof.verify.candidates.certified_distance import check_certificate
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sampled, sized
from proofs_tests.solvers.small import V_SHAPE

EXAMPLES = Path(__file__).parents[2] / "examples"

# Eight ranks, latency 1, caps of 1F1B: the bound says 166, schedules take 172.
HARD = Pipeline(
    num_ranks=8, num_microbatches=16, forward=2, backward=4, latency=1, capacity=8
).problem()
# A V shape in which list scheduling that is not careful gets stuck.
STUCK = V_SHAPE.with_changes(capacity=5).problem()
# Enough tasks for windows.
IN_WINDOWS = Pipeline(
    num_ranks=6, num_microbatches=36, forward=20, backward=40, latency=5, capacity=4
).problem()
EASY = Pipeline(num_ranks=2, num_microbatches=4).problem()
FEW = sized(0.05, full=0.5)  # work that decides none of them
LIMITED = SolveOptions(work=FEW, time_limit=PATIENCE)


def test_optimal_comes_with_a_certificate_that_meets_the_makespan() -> None:
    result = solve(EASY)
    # 1F1B: (m + p - 1)(tF + tB) = 5 * 3.
    assert (result.status, result.makespan, result.gap) == (Status.OPTIMAL, 15, 0)
    assert result.certificate is not None
    assert result.certificate.bound == result.lower_bound == 15
    assert check_certificate(EASY, result.certificate).ok


def test_the_engines_word_is_kept_apart_from_the_checked_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 78 is the one-machine bound, 80 the optimum (two engines, measured elsewhere).
    pipeline = Pipeline(
        num_ranks=4, num_microbatches=8, forward=2, backward=4, latency=1, capacity=4
    )
    monkeypatch.setattr(search, "NARROWING", 0)
    monkeypatch.setattr(bound_search, "CERTIFYING", 0)
    result = solve(pipeline.problem())
    assert (result.status, result.makespan, result.lower_bound) == (Status.OPTIMAL, 80, 78)
    assert (result.engine_bound, result.proof, result.origin) == (80, ProofOrigin.ENGINE, "cpsat")
    monkeypatch.undo()
    result = solve(pipeline.problem())
    assert (result.makespan, result.lower_bound, result.proof) == (80, 80, ProofOrigin.CERTIFICATE)


def test_a_base_load_above_the_capacity_is_infeasible() -> None:
    problem = Pipeline(num_ranks=2, num_microbatches=2, static=(7, 0), capacity=6).problem()
    result = solve(problem)
    assert (result.status, result.schedule) == (Status.INFEASIBLE, None)
    assert result.reason == ("memory of rank 0: its base load 7 exceeds its capacity 6 activation")


def test_room_for_less_than_one_activation_is_infeasible() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=2, static=4, activation=3, capacity=6)
    result = solve(pipeline.problem())
    assert (result.status, result.makespan, result.gap) == (Status.INFEASIBLE, None, None)
    assert result.reason == (
        "memory of rank 0: 0F0 needs 3 beside the base load 4, but the capacity is 6 activation"
    )
    assert solve(pipeline.with_changes(capacity=7).problem()).status is Status.OPTIMAL


@pytest.mark.parametrize("engine", ["auto", "sat", "z3"])
def test_an_activation_held_by_tasks_of_no_ticks_needs_room_as_well(engine: str) -> None:
    # F and W take nothing, but I, a tick long, runs between them: 4 are held beside 1, of 2.
    pipeline = Pipeline(
        num_ranks=3,
        num_microbatches=2,
        split_backward=True,
        forward=0,
        weight_backward=0,
        activation=(2, 4, 2),
        static=1,
        capacity=(5, 2, 8),
    )
    options = SolveOptions(engine=engine, time_limit=PATIENCE, threads=1)
    result = solve(pipeline.problem(), options)
    assert (result.status, result.proof) == (Status.INFEASIBLE, ProofOrigin.ARGUMENT)
    assert result.reason == (
        "memory of rank 1: 1F0 needs 4 beside the base load 1, but the capacity is 2 activation"
    )
    roomy = solve(pipeline.with_changes(capacity=(5, 5, 8)).problem(), options)
    assert roomy.status is Status.OPTIMAL


def test_a_microbatch_whose_chunks_do_not_fit_together_is_infeasible() -> None:
    # One rank, two chunks: when 1F0 starts, 0F0 is kept for 0B0, so room for one never suffices;
    # neither stage alone needs more.
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, num_chunks=2, capacity=1)
    result = solve(pipeline.problem())
    assert (result.status, result.proof) == (Status.INFEASIBLE, ProofOrigin.ARGUMENT)
    assert result.reason == (
        "memory of rank 0: 0F0 and 1F0 need at once 2 beside the base load 0, but the capacity is "
        "1 activation"
    )
    # Microbatches that differ are looked at one by one.
    late = pipeline.problem()
    late = replace(late, duration=late.duration + (late.actions.microbatch == 1))
    assert "0F0 and 1F0 need at once 2" in solve(late).reason
    assert solve(pipeline.with_changes(capacity=2).problem()).status is Status.OPTIMAL


def test_what_only_search_refutes_is_infeasible_and_says_so() -> None:
    # One rank, two chunks, room for three: with both 1F before both 1B all four are kept at once.
    problem = Pipeline(num_ranks=1, num_microbatches=2, num_chunks=2, capacity=3).problem()
    pairs = (("1F1", "1B0"), ("1F0", "1B1"))
    demands = Demands(orders=tuple((problem.task(a), problem.task(b)) for a, b in pairs))
    result = solve(problem, demands=demands)
    assert result.status is Status.INFEASIBLE
    assert result.reason == "cpsat refuted every schedule (not certified)"
    assert result.proof is ProofOrigin.ENGINE


def test_running_out_of_time_is_feasible_or_unknown_but_never_infeasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = solve(HARD, SolveOptions(time_limit=1e-6))
    assert known.status is Status.FEASIBLE
    assert known.makespan is not None
    assert known.makespan > known.lower_bound
    assert solve(STUCK, SolveOptions(time_limit=1e-6)).status is Status.FEASIBLE
    monkeypatch.setattr(search, "listed_programs", lambda *_: iter(()))
    monkeypatch.setattr(ModuloLists, "turns", lambda _: iter(()))
    unknown = solve(STUCK, SolveOptions(time_limit=1e-6))
    assert (unknown.status, unknown.schedule, unknown.reason) == (Status.UNKNOWN, None, "")
    assert unknown.lower_bound > 0


def test_where_one_microbatch_fits_there_is_always_a_schedule() -> None:
    for pipeline in (
        # 5,120 tasks; the first p - 12 ranks hold less than 1F1B needs.
        Pipeline(num_ranks=16, num_microbatches=160, forward=2, backward=4, latency=1, capacity=12),
        # The least that V shapes of two and four chunks take: one microbatch at a time.
        Pipeline(num_ranks=4, num_microbatches=9, num_chunks=2, placement="wave", capacity=2),
        Pipeline(num_ranks=4, num_microbatches=9, num_chunks=4, placement="wave", capacity=4),
        Pipeline(num_ranks=4, num_microbatches=9, num_chunks=3, split_backward=True, capacity=4),
    ):
        problem = pipeline.problem()
        found = [
            left_shift(problem, program)
            for program in greedy_programs(problem, lower_bounds(problem), most_tasks=1)
        ]
        assert len(found) == 1
        assert check(problem, found[0]).ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "magic"}, f"engine must be one of auto {' '.join(ENGINES)}, got 'magic'"),
        ({"objective": "beauty"}, f"objective must be one of {' '.join(OBJECTIVES)}, got 'beauty'"),
        ({"within": -1}, "within must be 0 ticks or more, got -1"),
        ({"time_limit": 0.0}, "time limit must be above 0 seconds, got 0.0"),
        ({"time_limit": float("nan")}, "time limit must be above 0 seconds, got nan"),
        ({"work": 0.0}, "work must be above 0 units, got 0.0"),
        ({"work": 1, "engine": "z3"}, "work is counted by engine auto cpsat sat, got 'z3'"),
        ({"seed": -1}, "seed must be 0 to 2\\*\\*31 - 1, got -1"),
        ({"seed": 1 << 31}, "seed must be 0 to 2\\*\\*31 - 1, got 2147483648"),
        ({"threads": 0}, "threads must be 1 or more, got 0"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        SolveOptions(**options)  # type: ignore[arg-type]  # wrong values on purpose


def test_progress_falls_to_the_result_while_bound_and_clock_rise() -> None:
    seen: list[tuple[str, int | None, int, float]] = []
    result = solve(HARD, SolveOptions(progress=lambda *news: seen.append(news)))
    assert seen[0][:2] == ("bounds", None)
    assert {"bounds", "greedy", "propagation"} <= {who for who, *_ in seen}
    lengths = [makespan for _, makespan, _, _ in seen if makespan is not None]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == result.makespan
    for column in (2, 3):
        values = [news[column] for news in seen]
        assert values == sorted(values)  # type: ignore[type-var]  # ints, or floats


def test_published_orders_are_starting_points_and_misfits_are_passed_over() -> None:
    pipeline = Pipeline(num_ranks=2, num_microbatches=4)
    published = family("1f1b").schedule(pipeline, EASY).program
    foreign = Program.from_orders([["0F9"]])
    deadlock = Program.from_orders(
        [[f"0B{j}" for j in range(4)] + [f"0F{j}" for j in range(4)], list(_rank_one())]
    )
    result = solve(EASY, starts=[("foreign", foreign), ("dead", deadlock), ("1f1b", published)])
    assert (result.status, result.origin) == (Status.OPTIMAL, "1f1b")
    tight = pipeline.with_changes(capacity=1)
    result = solve(tight.problem(), starts=[("1f1b", published)])
    assert result.origin == "greedy"
    # One at a time: m * (tF + tF + tB + tB) = 4 * 6.
    assert result.makespan == 24


def _rank_one() -> list[str]:
    return [action for j in range(4) for action in (f"1F{j}", f"1B{j}")]


def test_a_wave_of_few_tasks_is_also_looked_at_from_nothing() -> None:
    """A plain CP-SAT model proves 47 optimal; near a known 49 an engine finds nothing."""
    wave = Pipeline(
        num_ranks=6,
        num_microbatches=7,
        num_chunks=2,
        placement="wave",
        split_backward=True,
        capacity=12,
    )
    found = solve(wave.problem(), SolveOptions(work=3.0, threads=2, time_limit=PATIENCE))
    assert (found.status, found.makespan) == (Status.OPTIMAL, 47)


def test_one_seed_gives_one_schedule_and_all_seeds_one_optimum() -> None:
    runs = [solve(HARD, SolveOptions(seed=seed, threads=1)) for seed in (1, 1, 7)]
    assert {run.makespan for run in runs} == {172}
    first, again = runs[0].schedule, runs[1].schedule
    assert first is not None
    assert again is not None
    assert np.array_equal(first.start, again.start)
    assert np.array_equal(first.program.actions.keys(), again.program.actions.keys())


@pytest.mark.parametrize(
    ("problem", "options"),
    sampled(
        [
            pytest.param(HARD, LIMITED, id="auto"),
            pytest.param(HARD, replace(LIMITED, engine="cpsat", work=0.8), id="cpsat"),
            pytest.param(HARD, replace(LIMITED, objective="makespan-then-peak"), id="then peak"),
            pytest.param(IN_WINDOWS, replace(LIMITED, work=2 * FEW), id="windows"),
        ],
        every=2,
    ),
)
def test_limited_work_gives_the_same_answer_each_time(
    problem: Problem, options: SolveOptions
) -> None:
    once, again = (solve(problem, options) for _ in range(2))
    answers = [(r.status, r.value, r.lower_bound, r.engine_bound, r.work) for r in (once, again)]
    assert answers[0] == answers[1]
    assert once.schedule is not None
    assert again.schedule is not None
    assert np.array_equal(once.schedule.start, again.schedule.start)


@pytest.mark.parametrize(
    ("options", "ended"),
    [
        (SolveOptions(work=0.01, time_limit=PATIENCE), "the limit of work ended the search: "),
        (
            SolveOptions(work=PATIENCE, time_limit=1e-9),
            "the clock ended the search before its ",
        ),
        (SolveOptions(time_limit=1e-9), ""),
    ],
    ids=["work", "clock beside work", "clock alone"],
)
def test_the_answer_says_which_of_two_limits_ended_it(options: SolveOptions, ended: str) -> None:
    result = solve(HARD, options)
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert result.reason.startswith(ended)
    assert bool(result.reason) is bool(ended)


PIPELINES = [path for path in sorted(EXAMPLES.glob("*/*.toml")) if not is_cluster_file(path)]


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_the_examples_are_solved_to_optimality(path: Path) -> None:
    problem = read_problem(path).pipeline.problem()
    result = solve(problem)
    assert result.status is Status.OPTIMAL
    assert result.schedule is not None
    assert result.certificate is not None
    assert check(problem, result.schedule).ok
    assert check_certificate(problem, result.certificate).ok
    assert result.makespan == result.certificate.bound
