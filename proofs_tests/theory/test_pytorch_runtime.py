"""What PyTorch's runtime needs in a table with messages, version by version, and around shards."""

from __future__ import annotations

import pytest

from bubbleproof.theory.families import family, parse_parameters
from bubbleproof.theory.families.pipemesh import PipeMesh
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.lowering import lower
from bubbleproof.theory.pipelines.programs.pytorch_runtime import (
    NEWEST,
    OLDEST,
    SINCE,
    completed,
    lacks,
    like,
    runs_on,
    torch_version,
)
from bubbleproof.theory.pipelines.programs.pytorch_shards import with_shards
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.verify import check_communication
from bubbleproof.verify.communication.runtime_collectives import check_runtime_collectives
from proofs_tests.cases import all_family_cases
from proofs_tests.sized import sized

VERSIONS = sorted({OLDEST, *SINCE.values()})


def orders(*rows: str) -> Program:
    return Program.from_orders([row.split() for row in rows])


def texts(program: Program) -> list[str]:
    ranks = int(program.resource.max()) + 1
    return [" ".join(map(str, order)) for order in program.orders(ranks)]


@pytest.mark.parametrize("text", ["", "2", "2.5.1", "2.16.0", "3.0", "2.x", "2.1300", "two.six"])
def test_versions_that_were_not_looked_at_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be 2\.6 to 2\.15"):
        torch_version(text)


def test_versions_whose_tables_are_alike() -> None:
    named = [like((2, minor)) for minor in range(OLDEST[1], NEWEST[1] + 1)]
    assert named == ["2.6 to 2.8"] * 3 + ["2.9"] + ["2.10 to 2.14"] * 5 + ["2.15"]


def test_what_a_version_needs_is_added_behind_what_it_is_about() -> None:
    given = orders("0F0 0SEND_F0 0RECV_B0 0I0 0W0", "1RECV_F0 1F0 1B0 1SEND_B0")
    assert texts(completed(given, (2, 9))) == texts(given)
    assert texts(completed(given, (2, 14))) == [
        "0F0 0SEND_F0 0RECV_B0 0I0 0W0 0REDUCE_GRAD",
        "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD",
    ]
    newest = completed(given, (2, 15))
    assert texts(newest) == [
        "0F0 0SEND_F0 0RECV_B0 0I0 0WAIT_SEND_F0 0W0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD",
        "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1WAIT_REDUCE_GRAD 1WAIT_SEND_B0",
    ]
    assert texts(completed(newest, (2, 15))) == texts(newest)
    assert texts(completed(newest, (2, 6))) == texts(given)


def test_where_a_table_falls_short_is_told() -> None:
    given = orders("0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0")
    assert lacks(given, (2, 10)) == ("REDUCE_GRAD is missing",)
    assert lacks(completed(given, (2, 15)), (2, 13)) == (
        "WAIT_SEND_F is not known",
        "WAIT_SEND_B is not known",
        "WAIT_REDUCE_GRAD is not known",
    )
    assert runs_on(given) == ("2.6 to 2.8", "2.9")
    assert runs_on(completed(given, (2, 12))) == ("2.10 to 2.14",)
    half = orders("0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD", "1RECV_F0 1F0 1B0 1SEND_B0")
    assert runs_on(half) == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_familys_table_is_whole_and_right(version: tuple[int, int]) -> None:
    # No table with messages leaves without what gradients depend on.
    judged = 0
    found = [*all_family_cases((2, 3), (3, 4), 1).values()]
    turn = VERSIONS.index(version)  # by default each family in the table of one version
    for cases in sized(found[turn :: len(VERSIONS)], full=found):
        for case in cases:
            lowered = lower(case.problem, case.schedule)
            kinds = {Kind(kind) for kind in lowered.actions.kind.tolist()}
            homes = {*zip(lowered.actions.stage.tolist(), lowered.resource.tolist(), strict=True)}
            if len(homes) > len({stage for stage, _ in homes}):
                continue  # a table has each stage on one rank
            if any(kind not in SINCE or SINCE[kind] > version for kind in kinds):
                continue
            table = completed(lowered, version)
            assert like(version) in runs_on(table), case.name
            assert check_runtime_collectives(case.problem, table).ok, case.name
            reduced = [a.stage for a in table.actions if a.kind is Kind.REDUCE_GRAD]
            expected = range(len(case.problem.stage_to_rank)) if version >= (2, 10) else ()
            if {Kind(kind) for kind in case.problem.actions.kind.tolist()} == {Kind.F}:
                expected = ()  # no backward runs, so there is no gradient to reduce
            assert sorted(reduced) == [*expected], case.name
            cells = table.actions.is_kind(Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD)
            assert check_communication(case.problem, table.take(~cells)).ok, case.name
            judged += 1
    assert judged >= sized(2, full=10)


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize("shape", ["p=2 m=4 v=2", "p=3 m=6 v=1", "p=2 m=4 v=3 e=2,2 d=2,2"])
def test_shards_are_gathered_around_what_computes_with_them(zero: int, shape: str) -> None:
    params = parse_parameters(shape.split())
    chosen = family("pipemesh").variant(params)
    assert isinstance(chosen, PipeMesh)
    pipeline = chosen.sharded(chosen.pipeline(params), Sharding(zero=zero, gather=1, reduce=1))
    problem = pipeline.problem()
    program = lower(problem, chosen.schedule(pipeline, problem))
    table = completed(with_shards(problem, program), (2, 13))
    decision = check_runtime_collectives(problem, table)
    assert decision.ok, decision.violations
    gathered = [action.stage for action in table.actions if action.kind is Kind.UNSHARD]
    stages = range(pipeline.num_stages)
    assert {*gathered} == {*stages}
    if zero < 3:  # never freed before the end
        assert len(gathered) == pipeline.num_stages


def test_a_weight_gradient_is_in_the_span_of_its_input_gradient() -> None:
    # One stage, two visits each way; W1 comes long after I1, within what is gathered for it.
    pipeline = Pipeline(
        num_ranks=1,
        num_microbatches=2,
        split_backward=True,
        sharding=Sharding(zero=3, gather=1, reduce=1),
    )
    problem = pipeline.problem()
    order = ["0F0", "0F1", "0I0", "0I1", "0W0", "0W1"]
    rows = Program.from_orders([[Action.parse(text) for text in order]])
    table = completed(with_shards(problem, rows), (2, 13))
    assert texts(table) == ["0UNSHARD 0F0 0F1 0I0 0I1 0W0 0W1 0REDUCE_GRAD 0RESHARD"]
