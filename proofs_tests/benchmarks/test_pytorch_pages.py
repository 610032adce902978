"""What is told of torch's versions is what the installed one has; exported tables train rightly."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch.distributed.pipelining.schedules", reason="torch is not installed")

from benchmarks import pytorch_versions
from benchmarks.pytorch_training import FAMILIES, FORMS, page, plan_of, train_all, trained
from bubbleproof.reference_exec.drivers.gloo import GlooPool
from bubbleproof.reference_exec.pytorch import worker
from bubbleproof.reference_exec.pytorch.table import this_version
from bubbleproof.theory.pipelines.programs.pytorch_runtime import REDUCES_SINCE, SINCE
from proofs_tests.reference_exec.cases import TINY

pytestmark = pytest.mark.torch

DOCS = Path(__file__).parents[2] / "docs" / "measured"


def test_the_installed_torch_has_what_is_told_of_its_version() -> None:
    found = pytorch_versions.of_installed()
    assert found.number == this_version()
    assert found.is_as_told
    assert found.words == {kind.name for kind, since in SINCE.items() if since <= found.number}


def test_every_version_of_the_page_is_as_told() -> None:
    lines = (DOCS / "pytorch-versions.md").read_text().splitlines()
    rows = [line for line in lines if "as told" in line]
    versions = [row.strip("| ").split(" | ")[0] for row in rows]
    assert [version.rsplit(".", 1)[0] for version in versions] == [
        f"2.{minor}" for minor in range(6, 16)
    ]
    assert "DIFFERS" not in (DOCS / "pytorch-versions.md").read_text()


def test_a_source_that_says_something_else_is_told() -> None:
    words = "F|I|B|W|UNSHARD|RESHARD|SEND_F|RECV_F|SEND_B|RECV_B"
    cells = rf'_action_regex = re.compile(r"(\d+)({words})(\d*)")'
    name = "stage_index_to_group_rank"
    arguments = f"class PipelineScheduleMulti:\n    def __init__(self, {name}): 0\n"
    assert pytorch_versions.found_in(f"{cells}\n{arguments}", "2.6.0").is_as_told
    for source, version in (
        (f"{cells}\n{arguments}", "2.10.0"),
        (f"{cells.replace('RECV_B', 'RECV_B|NEW')}\n{arguments}", "2.6.0"),
        (cells, "2.6.0"),
    ):
        assert not pytorch_versions.found_in(source, version).is_as_told
    with pytest.raises(ValueError, match="no regular expression of cells"):
        pytorch_versions.found_in("", "2.6.0")


@pytest.mark.skipif(this_version() < REDUCES_SINCE, reason="this torch has no REDUCE_GRAD")
def test_exported_tables_of_every_family_train_with_the_gradients_of_each_microbatch() -> None:
    *judged, bare = train_all(FAMILIES, 2, 4, spec=TINY)
    assert [row.told for row in judged] == ["equal"] * len(FAMILIES) * len(FORMS) * 2
    # What the fault was: nothing divides by the 4 microbatches where REDUCE_GRAD is missing.
    assert not bare.is_equal
    assert bare.told == "4 times" or bare.why
    told = page([*judged, bare], 2, 4)
    assert f"{len(judged)} of {len(judged)}" in told


def test_gradients_that_are_not_divided_are_told_by_how_much() -> None:
    plan = plan_of("gpipe", 1, 3, "compute_only", TINY)
    with GlooPool(1, worker=worker.work) as pool:
        row = trained(pool, plan, "gpipe", "compute_only", is_scaled=True)
    assert (row.is_equal, row.told) == (False, "3 times")
