"""``bubbleproof plan`` from a model and a cluster: what it answers, writes and refuses."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.planners.cluster_planned import ClusterPlan
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.planned import Plans
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.sized import sized

TEXT = f"""{SMALL}\
[plan]
pipeline = [2, 4]
micro_batch = [1, 2]
zero = [0, 1]
scope = ["none", "full"]
chunks = [1, 2]
"""
KEYS = {"tensor", "data", "pipeline", "micro_batch", "zero", "scope", "context", "expert"}
SHAPE = {"chunks", "placement", "backward", "slices", "f", "layers"}
FILES = {"problem.toml", "plan.json", "schedule.json", "schedule.csv", "plan.html"}


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


def test_the_json_has_the_keys_of_the_contract(command: Run, problem: Path) -> None:
    answer = command("plan", problem, "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert found["status"] == "OPTIMAL"
    assert found["value"] == found["lower_bound"] == found["makespan"] + found["step_end"]
    assert found["winner"].keys() >= KEYS | SHAPE
    assert found["winner"]["tensor"] * found["winner"]["data"] * found["winner"]["pipeline"] == 4
    assert found["verified"] is True
    # (t, d, p) with p of 2 and 4, t within a node of two: (1,2,2) (2,1,2) (1,1,4); b, scope, and
    # of the first, which has two replicas, two levels of ZeRO.
    assert len(found["candidates"]) == (2 + 1 + 1) * 2 * 2
    for one in found["candidates"]:
        assert one.keys() >= KEYS | {"status", "value", "lower_bound", "peak_memory", "reason"}
        assert one["status"] == "NOT_LEGAL" or one["lower_bound"] >= found["value"]
        told = one["reason"]
        if one["status"] == "BOUNDED":  # nothing was looked for, and the bound says why
            assert one["value"] is None
            assert told == "bound not below the plan"
    assert "BOUNDED" in {one["status"] for one in found["candidates"]}
    assert found["pareto"][0]["value"] == found["value"]


def test_one_command_writes_plan_page_and_table(command: Run, planned: Plans) -> None:
    made = planned(TEXT)
    folder, proofs = made.folder, made.proofs
    assert {path.name for path in folder.iterdir()} == FILES
    assert command("verify", folder, "--certificate", proofs).status == 0
    assert command("verify", folder / "schedule.json").status == 0
    assert command("verify", folder / "schedule.csv").status == 0
    page = (folder / "plan.html").read_text(encoding="utf-8")
    assert "zero=1" in page
    assert "any order of these deployments" in page
    # The winner's problem file is one as any: planned again it has the same makespan.
    again = json.loads(command("plan", folder / "problem.toml", "--json").out)
    assert again["value"] == made.found["makespan"]


def test_the_problem_file_is_that_of_a_profile(command: Run, planned: Plans) -> None:
    folder = planned(TEXT).folder
    content = tomllib.loads((folder / "problem.toml").read_text(encoding="utf-8"))
    assert content["unit"] == "us"
    assert content["memory_unit"] == "bytes"
    assert content["layers"]["number"] == 4
    assert command("solve", folder / "problem.toml").status == 0


def test_where_nothing_fits_the_nearest_memory_is_told(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    problem.write_text(TEXT.replace("128 MiB", "72 MiB"))
    answer = command("plan", problem, "-o", tmp_path / "out")
    assert answer.status == 1
    assert answer.out.startswith("DOES NOT FIT  no deployment fits; use cards of ")
    report = command("plan", problem, "-v").out
    assert "infeasible: no deployment fits" in report
    assert "fits with" in report
    assert not (tmp_path / "out").exists()
    found = json.loads(command("plan", problem, "--json").out)
    assert found["winner"] is None
    assert found["least_capacity"] > 72 << 20
    assert found["nearest"].keys() == KEYS


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("per_node = 2", "efficiency = -0.5", "cluster efficiency must be above 0 and at most 1"),
        (
            "per_node = 2",
            'card = "a1000"',
            "cluster.card: expected a known card, found 'a1000'; the nearest are a10",
        ),
        (
            "per_node = 2",
            'hardware = "none.toml"',
            "none.toml: expected a file, found no such file",
        ),
        ("flops = 1e12\n", "", "cluster.flops: expected this key, or card = one of a10"),
        ('family = "llama"', 'name = "llama-9"', "no model 'llama-9'; the nearest are llama-"),
        ('family = "llama"\n', "", "a name, a config, or a family of general, gpt, llama"),
        ("heads = 4", "heads = 5", "use heads = 4, or tell head_width"),
        ("cards = 4", "cards = 6", "data x micro_batch = 3; use samples = 9"),
        ("samples = 8", "samples = 0", "batch.samples"),
        ("[batch]", "[batches]", "did you mean 'batch'?"),
        ('"100 GB/s"', '"100 GB"', "cluster.memory_bandwidth"),
        ("zero = [0, 1]", "zero = [4]", "plan.zero[0]"),
        ("[batch]", '[solve]\nobjective = "peak"\n[batch]', "solve.objective: expected 'makespan'"),
        ("per_node = 2", "efficiency = 1e-12", "ticks in total"),
        (
            "flops = 1e12",
            "flops = nan",
            'cluster.flops: expected a number or a text such as "312 TFLOP/s", found nan',
        ),
        ("flops = 1e12", "flops = 0", "cluster.flops: expected a number above 0, found 0"),
        (
            "reserve = 0",
            "reserve = {}",
            'cluster.reserve: expected a number or a text such as "80 GiB", found a table',
        ),
        ("chunks = [1, 2]", "tensor = [3]", "use such as cards = 6 and data = [1]"),
        ("chunks = [1, 2]", "slices = [3, 64]", "plan.slices: expected numbers of slices that"),
        ("chunks = [1, 2]", "placements = [[0, 0]]", 'use placements = ["loop"]'),
        ("chunks = [1, 2]", "chunks = []", "plan"),
        ("chunks = [1, 2]", 'accounting = "x"', "accounting must be one of megatron"),
        ("flops = 1e12", 'flops = "fast"', "cluster.flops"),
        ("layers = 4", "layers = 0", "model.layers"),
        ("layers = 4", "layers = 9_000_000_000", "model layers must be at most 10000"),
        ("hidden = 256", "hidden = 9_000_000_000_000", "model hidden must be at most"),
        ("micro_batch = [1, 2]", "micro_batch = []", "plan.micro_batch"),
        (
            "chunks = [1, 2]",
            "chunks = [4]",
            "by 16 stages (4 on each of 4 ranks); use chunks = [1]",
        ),
    ],
)
def test_what_is_refused(
    command: Run, problem: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in TEXT
    problem.write_text(TEXT.replace(old, new))
    answer = command("plan", problem, "-o", tmp_path / "out", "--certificate", tmp_path / "c.json")
    assert answer.status == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert told in answer.err
    assert {path.name for path in tmp_path.iterdir()} == {"small.toml"}


def test_the_door_plans_it_too(problem: Path) -> None:
    found = bp.plan(problem)
    assert isinstance(found, ClusterPlan)
    assert found.winner is not None
    assert found.plan is not None
    assert found.value == (found.plan.value or 0) + found.step_end


CARD = """
[model]
name = "llama-2-7b"
[cluster]
card = "a100-80gb"
cards = 8
[batch]
samples = 16
sequence = 4096
[plan]
pipeline = [2]
micro_batch = [1]
zero = [1]
scope = ["none"]
"""


def test_a_card_by_name_and_what_is_told_of_it(command: Run, problem: Path) -> None:
    """Less memory fits less; a slower network takes longer, higher efficiency less long."""
    values = []
    for more in ("", 'network = "1 GB/s"\nper_node = 2', "efficiency = 1.0"):
        problem.write_text(CARD.replace("cards = 8", f"cards = 8\n{more}"))
        found = json.loads(command("plan", problem, "--json").out)
        values.append(found["value"])
    assert values[2] < values[0] < values[1]
    problem.write_text(CARD.replace("cards = 8", 'cards = 8\nmemory = "12 GiB"'))
    assert command("plan", problem).status == 1


def test_a_name_of_any_characters_is_told_and_written(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    odd = 'name = "a\\u0007\\n[plan]\\u001b[31m"\nfamily = "llama"'
    problem.write_text(TEXT.replace('family = "llama"', odd))
    assert command("plan", problem, "-o", tmp_path / "out").status == 0
    assert command("plan", tmp_path / "out" / "problem.toml").status == 0


def test_a_batch_beyond_any_problem_is_refused_in_a_line(command: Run, problem: Path) -> None:
    problem.write_text(TEXT.replace("samples = 8", "samples = 8_000_000_000_000"))
    answer = command("plan", problem)
    assert (answer.status, answer.out) == (2, "")
    assert "found" in answer.err


def test_counted_work_repeats(command: Run, problem: Path) -> None:
    """Tight memory and split backwards, where engines search."""
    tight = TEXT.replace("128 MiB", "104 MiB") + 'backward = ["whole", "split"]\n'
    problem.write_text(tight)

    def told(*more: str) -> tuple[int, dict[str, object]]:
        answer = command("plan", problem, "--work", sized("0.1", full="0.3"), *more, "--json")
        found = json.loads(answer.out)
        del found["seconds"]
        return answer.status, found

    first = told()
    assert first[0] == 0
    more: list[tuple[str, ...]] = [("--workers", "2"), ()]
    for words in sized(more[:1], full=more):
        assert told(*words) == first


def test_the_share_of_the_cards_rate_is_the_models_flops(
    command: Run, problem: Path, planned: Plans
) -> None:
    """MFU by hand: 6 FLOPs of each weight of a product and token, and of the attention's square
    12 s h of each token and layer."""
    found = planned(TEXT).found
    layer = 4 * 256 * 256 + 3 * 256 * 512
    token = 6 * (4 * layer + 1000 * 256) + 12 * 4 * 256 * 256
    flops = token * 256 * 8  # of 8 samples
    wanted = flops / (found["value"] / 1e6) / 4 / 1e12
    assert found["mfu"] == pytest.approx(wanted, abs=1e-4)
    answer = command("plan", problem)
    assert f"MFU {100 * wanted:.1f} %" in answer.out.splitlines()[1]
    assert f"{100 * wanted:.1f} % of its rate (MFU)" in command("plan", problem, "-v").out


def test_an_answer_tells_its_error_and_whose_times_it_has(
    command: Run, problem: Path, planned: Plans
) -> None:
    found = planned(TEXT).found
    assert found["software"] == "megatron-core"
    assert found["beyond"] == ["card own"]
    assert found["error"] >= 0.25
    answer = command("plan", problem).out.splitlines()
    told = f"± {100 * found['error']:.0f} % (not measured: card own) · megatron-core"
    assert answer[1].endswith(told)
    named = re.findall(r"\(\+([0-9.]+) %(, even)?\)", answer[4])
    assert answer[4].startswith("next")
    assert all((float(more) <= 100 * found["error"]) is bool(even) for more, even in named)


def test_what_is_left_out_is_grouped_by_reason(command: Run, problem: Path) -> None:
    problem.write_text(TEXT.replace("128 MiB", "104 MiB").replace("[1, 2]", "[1, 2, 3]", 1))
    rows = [
        [cell.strip() for cell in line.split("\u2502")[1:-1]]
        for line in command("plan", problem, "-v").out.splitlines()
        if "more" in line and "\u2502" in line
    ]
    found = json.loads(command("plan", problem, "--json").out)
    statuses = [row[-2] for row in rows]
    assert statuses
    # Twelve rows stand by themselves, the others behind one row for each reason.
    counts = [int(row[0].split()[1]) for row in rows]
    assert sum(counts) == len(found["candidates"]) - 12
    assert len(rows) < 6


def test_the_page_shows_deployments_between_time_and_memory(planned: Plans) -> None:
    page = (planned(TEXT).folder / "plan.html").read_text(encoding="utf-8")
    assert "Deployments: iteration against memory" in page
    assert "lower bound</span>" in page


def test_experts_are_spread_where_the_file_asks(command: Run, problem: Path) -> None:
    mixture = TEXT.replace("heads = 4", "heads = 4\nexperts = 4\nexperts_per_token = 2")
    problem.write_text(mixture.replace("128 MiB", "256 MiB") + "expert = [1, 2, 3]\n")
    found = json.loads(command("plan", problem, "--json").out)
    assert found["status"] == "OPTIMAL"
    alone: dict[tuple[object, ...], dict[int, int]] = {}
    for one in found["candidates"]:
        if one["expert"] == 3:  # of 4 experts
            assert one["status"] == "NOT_LEGAL"
            assert "expert must divide" in one["reason"]
        elif one["lower_bound"] is not None:
            key = tuple(one[name] for name in sorted(KEYS - {"expert"}))
            alone.setdefault(key, {})[one["expert"]] = one["lower_bound"]
    # Over two replicas: some are there, and of those tokens are exchanged over a slow link.
    both = [bounds for bounds in alone.values() if len(bounds) == 2]
    assert both
    problem.write_text(TEXT + "expert = [2]\n")
    answer = command("plan", problem)
    assert answer.status == 2
    assert "expert must be 1 for a model without experts, got 2" in answer.err


@pytest.mark.torch
def test_run_plans_draws_and_replays_the_best_deployment(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    answer = command("run", problem, "-o", out, "--backend", "virtual", "--work", "0.3", "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    planned = json.loads(command("plan", problem, "--work", "0.3", "--json").out)
    assert {key: found[key] for key in planned if key != "seconds"} == {
        key: planned[key] for key in planned if key != "seconds"
    }
    assert {row["verdict"] for row in found["replay"]} == {"holds"}
    checked = command("verify", out, "--certificate", out / "certificate.json")
    assert checked.status == 0, checked.out + checked.err
