"""Why ranks stand still: the sweep in a small form, its page, and cases by hand."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bubbleproof.formats import infer_pipeline, read_table
from bubbleproof.formats.flight_recorder import read_dumps
from bubbleproof.theory.families import member
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.verify import compute_part
from bubbleproof.verify.communication.called_actions import CalledActions
from bubbleproof.verify.communication.hang_finding import why_it_hangs
from bubbleproof.verify.communication.hang_words import HangFinding, HangKind
from bubbleproof.verify.communication.recorded_calls import RecordedRun
from proofs_tests.sized import sized
from proofs_tests.verify.hangs import HangCounts, main, sweep
from proofs_tests.verify.recorder_dumps import dump_of, entries_of, write_dumps
from proofs_tests.verify.standing_runs import StandingRun, rows_of
from proofs_tests.verify.token_simulator import Wiring

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "measured" / "hangs.md"
TABLE = ROOT / "examples" / "ci" / "just-in-time.csv"
DUMPS = ROOT / "examples" / "ci" / "hang"
TOTAL = sized(9, full=1_000)


@pytest.mark.sweep
def test_each_hang_is_found_with_the_right_cell() -> None:
    counts = sweep(TOTAL)
    assert counts.wrong == []
    decided = ("MISMATCH", "NEVER_ISSUED", "COMMUNICATOR", "CYCLE")
    assert sum(counts.answers["with the schedule", kind] for kind in decided) == TOTAL
    assert counts.answers["with the schedule", "NONE"] == counts.quiet > 0


def other_cell(run: RecordedRun, actions: CalledActions | None) -> HangFinding:
    """The judge, but each cell is of the call before."""
    found = why_it_hangs(run, actions)
    cells = tuple(
        replace(cell, call=run.call((cell.rank, max(0, cell.call.number - 1))))
        if cell.call
        else cell
        for cell in found.cells
    )
    return replace(found, cells=cells)


def never_a_hang(run: RecordedRun, actions: CalledActions | None) -> HangFinding:
    return replace(why_it_hangs(run, actions), kind=HangKind.NONE)


def reversed_waits(run: RecordedRun, actions: CalledActions | None) -> HangFinding:
    found = why_it_hangs(run, actions)
    return replace(found, nodes=found.nodes[::-1])


@pytest.mark.parametrize("judge", [other_cell, never_a_hang, reversed_waits])
def test_a_judge_that_is_wrong_is_found_out(judge: object) -> None:
    assert sweep(sized(5, full=12), judge=judge).wrong  # type: ignore[arg-type]  # one of the three


def test_the_command_ends_with_0_and_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    assert main(["--hangs", "3", "--write", str(page)]) == 0
    assert "3 hangs and " in page.read_text("utf-8")
    page.unlink()
    wrong = HangCounts(hangs=1, wrong=["a hang"])
    monkeypatch.setattr("proofs_tests.verify.hangs.sweep", lambda *_, **__: wrong)
    assert main(["--hangs", "1", "--write", str(page)]) == 1
    assert not page.exists()


def test_the_page_counts_enough() -> None:
    text = PAGE.read_text("utf-8")
    assert re.search(r"^1000 hangs and \d+ runs to the end: 0 wrong answers$", text, re.M)


def just_in_time() -> tuple[StandingRun, Wiring]:
    """The table of the examples, which hangs where a pair of ranks has one stream."""
    table = read_table(TABLE)
    problem = infer_pipeline(compute_part(table.program)).problem()
    wiring = Wiring.of(problem)
    rows = rows_of(wiring, table.program.orders(problem.num_ranks))
    return StandingRun(rows, "pair-stream"), wiring


def test_the_dumps_of_the_examples_are_of_the_table_there() -> None:
    run, _ = just_in_time()
    for rank in range(2):
        made = dump_of(entries_of(run, rank, timing=False), 2)
        text = (DUMPS / f"nccl_trace_rank_{rank}.json").read_text("utf-8")
        assert json.loads(text) == json.loads(json.dumps(made))


def test_the_last_calls_alone_give_no_more_than_a_guess(tmp_path: Path) -> None:
    run, _ = just_in_time()
    recorded = read_dumps(write_dumps(run, tmp_path, Random(0), last=2))
    assert recorded.lost == [0, 1]
    found = why_it_hangs(recorded)
    assert not found.is_decided
    assert found.kind is HangKind.PERHAPS


def test_a_schedule_without_messages_names_the_actions_too(tmp_path: Path) -> None:
    run, _ = just_in_time()
    recorded = read_dumps(write_dumps(run, tmp_path, Random(0)))
    made = member("1f1b", p=2, m=2)
    actions = CalledActions(
        made.problem, lower(made.problem, made.schedule), recorded, has_own_order=False
    )
    found = why_it_hangs(recorded, actions)
    assert found.kind is HangKind.CYCLE
    # By hand: rank 0 F0 F1 (SEND_F1 issued) waits for B0; rank 1 F0 B0 (SEND_B0 issued), then F1.
    names = {(cell.rank, str(cell.action)) for cell in found.cells}
    assert names == {(0, "0SEND_F1"), (0, "0RECV_B0"), (1, "1RECV_F1"), (1, "1SEND_B0")}


def test_a_rank_that_departs_from_its_program_is_named(tmp_path: Path) -> None:
    made = member("1f1b", p=2, m=2)
    program = lower(made.problem, made.schedule)
    orders = program.orders(2)
    position = [str(action) for action in orders[0]].index("0SEND_F1")
    del orders[0][position]
    run = StandingRun(rows_of(Wiring.of(made.problem), orders), "pair-stream")
    recorded = read_dumps(write_dumps(run, tmp_path, Random(0)))
    found = why_it_hangs(recorded, CalledActions(made.problem, program, recorded))
    assert found.is_decided
    assert (found.cells[0].rank, str(found.cells[0].action)) == (0, "0SEND_F1")
    assert "departs" in found.sentence


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["1f1b", "gpipe", "zb-h1", "interleaved"])
def test_every_rank_that_waits_for_a_missing_one_is_named(name: str, tmp_path: Path) -> None:
    """Ranks die at some row of theirs and leave no dump; the others stand where they wait."""
    random, told = Random(name), 0
    for number in range(sized(20, full=200)):
        found = member(name, p=4, m=4)
        wiring = Wiring.of(found.problem)
        orders = lower(found.problem, found.schedule).orders(4)
        dead = random.sample(range(4), random.choice((1, 1, 2)))
        rows = rows_of(wiring, orders)
        for rank in dead:
            del rows[rank][random.randrange(len(rows[rank])) :]
        run = StandingRun(rows, "buffered")
        folder = tmp_path / str(number)
        folder.mkdir()
        write_dumps(run, folder, random, without=frozenset(dead))
        waiting = {
            rank
            for rank in {*range(4)} - {*dead}
            if any(row.peer in dead and not row.is_ended for row in run.issued[rank])
        }
        if waiting:
            judged = why_it_hangs(read_dumps([folder]))
            assert judged.kind is HangKind.UNKNOWN
            assert {cell.rank for cell in judged.cells if cell.call is not None} == waiting
            assert {cell.rank for cell in judged.cells if cell.call is None} <= {*dead}
            told += len(waiting) > 1
    assert told
