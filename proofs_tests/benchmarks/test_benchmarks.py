"""The benchmark programs run at reduced sizes, and the page's facts come out again at p <= 3.

One module, because importing torch takes seconds.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

pytest.importorskip("torch.distributed.pipelining.schedules", reason="torch is not installed")

import torch
from torch.distributed import pipelining
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

from benchmarks import pytorch_tables, verify_speed
from benchmarks.findings import ScheduleSurvey
from benchmarks.pytorch_tables import run
from benchmarks.speed_ours import measure_check
from benchmarks.survey import CROSSED, SEMANTICS, survey_all
from benchmarks.tables_page import PYTORCH_OWN, examples
from benchmarks.torch_mutations import judge_mutations
from benchmarks.torch_tables import (
    COLLECTIVES,
    OUR_1F1B,
    Orders,
    Refused,
    Size,
    Table,
    before_use,
    deferred,
    schedule_classes,
    sender_placed,
    torch_table,
)
from bubbleproof.theory.families import member
from proofs_tests.sized import sized

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "measured" / "pytorch-tables.md").read_text()
MAX_RANKS = sized(2, full=3)

needs_the_page_version = pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="the page tells of torch 2.13"
)


def table(name: str, p: int, m: int, v: int) -> Table:
    size = Size(ranks=p, microbatches=m, chunks=v)
    found = torch_table(schedule_classes()[name], size)
    assert found is not None
    return found


def texts(orders: Orders) -> list[list[str]]:
    return [[str(action) for action in orders[rank]] for rank in range(len(orders))]


@pytest.fixture(scope="module")
def surveys() -> dict[str, ScheduleSurvey]:
    return {survey.schedule: survey for survey in survey_all(MAX_RANKS, lambda _name: None)}


def test_every_public_schedule_is_surveyed(surveys: dict[str, ScheduleSurvey]) -> None:
    public = {n.removeprefix("Schedule") for n in pipelining.__all__ if n.startswith("Schedule")}
    assert public < set(surveys)
    assert set(surveys) - public == {"_ScheduleForwardOnly", OUR_1F1B}


@pytest.mark.parametrize("name", ["Interleaved1F1B", "ZBVZeroBubble", "DualPipeV"])
def test_tables_are_those_of_the_visualizer(name: str) -> None:
    shown = get_schedule_ops(name, 2, 4, num_stages_per_rank=2, with_comms=True)
    wanted = [
        [str(a) for a in order if a is not None and a.computation_type not in COLLECTIVES]
        for order in shown
    ]
    assert texts(sender_placed(table(name, 2, 4, 2))) == wanted


def test_refusals_are_in_pytorchs_words() -> None:
    with pytest.raises(Refused, match="at least as many microbatches as stages"):
        table("DualPipeV", 2, 3, 2)


def channels_in_order(orders: Orders, stage_rank: tuple[int, ...]) -> bool:
    """Second route: whether the SENDs and RECVs of each ordered pair of ranks list one sequence.

    A message is named by its receiver: F to the stage after the sender's, B to the one before.
    """
    step = {"SEND_F": 1, "SEND_B": -1}
    sent: dict[tuple[int, int], list[tuple[str, int, int | None]]] = {}
    received: dict[tuple[int, int], list[tuple[str, int, int | None]]] = {}
    for actions in orders.values():
        for action in actions:
            stage, kind = action.stage_index, action.computation_type.value
            way = {"F": 1, "B": -1}.get(kind[-1], 0)
            if kind in step:
                pair = (stage_rank[stage], stage_rank[stage + way])
                sent.setdefault(pair, []).append((kind[-1], stage + way, action.microbatch_index))
            elif kind.startswith("RECV"):
                pair = (stage_rank[stage - way], stage_rank[stage])
                received.setdefault(pair, []).append((kind[-1], stage, action.microbatch_index))
    return sent == received


@needs_the_page_version
def test_crossed_programs_are_crossed_by_a_second_route(surveys: dict[str, ScheduleSurvey]) -> None:
    crossed = 0
    for name, survey in surveys.items():
        example = (
            survey.communication["deferred"].smallest.get(CROSSED)
            if ("deferred" in survey.communication)
            else None
        )
        if example is None:
            continue
        crossed += 1
        size = example.size
        found = table(name, size.ranks, size.microbatches, size.chunks)
        lowered = sender_placed(found)
        assert channels_in_order(lowered, found.stage_rank)
        assert not channels_in_order(deferred(found, lowered), found.stage_rank)
        assert not channels_in_order(before_use(found, lowered), found.stage_rank)
    assert crossed == sized(2, full=3)  # the third has three ranks


def test_the_default_lowering_holds_under_every_semantics(
    surveys: dict[str, ScheduleSurvey],
) -> None:
    judged = 0
    for survey in surveys.values():
        if (tally := survey.communication.get("sender")) is not None:
            assert not tally.violated, survey.schedule
            assert survey.simulator_accepts["sender"] == tally.judged
            judged += tally.judged
    assert judged > 100


@needs_the_page_version
def test_the_1f1b_table_numbers_the_last_ranks_forwards_from_1(
    surveys: dict[str, ScheduleSurvey],
) -> None:
    # p=2, m=2: one warm-up forward on rank 0; rank 1 alternates, and should read 1F0 1B0 1F1 1B1.
    assert texts(table("1F1B", 2, 2, 1).compute) == [
        ["0F0", "0F1", "0B0", "0B1"],
        ["1F1", "1B0", "1F2", "1B1"],
    ]
    survey = surveys["1F1B"]
    assert survey.compute.violated["COMPLETE"] == survey.compute.judged > 0
    assert survey.validator_accepts == 0
    assert surveys[OUR_1F1B].compute.violated == {}


@needs_the_page_version
def test_the_pages_smallest_counterexamples_come_out_again(
    surveys: dict[str, ScheduleSurvey],
) -> None:
    section = PAGE.split("## The smallest counterexample of each kind")[1].split("\n## ")[0]
    rows = [
        line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")
    ]
    told = {(row[0].strip("`"), row[1].strip(), row[2], row[3]) for row in rows}
    small = {row for row in told if int(row[3].split()[0].removeprefix("p=")) <= MAX_RANKS}
    found = {
        (name, where, column.lower(), str(example.size))
        for name, survey in surveys.items()
        for where, column, example in examples(survey)
        if where in PYTORCH_OWN
    }
    assert small == found
    grid = surveys["InterleavedZeroBubble"].communication["deferred"].smallest[CROSSED]
    assert f"```\n{grid}\n```" in PAGE


def test_mutations_that_pytorch_accepts_and_verify_refuses() -> None:
    judged = judge_mutations()
    by_pytorch = [j for j in judged if j.validator_accepts and j.lowering_accepts]
    # The original, a repeated action, shifted numbers, and one microbatch in place of another.
    assert [bool(j.broken) for j in by_pytorch] == [False, True, True, True]
    assert all(j.broken for j in judged[1:])


@needs_the_page_version
def test_crossed_messages_give_wrong_gradients_on_gloo() -> None:
    crossed = run("InterleavedZeroBubble", Size(ranks=2, microbatches=3, chunks=2))
    assert crossed.default_error is not None
    assert crossed.default_error < 1e-12
    assert crossed.deferred_error is not None
    assert crossed.deferred_error > 1e-3


@needs_the_page_version
def test_deferred_messages_in_order_give_right_gradients_on_gloo() -> None:
    # p=2, m=2, v=1 deadlocks where sends wait for their receivers; gloo's isend does not.
    ordered = run("InterleavedZeroBubble", Size(ranks=2, microbatches=2, chunks=1))
    assert ordered.deferred_error is not None
    assert ordered.deferred_error < 1e-12


def test_speed_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    verify_speed.main(ranks=4, microbatches=8, chunks=2, repeats=1, starts=1, json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["torch_steps"]["tasks"] == 4 * 2 * 8 * 2  # a forward and a backward on each stage
    assert min(*told["ours"].values(), *told["torch"].values()) > 0
    assert set(told["starts"]) == set(verify_speed.STARTS)
    assert "before" not in told


def test_the_command_of_another_checkout_takes_its_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands in for it notes the words that it was given."""
    package = tmp_path / "bubbleproof"
    with pytest.raises(typer.BadParameter, match="checkout"):
        verify_speed.main(before=tmp_path)
    package.mkdir()
    noted = "import sys; open(sys.argv[0] + '.ran', 'a').write(' '.join(sys.argv[1:]) + ';')"
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(noted)
    verify_speed.main(ranks=4, microbatches=8, chunks=2, repeats=2, starts=1, before=tmp_path)
    ran = (package / "__main__.py.ran").read_text()
    assert ran == "verify interleaved p=4 m=8 v=2;" * 2
    page = capsys.readouterr().out
    rows = [line.rpartition("   ")[2] for line in page.splitlines()]
    place = rows.index(f"the same before ({tmp_path.name})")
    assert rows[place + 1] == "bubbleproof verify: every rule"
    assert rows[place + 3 : place + 5] == ["before / ours", "PyTorch's / ours"]


def test_the_orders_whose_speed_is_compared_are_one() -> None:
    """Ours and that of PyTorch's class, and both passes find the same makespan."""
    size = Size(ranks=4, microbatches=8, chunks=2)
    made = torch_table(schedule_classes()["Interleaved1F1B"], size)
    found = member("interleaved", p=4, m=8, v=2)
    assert made is not None
    ours = Table.of(found.schedule.program, size, found.pipeline.stage_ranks)
    assert made == ours
    told: list[dict[str, float]] = []
    measure_check(told.append, 4, 8, 2, 1)
    assert set(told[0]) == {"check_s", "plain_s"}


def test_tables_program_prints_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    surveys = survey_all(1, lambda _name: None)  # once for both runs
    monkeypatch.setattr(pytorch_tables, "survey_all", lambda *_: surveys)
    pytorch_tables.main(max_ranks=1, no_run=True, json=True)
    told = json.loads(capsys.readouterr().out)["surveys"]
    assert [one["schedule"] for one in told] == [one.schedule for one in surveys]
    page = tmp_path / "page.md"
    pytorch_tables.main(max_ranks=1, no_run=True, write=page)
    assert all(f" {name} " in page.read_text() for name in SEMANTICS)
