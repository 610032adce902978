"""Problem files of the papers' configurations: what their generators write, and what they say."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import pipemesh_files, tpipe_files
from benchmarks.paper_files import path_of
from benchmarks.pipemesh_tables import TABLE
from bubbleproof.formats.problem_toml import read_problem
from bubbleproof.papers.pipemesh.mesh_numbers import MeshTable, meshes_of
from bubbleproof.papers.pipemesh.pipemesh_queue import Queue
from bubbleproof.papers.planning.paper_choice import even_candidate
from bubbleproof.papers.planning.planner_list import planners
from bubbleproof.theory.pipelines.shapes.shaping import shaped

PLANS = sorted(
    (Path(__file__).resolve().parents[3] / "examples" / "researcher" / "plans").glob("*.toml")
)


@pytest.mark.parametrize("module", [pipemesh_files, tpipe_files], ids=lambda at: at.PAPER)
def test_files_are_what_their_generator_writes(module: ModuleType) -> None:
    for path, text in module.files():
        assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("path", PLANS, ids=lambda at: at.stem)
def test_a_file_is_named_after_the_paper_whose_planner_takes_it(path: Path) -> None:
    file = read_problem(path)
    assert path.stem.split("-")[0] in planners()
    assert file.plan is not None
    assert {*file.paper} <= {path.stem.split("-")[0]}


@pytest.mark.parametrize("given", pipemesh_files.CONFIGURATIONS, ids=lambda one: one.name)
def test_pipemesh_files_tell_what_table_4_does(given: pipemesh_files.Configuration) -> None:
    """By the paper's own formulas: M, T_bubble, T_DP_crit at its q, and psi of its M_g."""
    file, row = read_problem(path_of("pipemesh", given.name)), TABLE[given.row]
    assert file.plan is not None
    table = MeshTable(**file.paper["pipemesh"])  # type: ignore[arg-type]  # as the planner does
    meshes = {one.mesh.num_chunks: one for one in meshes_of(file.plan, table)}
    printed = meshes[int(row["M"])]
    passing = [c for c, one in meshes.items() if one.mesh.message <= one.mesh.forward]
    assert max(passing) == row["M"]
    q = {0: 6, 4: 12, 8: 8, 12: 12}[given.row]
    queue = next(one for one in printed.queues if one.size == q)
    assert isinstance(queue, Queue)
    assert queue.enqueue == queue.dequeue == (q, q)
    # T_DP_crit in milliseconds, to the microsecond that halving it rounds.
    assert abs(Fraction(queue.exposed_ticks, 1000) - row["dp"]) < Fraction(2, 100)
    # M_g = (2/D + 4/M) psi GiB, printed with one decimal (0.06 off as the claim has it).
    gradients = (Fraction(2, 3) + 4 / row["M"]) * printed.mesh.parameters / (1 << 30)
    assert abs(gradients - row["gradients"]) < Fraction(6, 100)


def test_tpipe_files_give_the_gigabytes_of_figure_8() -> None:
    """39 thirds of a stage for T-Pipe, 15 for T-Recomp and 25 for 1F1B with half recomputed.

    13 and 5 chunks of 3 layers; 8 halves of 6 layers and one layer's buffer, 10.645.
    """
    file = read_problem(path_of("tpipe", "llama-42b"))
    assert file.plan is not None
    chunk = shaped(file.plan, even_candidate(file.plan, 2)).pipeline.per_stage.activation[0]
    layer = Fraction(int(chunk), 3 << 30)
    for layers, printed in ((39, "16.61"), (15, "6.39"), (25, "10.65")):
        assert abs(layers * layer - Fraction(printed)) <= Fraction(1, 100)
