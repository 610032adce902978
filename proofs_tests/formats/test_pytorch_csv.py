"""PyTorch tables: what they say, in which dialect, and what is refused in which cell."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.formats import (
    TableFile,
    UnusableInput,
    infer_pipeline,
    read_table,
    refuse_cut_off,
    write_table,
)
from bubbleproof.formats.pytorch_csv import Dialect, with_cells
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.pytorch_runtime import Version, completed, torch_version
from bubbleproof.verify import compute_part
from proofs_tests.formats.strategies import TABLE_KINDS

CASES = Path(__file__).parents[2].parent / "shared" / "cases"


def read(text: str, tmp_path: Path, dialect: Dialect | None = None) -> TableFile:
    (tmp_path / "a.csv").write_text(text)
    return read_table(tmp_path / "a.csv", dialect=dialect)


def refusal(text: str, tmp_path: Path, dialect: Dialect | None = None) -> str:
    with pytest.raises(UnusableInput) as caught:
        read(text, tmp_path, dialect)
    return str(caught.value).replace(f"{tmp_path}/a.csv: ", "")


def orders(program: Program) -> list[list[str]]:
    ranks = int(program.resource.max()) + 1
    return [[str(action) for action in order] for order in program.orders(ranks)]


def _stage(ranks: int, rank: int, chunk: int) -> int:
    return chunk * ranks + rank


@st.composite
def tables(draw: st.DrawFn) -> list[list[Action]]:
    """Rows of actions of the new dialect; stage g stands on row g mod the number of rows."""
    ranks = draw(st.integers(1, 3))
    rows = []
    for rank in range(ranks):
        stages = st.integers(0, 2).map(partial(_stage, ranks, rank))
        microbatches = st.integers(0, 99)
        plain = st.builds(
            lambda stage, kind, microbatch: Action(stage=stage, kind=kind, microbatch=microbatch),
            stages,
            st.sampled_from(TABLE_KINDS),
            microbatches,
        )
        overlapped = st.builds(
            lambda f, i, b, j: Action.parse(f"({f}F{i};{b}B{j})OVERLAP_F_B"),
            stages,
            microbatches,
            stages,
            microbatches,
        )
        rows.append(draw(st.lists(plain | overlapped, min_size=1, max_size=8)))
    return rows


@given(table=tables(), version=st.sampled_from([(2, 9), (2, 13), (2, 15)]))
def test_round_trip(
    table: list[list[Action]], version: Version, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "a.csv"
    program = Program.from_orders(table)
    write_table(path, program, torch=version)
    file = read_table(path, dialect="new")
    has_communication = any("SEND" in str(a) or "RECV" in str(a) for row in table for a in row)
    whole = completed(program, version) if has_communication else program
    assert orders(with_cells(file.program, file.collectives)) == orders(whole)
    kept = compute_part(file.program), compute_part(program)
    assert orders(kept[0]) == orders(kept[1]) if len(kept[1]) else not len(kept[0])
    assert file.has_communication == has_communication
    again = path.with_name("b.csv")
    write_table(again, file.program, collectives=file.collectives, torch=version)
    assert again.read_text() == path.read_text()


def test_idle_cells_spaces_and_rows_of_two_lengths(tmp_path: Path) -> None:
    file = read("0F0,,0B0,,\r\n, 1F0 ,1B0\r\n", tmp_path)
    assert orders(file.program) == [["0F0", "0B0"], ["1F0", "1B0"]]
    assert (file.has_communication, file.dialect) == (False, "new")


def test_collectives_stand_apart(tmp_path: Path) -> None:
    file = read("0UNSHARD,0F0,0SEND_F0,0RESHARD\n1RECV_F0,1F0,1REDUCE_GRAD\n", tmp_path)
    assert orders(file.program) == [["0F0", "0SEND_F0"], ["1RECV_F0", "1F0"]]
    assert file.has_communication
    found = [(c.rank, c.position, str(c.action)) for c in file.collectives]
    assert found == [(0, 0, "0UNSHARD"), (0, 2, "0RESHARD"), (1, 2, "1REDUCE_GRAD")]


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("0F0,0I0,0W0,0F1,0B1", ["0F0", "0I0", "0W0", "0F1", "0B1"]),
        ("0F0,(0F1;0B0)OVERLAP_F_B,0B1", ["0F0", "(0F1;0B0)OVERLAP_F_B", "0B1"]),
        ("0F0,0B0", ["0F0", "0B0"]),
        ("0F0", ["0F0"]),
    ],
)
def test_dialect_is_new_unless_told(text: str, actions: Sequence[str], tmp_path: Path) -> None:
    file = read(text, tmp_path)
    assert file.dialect == "new"
    assert orders(file.program) == [actions]


def test_a_short_row_is_cut_off_only_if_it_misses_actions(tmp_path: Path) -> None:
    whole = read("0F0,0B0,,\n,1F0,1B0\n", tmp_path)
    refuse_cut_off(whole, infer_pipeline(whole.program).problem())
    cut = read("0F0,,,0B0\n,1F0\n", tmp_path)
    assert cut.row_lengths == (4, 2)
    with pytest.raises(UnusableInput) as caught:
        refuse_cut_off(cut, infer_pipeline(cut.program).problem())
    assert str(caught.value) == (
        "row 2: expected 4 cells as in row 1, or every action of the rank, "
        "found 2 cells, without 1B0"
    )


def test_dialect_is_told(tmp_path: Path) -> None:
    text = "0F0,0B0,0W0"
    assert orders(read(text, tmp_path, "old").program) == [["0F0", "0I0", "0W0"]]
    assert orders(read("0F0,0BW0", tmp_path, "old").program) == [["0F0", "0B0"]]
    assert orders(read(text, tmp_path, "new").program) == [["0F0", "0B0", "0W0"]]


ACTION = "expected a PyTorch action such as 0F0, 0UNSHARD or (0F1;1B0)OVERLAP_F_B, found "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a row per rank, found an empty file"),
        ("\n", "row 1: expected the actions of a rank, found an empty row"),
        ("0F0\n,,\n", "row 2: expected the actions of a rank, found an empty row"),
        ("0F0\n\n", "row 2: expected the actions of a rank, found an empty row"),
        ("0F0,0F0x", f"row 1, column 2: {ACTION}'0F0x'"),
        ("0F0,\n,,1F", f"row 2, column 3: {ACTION}'1F'"),
        ("(0F0;0B0OVERLAP_F_B", f"row 1, column 1: {ACTION}'(0F0;0B0OVERLAP_F_B'"),
        ("(0F0;0B0)", f"row 1, column 1: {ACTION}'(0F0;0B0)'"),
        ("0F0;0B0)OVERLAP_F_B", f"row 1, column 1: {ACTION}'0F0;0B0)OVERLAP_F_B'"),
        ("(0F0;0F1)OVERLAP_F_B", f"row 1, column 1: {ACTION}'(0F0;0F1)OVERLAP_F_B'"),
        ("0F-1", f"row 1, column 1: {ACTION}'0F-1'"),
        ("0F0.0", f"row 1, column 1: {ACTION}'0F0.0'"),
        ("0R0", f"row 1, column 1: {ACTION}'0R0'"),
        ("0STEP", f"row 1, column 1: {ACTION}'0STEP'"),
        ("0UNSHARD0", f"row 1, column 1: {ACTION}'0UNSHARD0'"),
        ("rank,step", f"row 1, column 1: {ACTION}'rank'"),
        ('"0F0"', f"row 1, column 1: {ACTION}'\"0F0\"'"),
        ("\u0660F\u0660", f"row 1, column 1: {ACTION}'\u0660F\u0660'"),  # Arabic digits
        ("x" * 99, f"row 1, column 1: {ACTION}'{'x' * 60}...' (99 characters)"),
        (
            "0F0,0F1\n1F0,0B0\n",
            "row 2, column 2: expected stage 0 on one rank only (row 1), "
            "found '0B0': a stage mapped twice",
        ),
        (
            "0F0\n1F0,(1F1;0B0)OVERLAP_F_B\n",
            "row 2, column 2: expected stage 0 on one rank only (row 1), "
            "found '(1F1;0B0)OVERLAP_F_B': a stage mapped twice",
        ),
        (
            "0F0,0B0,0W0",
            'row 1, column 3: expected dialect="old" (B is the input gradient) or dialect="new" '
            "(B is the full backward), found a table with B and W that fits both",
        ),
        (
            "0F0,0BW0",
            f"row 1, column 2: {ACTION}'0BW0' (a full backward in the old dialect only: "
            'dialect="old")',
        ),
        ("0F0\n" * 4097, "row 4097: expected at most 4096 rows, found more"),
        ("," * (4 << 20) + ",0F0", "row 1: expected at most 4 MiB in a row, found a longer one"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refusals(text: str, message: str, tmp_path: Path) -> None:
    assert refusal(text, tmp_path) == message


@pytest.mark.parametrize(
    ("text", "dialect", "message"),
    [
        ("0F0,0BW0", "new", f"row 1, column 2: {ACTION}'0BW0'"),
        ("0F0,0I0", "old", "row 1, column 2: expected the old dialect (F B W BW), found '0I0'"),
        (
            "(0F0;0B1)OVERLAP_F_B",
            "old",
            "row 1, column 1: expected the old dialect (F B W BW), found '(0F0;0B1)OVERLAP_F_B'",
        ),
    ],
)
def test_cells_of_the_other_dialect(
    text: str, dialect: Dialect, message: str, tmp_path: Path
) -> None:
    assert refusal(text, tmp_path, dialect) == message


def test_lowered_program_round_trip(tmp_path: Path) -> None:
    small = member("interleaved", p=2, m=2, v=2)
    lowered = lower(small.problem, small.schedule)
    lost = write_table(tmp_path / "a.csv", lowered, problem=small.problem, torch=(2, 13))
    assert lost == (
        "durations (in tick): a table counts steps",
        "memory (in activation): a table has none",
    )
    file = read_table(tmp_path / "a.csv")
    assert file.has_communication
    assert orders(file.program) == orders(lowered)
    # One for each of the four stages, behind what is sent after the last backward of each.
    assert sorted(str(c.action) for c in file.collectives) == [f"{g}REDUCE_GRAD" for g in range(4)]


def test_what_a_runtime_does_not_keep_is_told(tmp_path: Path) -> None:
    capped = member("zb-h1", p=2, m=2).pipeline.with_changes(capacity=2, split_backward=True)
    problem, split = capped.problem(), member("zb-h1", p=2, m=2)
    lowered = lower(split.problem, split.schedule)
    told = {
        version: write_table(tmp_path / "a.csv", lowered, problem=problem, torch=version)
        for version in ((2, 6), (2, 8), (2, 13))
    }
    assert told[2, 13][-2:] == (
        "capacities are not kept: PyTorch's runtime also keeps outputs to the end of a step, and "
        "before 2.15 what it sent",
        "I releases nothing in PyTorch's runtime, and that of stage 0 does nothing: its W is the "
        "whole backward",
    )
    assert told[2, 6][-1] == "torch 2.6 does not divide gradients by the number of microbatches"
    assert "only where its last backward is a B: give scale_grads=False" in told[2, 8][-1]
    overlapped = member("dualpipev", p=2, m=6)
    paired = lower(overlapped.problem, overlapped.schedule)
    assert "OVERLAP_F_B" in " ".join(map(str, paired.actions))
    with pytest.raises(UnusableInput, match=r"torch 2\.8 knows no OVERLAP_F_B"):
        write_table(tmp_path / "a.csv", paired, problem=overlapped.problem, torch=(2, 8))


def test_losses_of_order_and_latency(tmp_path: Path) -> None:
    late = member("1f1b", p=2, m=2).pipeline.with_changes(latency=3, activation=0, backward=1)
    program = Program.from_orders([["0F0", "0F1", "0B0", "0B1"], ["1F1", "1B1", "1F0", "1B0"]])
    assert write_table(tmp_path / "a.csv", program, problem=late.problem()) == (
        "latencies: a table has no time",
        "PyTorch's runtime numbers losses in the order of execution: the last stage's forwards "
        "are not in ascending order of microbatches",
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["0F0.1"]], "expected whole microbatches (a table has no slices), found '0F0.1'"),
        (
            [["0F0", "0EVICT0"]],
            "expected actions that a PyTorch table has words for, found '0EVICT0'",
        ),
        ([["0STEP"]], "expected actions that a PyTorch table has words for, found '0STEP'"),
        ([["0F0"], [], ["1F0"]], "row 2: expected the actions of a rank, found none"),
        ([], "row 1: expected the actions of a rank, found none"),
        ([["0F0"], ["0F1"]], "expected each stage on one rank, found stage 0 on ranks 0 and 1"),
    ],
)
def test_write_refuses_and_overwrites_nothing(
    rows: list[list[str]], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(UnusableInput) as caught:
        write_table(path, Program.from_orders(rows))
    assert str(caught.value) == f"{path}: {message}"
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("name", "found"), [("bpipe", "'0EVICT1'"), ("bpipe-interleaved", "'0EVICT3'")]
)
def test_write_refuses_what_lowering_leaves_out(name: str, found: str, tmp_path: Path) -> None:
    evicting = member(name, p=4, m=8)
    lowered = lower(evicting.problem, evicting.schedule)
    assert "EVICT" not in " ".join(map(str, lowered.actions))
    with pytest.raises(UnusableInput, match=f"has words for, found {found}"):
        write_table(tmp_path / "a.csv", lowered, problem=evicting.problem, communication=True)
    assert not (tmp_path / "a.csv").exists()


def test_write_refuses_a_link(tmp_path: Path) -> None:
    small = member("1f1b", p=1, m=1)
    program = Program.from_orders([["0F0"], ["0B0"]])
    with pytest.raises(UnusableInput, match="expected actions on ranks alone, found '0B0' on "):
        write_table(tmp_path / "a.csv", program, problem=link_problem(small.problem))


def link_problem(problem: Problem) -> Problem:
    link = Resource(name="link")
    return replace(problem, resources=(*problem.resources, link))


def test_pytorch_reads_what_is_written(tmp_path: Path) -> None:
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    small = member("zb-h1", p=3, m=4)
    lowered = lower(small.problem, small.schedule)
    version = torch_version(importlib.metadata.version("torch"))
    write_table(tmp_path / "a.csv", lowered, torch=version)
    rows = (tmp_path / "a.csv").read_text().splitlines()
    for row, order in zip(rows, completed(lowered, version).orders(3), strict=True):
        cells = [schedules._Action.from_str(cell) for cell in row.split(",")]
        assert [str(cell) for cell in cells] == [str(action) for action in order]


@pytest.mark.skipif(not CASES.exists(), reason="tables of other projects are not at hand")
@pytest.mark.parametrize("name", ["torchtitan_custom_schedule", "torch_zb1p_2rank_2stagep_compute"])
def test_tables_of_others(name: str) -> None:
    file = read_table(CASES / f"{name}.csv")
    assert (file.dialect, file.has_communication, file.collectives) == ("new", False, ())
    # 4 stages, 8 microbatches, each with F, I and W: 96 cells; stages 0 and 2 on the first row.
    assert len(file.program) == 96
    kinds = file.program.actions.kind.tolist()
    assert {Kind(kind).name: kinds.count(kind) for kind in set(kinds)} == {
        "F": 32,
        "I": 32,
        "W": 32,
    }
    first = file.program.resource == 0
    assert set(file.program.actions.stage[first].tolist()) == {0, 2}
