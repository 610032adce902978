"""The papers' configurations: their numbers against the accountings, their plans, and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.paper_files import FOLDER
from benchmarks.paper_plans import PAGE, row_of, rows_of
from bubbleproof.costs import Deployment, Transformer, layer_saved, model_costs, transformer
from bubbleproof.formats.problem_toml import ProblemFile, read_problem
from bubbleproof.papers.planning.plan_paper import chosen_by, joined, known_to
from bubbleproof.planners import plan
from proofs_tests.planners.first_looks import FIRST_LOOKS
from proofs_tests.planners.found_plans import found_plan
from proofs_tests.sized import sized

DOCS = Path(__file__).resolve().parents[3] / "docs" / "measured" / "papers"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
# What MEPipe chooses is a candidate of its file, and their first looks take longest.
ONE_OF_EACH = ("bpipe-gpt3-13b", "pipemesh-gpt3-58b-v100", "tpipe-llama-84b")
QUICK = [name for name in NAMES if name in ("bpipe-gpt3-13b", "bpipe-gpt3-134b")]


def file_of(name: str) -> ProblemFile:
    return read_problem(FOLDER / f"{name}.toml")


def gpt(layers: int, hidden: int, heads: int) -> Transformer:
    return transformer(
        "gpt", layers=layers, hidden=hidden, heads=heads, vocabulary=51200, positions=2048
    )


@pytest.mark.parametrize(
    ("name", "model", "tensor", "pipeline", "micro_batch", "scope"),
    [
        ("bpipe-gpt3-13b", gpt(40, 5120, 40), 1, 8, 1, "none"),
        ("bpipe-gpt3-96b", gpt(80, 9984, 104), 4, 8, 2, "attention"),
        ("bpipe-gpt3-134b", gpt(84, 11520, 120), 4, 12, 2, "attention"),
    ],
)
def test_bpipes_bytes_are_those_of_its_accounting(
    name: str, model: Transformer, tensor: int, pipeline: int, micro_batch: int, scope: str
) -> None:
    at = Deployment(
        tensor=tensor, pipeline=pipeline, micro_batch=micro_batch, scope=scope, accounting="bpipe"
    )
    costs, given = model_costs(model, at), file_of(name)
    told = given.pipeline.per_stage
    assert {*told.activation.tolist()} == {costs.saved_bytes[scope]}
    assert told.static.tolist() == [stage.state_bytes for stage in costs.stages]
    assert given.allowed is not None
    assert given.allowed.recompute is not None
    assert given.allowed.recompute.kept == costs.saved_bytes["full"]


@pytest.mark.parametrize(
    ("name", "layers", "hidden", "heads", "kv_heads", "feed_forward", "billions"),
    [
        ("mepipe-llama-7b", 30, 4096, 32, 32, 11008, 7),
        ("mepipe-llama-13b", 38, 5120, 40, 40, 13824, 13),
        ("mepipe-llama-34b", 46, 8192, 64, 8, 22016, 34),
    ],
)
def test_mepipes_bytes_are_those_of_its_accounting(
    name: str, layers: int, hidden: int, heads: int, kv_heads: int, feed_forward: int, billions: int
) -> None:
    model = transformer(
        "llama",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        feed_forward=feed_forward,
        vocabulary=32000,
    )
    given = file_of(name)
    p = given.pipeline.num_ranks
    # All that the operations put out but for SiLU and the gated product, 16 bits each.
    each = layer_saved(model, Deployment(sequence=4096, accounting="mepipe"))
    each -= 2 * 2 * 4096 * feed_forward
    assert {*given.pipeline.per_stage.activation.tolist()} == {each * (layers + 2) // p}
    # 4m/p + 12m/64 and 4.125 GB, in millions of bytes.
    static = billions * 4000 // p + billions * 12000 // 64 + 4125
    assert abs(given.pipeline.per_stage.static[0] / 10**6 - static) < 1
    # A step of the printed configuration takes the printed time: 128 samples on 64/p replicas.
    assert given.pipeline.num_microbatches * 64 // p == 128


def test_there_are_twelve_configurations() -> None:
    papers = {name.split("-", maxsplit=1)[0] for name in NAMES}
    assert papers == {"bpipe", "mepipe", "pipemesh", "tpipe"}
    assert len(NAMES) == 12


@pytest.mark.sweep
@pytest.mark.parametrize("name", sized(ONE_OF_EACH, full=NAMES))
def test_the_joint_plan_is_never_worse_than_the_papers_choice(name: str) -> None:
    file = file_of(name)
    chosen = chosen_by(name.split("-", maxsplit=1)[0], file)
    assert chosen is not None
    assert file.plan is not None
    planned = plan(file.plan, FIRST_LOOKS, known=known_to(chosen))
    joint, shown = joined(planned, chosen, FIRST_LOOKS)
    assert shown is not None
    found = found_plan(joint)
    assert chosen.value is not None
    assert found.lower_bound <= found.value <= chosen.value
    assert found.verdict.ok


@pytest.mark.parametrize("name", QUICK)
def test_the_page_has_what_is_planned(name: str) -> None:
    rows = {row.name: row for row in rows_of((DOCS / PAGE).read_text(encoding="utf-8"))}
    assert rows.keys() == {*NAMES}
    found = row_of(FOLDER / f"{name}.toml", threads=1)
    # These are solved at once; only the seconds differ.
    assert found.cells[:-1] == rows[name].cells[:-1]


def test_the_page_says_that_all_were_planned_in_time() -> None:
    rows = rows_of((DOCS / PAGE).read_text(encoding="utf-8"))
    assert sum(row.seconds for row in rows) < 300
