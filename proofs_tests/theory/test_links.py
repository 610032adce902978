"""Links with bandwidth: what a message occupies, who waits for it, and that optima are optima."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from bubbleproof.formats import UnusableInput, read_problem
from bubbleproof.solvers.options import SolveOptions
from bubbleproof.solvers.result import Status
from bubbleproof.solvers.shortening.known_orders import known_orders
from bubbleproof.solvers.solving import solve
from bubbleproof.theory.families import families
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.choices import Choices
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.messages_in_programs import without_messages
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check, check_communication, check_whole
from proofs_tests.random_choices import combined
from proofs_tests.sized import sized
from proofs_tests.solvers.brute_force import brute_force
from proofs_tests.zeros import zero_or

TWO = Pipeline(num_ranks=2, num_microbatches=2, message=3, bandwidth=2, latency=1)


def starts(pipeline: Pipeline, family: str = "gpipe") -> dict[str, int]:
    problem = pipeline.problem()
    schedule = families()[family].schedule(pipeline, problem)
    assert check(problem, schedule).ok
    return dict(zip(map(str, schedule.program.actions), schedule.start.tolist(), strict=True))


def resources(problem: Problem) -> list[str]:
    return [resource.name for resource in problem.resources]


def test_a_message_occupies_its_link_and_its_consumer_waits_for_the_latency_too() -> None:
    # 3 units at 2 a tick are 2 ticks on the link; 0F0 ends at 1, so 1F0 starts at 1 + 2 + 1.
    found = starts(TWO)
    assert (found["0SEND_F0"], found["1F0"]) == (1, 4)
    # 0F1 ends at 2, but the link is busy until 3: the message comes at 3, 1F1 at 3 + 2 + 1.
    assert (found["0SEND_F1"], found["1F1"]) == (3, 6)
    # GPipe: 1B0 follows 1F1 at 7 and takes 2; its gradient goes at 9, 0B0 starts at 9 + 2 + 1.
    assert (found["1B0"], found["1SEND_B0"], found["0B0"]) == (7, 9, 12)


def test_a_half_duplex_link_carries_one_message_at_a_time() -> None:
    # 1F1B on 2 ranks: 0F1's message (from 2) meets nothing yet; slow links make the two meet.
    slow = TWO.with_changes(bandwidth=Fraction(1, 2), latency=0, num_microbatches=3)
    half, full = (starts(slow.with_changes(duplex=duplex), "1f1b") for duplex in ("half", "full"))
    takes = 6
    messages = {name: at for name, at in half.items() if "SEND" in name}
    for one, at in messages.items():
        assert all(abs(at - other) >= takes for name, other in messages.items() if name != one)
    assert max(full.values()) < max(half.values())
    assert resources(slow.problem()) == ["rank 0", "rank 1", "link 0-1"]
    assert resources(slow.with_changes(duplex="full").problem())[2:] == ["link 0>1", "link 1>0"]


def test_a_link_of_its_own_says_its_own_and_takes_the_rest_from_the_pipeline() -> None:
    slow = Link(ranks=(1, 2), latency=7, bandwidth=1)
    pipeline = Pipeline(
        num_ranks=3,
        num_microbatches=2,
        message=(3, 4, 0),
        bandwidth=2,
        latency=1,
        duplex="full",
        links=(slow,),
    )
    found = starts(pipeline)
    assert found["1F0"] == 1 + 2 + 1
    assert found["2F0"] == found["1F0"] + 1 + 4 + 7
    assert "link 1>2" in resources(pipeline.problem())


def test_evictions_share_a_half_duplex_link_with_messages() -> None:
    pipeline = families()["bpipe"](p=2, m=4).pipeline.with_changes(message=1, bandwidth=1)
    problem = pipeline.problem()
    assert resources(problem).count("link 0-1") == 1
    schedule = families()["bpipe"].schedule(pipeline, problem)
    assert check_whole(problem, schedule).ok
    full = pipeline.with_changes(duplex="full")
    assert check_whole(full.problem(), families()["bpipe"].schedule(full)).ok


def test_without_bandwidth_or_size_there_are_no_message_tasks() -> None:
    plain = Pipeline(num_ranks=3, num_microbatches=2, latency=2)
    assert plain.problem().num_tasks == plain.with_changes(message=5).problem().num_tasks
    assert plain.problem().num_tasks == plain.with_changes(bandwidth=5).problem().num_tasks
    assert plain.with_changes(message=1, bandwidth=9).problem().num_tasks == 12 + 8


def test_without_messages_ends_stay_as_far_apart() -> None:
    problem = TWO.problem()
    bare = without_messages(problem)
    assert bare.num_tasks == problem.num_tasks - 4
    assert sorted(bare.edges.lag.tolist()) == [0, 0, 0, 0, 3, 3, 3, 3]


@pytest.mark.parametrize("name", sorted(families()))
def test_every_family_runs_over_slow_links(name: str) -> None:
    chosen = families()[name]
    pipeline = chosen(p=4, m=8).pipeline.with_changes(message=2, bandwidth=1, latency=1)
    problem = pipeline.problem()
    schedule = chosen.schedule(pipeline, problem)
    assert check_whole(problem, schedule).ok
    assert check_communication(problem, lower(problem, schedule)).ok


@pytest.mark.parametrize("number", range(24))
def test_optima_over_slow_links_are_those_of_brute_force(number: int) -> None:
    random = Random(number)
    rates: list[int | Fraction] = [1, 2, Fraction(3, 2)]
    pipeline = Pipeline(
        num_ranks=2,
        num_microbatches=2,
        forward=zero_or(random, 1, 3),
        backward=zero_or(random, 1, 3),
        message=(zero_or(random, 1, 5), 0),
        bandwidth=random.choice(rates),
        latency=random.randint(0, 2),
        duplex=random.choice(["half", "full"]),
        capacity=random.choice([None, 1, 2]),
    )
    problem = pipeline.problem()
    best = brute_force(problem)
    assert best is not None
    found = solve(problem, SolveOptions(threads=1), known_orders(pipeline))
    assert (found.status, found.value, found.lower_bound) == (
        Status.OPTIMAL,
        best.makespan,
        best.makespan,
    )


def test_orders_of_any_combined_pipeline_are_completed_by_their_messages() -> None:
    tried = 0
    for number in range(sized(60, full=300)):
        given = combined(Random(number))
        plain = Choices(placement=given.placement, split_backward=given.split_backward is not False)
        pipeline = given.with_changes(choices=plain)
        for _, program in known_orders(pipeline):
            assert len(left_shift(pipeline.problem(), program).start)
            tried += 1
    assert tried > 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bandwidth": 0}, "bandwidth must be a number above 0, got 0"),
        ({"bandwidth": -1}, "bandwidth must be a number above 0, got -1"),
        ({"bandwidth": True}, "bandwidth must be a number above 0, got True"),
        ({"bandwidth": 1.5}, r"bandwidth must be a number above 0, got 1\.5"),
        ({"duplex": "both"}, "duplex must be one of half, full, got 'both'"),
        ({"message": -1}, "message must be 0 or more, got -1"),
        ({"message": (1, 2, 3)}, r"message must be one number or one per stage \(2\), got 3"),
        (
            {"links": (Link(ranks=(0, 1), latency=0, bandwidth=0),)},
            r"bandwidth of link \(0, 1\) must be a number above 0, got 0",
        ),
    ],
)
def test_links_that_cannot_be_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TWO.with_changes(**changes)


FILE = """
unit = "us"
memory_unit = "bytes"
ranks = 2
microbatches = 2
[durations]
forward = 100
backward = 200
[memory]
message = "12 MB"
[links]
latency = 5
{}
"""


def read(tmp_path: Path, *lines: str, unit: str = "us") -> Pipeline:
    path = tmp_path / "a.toml"
    path.write_text(FILE.format("\n".join(lines)).replace('"us"', f'"{unit}"'))
    return read_problem(path).pipeline


def test_a_file_gives_rates_in_words_of_the_field(tmp_path: Path) -> None:
    # 300 GB/s are 300 kB each us; 12 MB take 40 us. 200 Gbit/s are 25 GB/s.
    pipeline = read(tmp_path, 'bandwidth = "300 GB/s"', 'duplex = "full"')
    assert (pipeline.message, pipeline.bandwidth) == ((12_000_000, 12_000_000), 300_000)
    assert starts(pipeline)["1F0"] == 100 + 40 + 5
    assert read(tmp_path, 'bandwidth = "200 Gbit/s"').bandwidth == 25_000
    assert read(tmp_path, 'bandwidth = "1.5 GB/s"', unit="ns").bandwidth == Fraction(3, 2)
    assert read(tmp_path, "bandwidth = 7").bandwidth == 7
    link = read(tmp_path, "bandwidth = 7", "[[link]]", "ranks = [0, 1]", "latency = 9").links[0]
    assert (link.latency, link.bandwidth, link.duplex) == (9, None, None)


@pytest.mark.parametrize(
    ("line", "unit", "message"),
    [
        ("bandwidth = 0", "us", "links.bandwidth: expected a bandwidth above 0"),
        ('bandwidth = "0 GB/s"', "us", "links.bandwidth: expected a bandwidth above 0"),
        ('bandwidth = "300 GB"', "us", "links.bandwidth: expected a rate in one of B/s"),
        ('bandwidth = "300 GB/s"', "tick", "links.bandwidth: expected a number \\(rates need"),
        ('duplex = "two"', "us", "links.duplex: expected"),
    ],
)
def test_rates_that_are_none_are_refused(
    line: str, unit: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UnusableInput, match=message):
        read(tmp_path, line, unit=unit)
