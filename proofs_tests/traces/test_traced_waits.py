"""Times by cause, clocks and stragglers, found again in runs whose truth is known."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.traces.clock_offsets import Passage, clock_offsets
from bubbleproof.traces.stragglers import FACTOR, stragglers
from bubbleproof.traces.trace_spans import read_trace
from bubbleproof.traces.traced_report import as_it_ran
from bubbleproof.traces.traced_steps import traced_job
from bubbleproof.traces.traced_waits import StepTimes, TimeSpent, TracedTimes, traced_times
from proofs_tests.judged import accepted
from proofs_tests.traces.made_traces import Lasting, MadeRun

CASES = [
    ("interleaved", {"p": 3, "m": 6, "v": 2}),
    ("zb-h1", {"p": 4, "m": 6}),
    ("1f1b", {"p": 2, "m": 3}),
]


def noisy(seed: int) -> Lasting:
    """Between 0.8 and 1.6 ms, another for each action."""
    draw = random.Random(seed)
    return lambda _action, _step: draw.randrange(800_000, 1_600_000)


def slow(kind: Kind, stage: int, factor: float) -> Lasting:
    """1 ms, ``factor`` times that in one stage and kind."""

    def lasting(action: Action, _step: int) -> int:
        is_slow = (action.kind, action.stage) == (kind, stage)
        return round(1_000_000 * (factor if is_slow else 1))

    return lasting


def read(run: MadeRun, folder: Path, shifts: dict[int, int] | None = None) -> TracedTimes:
    return traced_times(traced_job([read_trace(p) for p in run.write(folder, shifts)]))


def found_waits(step: StepTimes) -> Iterator[tuple[Action, dict[TimeSpent, tuple[int, int]]]]:
    """Begin and end of wait, flight and work of each computation."""
    by_action: dict[Action, dict[TimeSpent, tuple[int, int]]] = {}
    for stretches in step.ranks:
        for each in stretches:
            if each.action is not None:
                by_action.setdefault(each.action, {})[each.spent] = each.begin, each.end
    yield from by_action.items()


@pytest.mark.parametrize(("name", "params"), CASES)
@pytest.mark.parametrize("receipts", [True, False])
def test_every_nanosecond_has_the_cause_that_it_had(
    name: str, params: dict[str, int], receipts: bool, tmp_path: Path
) -> None:
    # Without receipts a wait ends with the SEND, so what was flight counts as work.
    run = MadeRun(name=name, params=params, lasting=noisy(1), receipts=receipts).run()
    times = read(run, tmp_path)
    assert len(times.steps) == run.steps
    origin = 1_790_000_000_000_000_000
    for number, step in enumerate(times.steps):
        for rank in range(times.job.num_ranks):
            assert sum(step.spent(rank).values()) == step.length
            edges = [(each.begin, each.end) for each in step.ranks[rank]]
            assert all(a[1] == b[0] for a, b in pairwise(edges))
            assert (edges[0][0], edges[-1][1]) == (step.begin, step.end)
        for action, parts in found_waits(step):
            if (number, action) not in run.waits:
                continue
            begin, sent, work, end = (each + origin for each in run.waits[number, action])
            there = work if receipts else max(begin, sent)
            late = max(begin, sent)
            expected = {TimeSpent.WORK: (there, end)}
            if late > begin:
                expected[TimeSpent.MESSAGE] = begin, late
            if there > late:
                expected[TimeSpent.LINK] = late, there
            assert parts == expected, (number, str(action))


def test_idle_sums_to_that_of_the_schedule_as_it_ran(tmp_path: Path) -> None:
    run = MadeRun(name="zb-h1", params={"p": 3, "m": 4}, lasting=noisy(2)).run()
    times = read(run, tmp_path)
    problem, schedule = as_it_ran(times)
    measured = accepted(problem, schedule)
    step = times.median_step()
    beyond = step.length - measured.makespan  # before the first work and after the last
    for rank, idle in enumerate(measured.idle_ticks):
        spent = step.spent(rank)
        assert idle + beyond == step.length - spent[TimeSpent.WORK]


def test_waits_are_followed_to_the_stage_that_is_slow(tmp_path: Path) -> None:
    run = MadeRun(name="1f1b", params={"p": 4, "m": 8}, lasting=slow(Kind.F, 1, 4)).run()
    times = read(run, tmp_path)
    (rank, what), longest = times.median_step().roots().most_common(1)[0]
    assert (rank, what) == (1, "1F")
    assert longest > sum(times.median_step().roots().values()) / 2


@pytest.mark.parametrize(
    ("name", "params", "kinds"),
    [
        ("1f1b", {"p": 4, "m": 8}, (Kind.F, Kind.B)),
        ("zb-h1", {"p": 4, "m": 8}, (Kind.F, Kind.I, Kind.W)),
    ],
)
def test_a_straggler_is_named_in_each_stage_and_kind(
    name: str, params: dict[str, int], kinds: tuple[Kind, ...], tmp_path: Path
) -> None:
    for kind in kinds:
        for stage in range(params["p"]):
            run = MadeRun(name=name, params=params, lasting=slow(kind, stage, 2), steps=2).run()
            found = stragglers(read(run, tmp_path))
            assert [(each.stage, each.kind) for each in found] == [(stage, kind)]


@pytest.mark.parametrize("factor", [1.0, FACTOR])
def test_none_is_named_at_or_below_the_threshold(factor: float, tmp_path: Path) -> None:
    run = MadeRun(name="1f1b", params={"p": 4, "m": 8}, lasting=slow(Kind.F, 2, factor)).run()
    assert stragglers(read(run, tmp_path)) == []


def test_none_is_named_for_what_costs_little_of_a_step(tmp_path: Path) -> None:
    # W of stage 1 takes ten times as long as the others', 0.1 ms of 8 ms each.
    def lasting(action: Action, _step: int) -> int:
        if action.kind is Kind.W:
            return 100_000 if action.stage == 1 else 10_000
        return 4_000_000

    run = MadeRun(name="zb-h1", params={"p": 4, "m": 8}, lasting=lasting).run()
    assert stragglers(read(run, tmp_path)) == []


def test_unequal_stages_of_a_schedule_are_no_stragglers(tmp_path: Path) -> None:
    run = MadeRun(name="1f1b", params={"p": 4, "m": 8}, lasting=slow(Kind.F, 3, 3)).run()
    times = read(run, tmp_path)
    assert [str(each)[:7] for each in stragglers(times)] == ["stage 3"]
    assert stragglers(times, {(3, Kind.F): 3.0}) == []


def test_one_slow_microbatch_is_no_straggler(tmp_path: Path) -> None:
    def lasting(action: Action, _step: int) -> int:
        return 50_000_000 if (action.stage, action.microbatch) == (1, 0) else 1_000_000

    run = MadeRun(name="1f1b", params={"p": 4, "m": 8}, lasting=lasting).run()
    assert stragglers(read(run, tmp_path)) == []


@pytest.mark.parametrize("shift", [-20_000_000, 3_000_000, 90_000_000_000])
def test_clocks_that_differ_are_moved_together(shift: int, tmp_path: Path) -> None:
    run = MadeRun(name="1f1b", params={"p": 3, "m": 6}, lasting=noisy(3)).run()
    times = read(run, tmp_path, {1: shift})
    error = times.clocks.offsets[1] - shift
    assert abs(error) <= times.clocks.uncertainty
    assert abs(times.clocks.offsets[2]) <= times.clocks.uncertainty


def test_offsets_lie_between_what_messages_allow() -> None:
    # Rank 1 is 100 ahead: what 0 sends at 0 is there at 105 of its clock, what it sends at 200
    # (100 of rank 0's) is there at 103. So its offset is from 97 to 105.
    found = clock_offsets(
        2,
        [
            Passage(source=0, target=1, sent=0, there=105),
            Passage(source=1, target=0, sent=200, there=103),
        ],
    )
    assert found.offsets == (0, 101)
    assert found.uncertainty == 4


def test_clocks_that_no_offset_explains_are_refused() -> None:
    passages = [
        Passage(source=0, target=1, sent=100, there=90),
        Passage(source=1, target=0, sent=50, there=55),
    ]
    with pytest.raises(UnusableInput, match="would have had messages"):
        clock_offsets(2, passages)


def test_a_send_that_is_tried_again_is_one_span(tmp_path: Path) -> None:
    """Also the last of a step, which the next step could be taken to begin with."""
    run = MadeRun(
        name="1f1b",
        params={"p": 3, "m": 4},
        lasting=noisy(4),
        retried=lambda action, _step: action.kind in (Kind.SEND_F, Kind.SEND_B),
    ).run()
    job = traced_job([read_trace(path) for path in run.write(tmp_path)])
    plain = MadeRun(name="1f1b", params={"p": 3, "m": 4}, lasting=noisy(4)).run()
    whole = traced_job([read_trace(path) for path in plain.write(tmp_path)])
    assert job.steps == whole.steps
    assert not job.left_out


def test_a_step_that_one_rank_lacks_is_left_out_of_all(tmp_path: Path) -> None:
    """Rank 1 lost a span of the second step of three: the first and the third remain, in pairs."""
    run = MadeRun(name="1f1b", params={"p": 2, "m": 2}, lasting=noisy(5)).run()
    whole = traced_job([read_trace(path) for path in run.write(tmp_path)])
    lost = [row for row in run.spans[1] if row[0] == "PP:1F1"][1]
    run.spans[1].remove(lost)
    job = traced_job([read_trace(path) for path in run.write(tmp_path)])
    assert job.steps == [whole.steps[0], whole.steps[2]]
    assert list(job.left_out) == ["rank 1: 1 of 3 steps, which lack actions"]


def test_hosts_of_one_name_share_a_clock_unless_messages_exclude_it(tmp_path: Path) -> None:
    """Without receipts messages alone leave clocks open; one clock leaves nothing."""
    run = MadeRun(name="1f1b", params={"p": 2, "m": 2}, lasting=noisy(6), receipts=False).run()
    assert read(run, tmp_path).clocks.uncertainty == 0
    for rank, shift in ((0, 0), (1, 10**9)):  # a second apart, and nobody says so
        content = json.dumps(run.content(rank, shift=shift))
        (tmp_path / f"rank{rank}.json").write_text(content, encoding="utf-8")
    job = traced_job([read_trace(str(path)) for path in sorted(tmp_path.iterdir())])
    clocks = traced_times(job).clocks
    assert clocks.uncertainty > 0
    assert abs(clocks.offsets[1] - 10**9) <= clocks.uncertainty
