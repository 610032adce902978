"""``bubbleproof plan`` of a file that lists nothing: what it answers, and what that rests on."""

from __future__ import annotations

import json
import time
from itertools import count
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.costs.combinations import AnyCount, Combination, counted, legal
from bubbleproof.costs.order_estimates import order_estimate
from bubbleproof.formats.clusters.cluster_toml import (
    ClusterFile,
    cluster_file_of_text,
    read_cluster_file,
)
from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space
from bubbleproof.planners import PlanOptions
from bubbleproof.planners.cluster_planned import NOT_COUNTED, ClusterPlan
from bubbleproof.planners.counting import UncountedCombination, counted_within
from bubbleproof.planners.planning import plan_cluster
from bubbleproof.solvers import Status
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.planned import Plans
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.sized import sized


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "open.toml"
    path.write_text(SMALL)
    return path


def test_the_plan_is_an_order_that_megatron_has(planned: Plans) -> None:
    found = planned(SMALL).found
    assert found["winner"]["zero"] in (0, 1)
    assert found["winner"]["backward"] == "whole"
    restricted = found["framework"]
    assert restricted["name"] == "megatron-core"
    # of (t, d, p) within a node of two: (1,4,1) (1,2,2) (1,1,4) (2,2,1) (2,1,2), where there is
    # more than one replica ZeRO 2 and 3 are left out: of three, at 4 micro-batches and 3 scopes.
    assert restricted["left_out"] == 3 * 2 * 4 * 3
    assert restricted["lower_bound"] <= found["value"]


# On half the cards with a quarter of the samples the plan of any order is proved at once.
FEW = SMALL.replace("cards = 4", "cards = 2").replace("samples = 8", "samples = 2")


@pytest.mark.sweep
def test_any_order_is_never_longer(command: Run, problem: Path) -> None:
    text = sized(FEW.replace("128 MiB", "256 MiB"), full=SMALL)
    problem.write_text(text)
    named = json.loads(command("plan", problem, "--json").out)
    free = problem.with_name("free.toml")
    free.write_text(f'{text}\n[plan]\nframework = "any"\n')
    found = json.loads(command("plan", free, "--work", "3", "--json").out)
    assert "framework" not in found
    assert found["lower_bound"] <= named["value"]
    # Slices are a quarter of a sample: ticks are multiples of 4, at most 2 off for each action.
    assert found["value"] <= named["value"] + 2 * 3 * 8 * 6
    assert len(found["candidates"]) == len(named["candidates"]) + named["framework"]["left_out"]


def test_what_it_costs_is_a_line(command: Run, problem: Path) -> None:
    assert "planned for" not in command("plan", problem).out
    told = command("plan", problem, "--why").out
    assert "planned for" in told
    assert "megatron-core; 72 deployments that it does not run are left out" in told
    assert "cost of this restriction" in told
    assert "lower bound without it" in told


def test_its_proofs_are_of_every_deployment(command: Run, planned: Plans) -> None:
    made = planned(SMALL)
    folder, proofs = made.folder, made.proofs
    judged = command("verify", folder, "--certificate", proofs)
    assert judged.status == 0
    less = json.loads(proofs.read_text())
    less["deployments"].pop()
    proofs.write_text(json.dumps(less))
    assert command("verify", folder, "--certificate", proofs).status != 0


def test_a_limit_of_work_repeats(command: Run, problem: Path) -> None:
    one, other = (
        json.loads(command("plan", problem, "--work", "2", "--json").out) for _ in range(2)
    )
    one.pop("seconds"), other.pop("seconds")
    assert one == other


def test_the_door_plans_the_same(problem: Path, planned: Plans) -> None:
    found = bp.plan(problem)
    assert isinstance(found, ClusterPlan)
    assert found.value == planned(SMALL).found["value"]


def test_a_framework_that_cannot_run_what_is_fixed_is_refused(command: Run, problem: Path) -> None:
    problem.write_text(f'{SMALL}\n[plan]\nframework = "megatron-core"\nzero = [3]\n')
    answer = command("plan", problem)
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert "plan.zero: expected values that megatron-core runs, such as [0, 1]" in answer.err


def test_megatron_interleaves_three_microbatches_on_two_ranks(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    """G = 2 leaves a rest of 1 < p; G = 3 is legal, and is what the plan and its arguments have."""
    lists = "pipeline = [2]\ntensor = [2]\ndata = [1]\nmicro_batch = [1]\nchunks = [2]\n"
    text = SMALL.replace("samples = 8", "samples = 3")
    problem.write_text(f'{text}\n[plan]\nframework = "megatron-core"\n{lists}')
    folder, out = tmp_path / "plan", tmp_path / "handed"
    answer = command("plan", problem, "--json", "-o", folder)
    assert answer.status == 0
    assert json.loads(answer.out)["winner"]["chunks"] == 2
    assert command("hand-over", folder, "--to", "megatron-core", "-o", out).status == 0
    told = (out / "megatron.args").read_text()
    assert "--microbatch-group-size-per-virtual-pipeline-stage 3\n" in told


def test_no_plan_of_megatron_interleaves_what_makes_no_group(command: Run, problem: Path) -> None:
    """One microbatch on two ranks: of chunks = [2] alone nothing is left but one chunk."""
    lists = "pipeline = [2]\ntensor = [2]\ndata = [1]\nmicro_batch = [8]\nchunks = [1, 2]\n"
    problem.write_text(f'{SMALL}\n[plan]\nframework = "megatron-core"\n{lists}')
    found = json.loads(command("plan", problem, "--json").out)
    assert {each["chunks"] for each in found["shapes"]} == {1}


def test_experts_over_tensor_ranks_are_whole(command: Run, problem: Path, tmp_path: Path) -> None:
    """Four expert ranks on 2 replicas of 2 tensor ranks: each card has 2 of 8 experts whole, as
    many weights as of 4 that both tensor ranks share.
    """
    text = SMALL.replace("128 MiB", "512 MiB")
    text = text.replace('"llama"', '"mixture"\nexperts = 8\nexperts_per_token = 2')
    lists = "pipeline = [1]\ntensor = [2]\ndata = [2]\nexpert = [4]\nmicro_batch = [1]\n"
    problem.write_text(f'{text}\n[plan]\nframework = "megatron-core"\n{lists}')
    found = json.loads(command("plan", problem, "--json", "-o", tmp_path / "plan").out)
    problem.write_text(problem.read_text().replace("expert = [4]", "expert = [2]"))
    cut = json.loads(command("plan", problem, "--json").out)
    assert (found["winner"]["expert"], cut["winner"]["expert"]) == (4, 2)
    assert found["value"] == cut["value"]
    out = tmp_path / "handed"
    assert command("hand-over", tmp_path / "plan", "--to", "megatron-core", "-o", out).status == 0
    told = (out / "megatron.args").read_text()
    assert "--expert-model-parallel-size 4\n--expert-tensor-parallel-size 1\n" in told


def test_experts_over_more_than_the_replicas_are_refused_in_one_line(
    command: Run, problem: Path
) -> None:
    text = SMALL.replace('"llama"', '"mixture"\nexperts = 8\nexperts_per_token = 2')
    lists = "pipeline = [2]\ntensor = [1]\ndata = [2]\nexpert = [4]\n"
    problem.write_text(f'{text}\n[plan]\nframework = "megatron-core"\n{lists}')
    answer = command("plan", problem)
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert "expert 4 does not divide data 2; use expert = [2]" in answer.err


def test_what_there_is_no_time_to_count_is_said(problem: Path) -> None:
    """The counted ones are from all over the lists; no bound is said to be of the others."""
    file = read_cluster_file(problem)
    every, first = all_counted(file), counted_within(file, 0.0)
    kept = [one for one in first if not isinstance(one, UncountedCombination)]
    assert [one.combination for one in first] == [one.combination for one in every]
    assert len(kept) == 1
    half = [*every[:1], *(UncountedCombination(combination=o.combination) for o in every[1:])]
    found = plan_cluster(
        half, lambda one: deployed_space(file, one), PlanOptions(work=1.0), bounded=file.bounded
    )
    assert found.status is not Status.OPTIMAL
    assert f"estimated (1 of {len(every)} deployments)" in found.bounded
    assert found.rows[-1].reason == NOT_COUNTED


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b"])
def test_the_best_are_counted_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of all deployments has one within 10 % of the best estimate of all of them."""
    job = 'card = "h100"\ncards = 64\n[batch]\nsamples = 256\nsequence = 4096'
    file = cluster_file_of_text(f'[model]\nname = "{name}"\n[cluster]\n{job}', name=name)
    order: list[AnyCount] = []

    def noted(self: ClusterFile, one: Combination) -> AnyCount:
        order.append(counted(self.training, one))
        return order[-1]

    monkeypatch.setattr(ClusterFile, "counted", noted)
    listed = counted_within(file)
    assert sorted(map(id, listed)) == sorted(map(id, order))

    def best(counts: list[AnyCount]) -> int:
        every = (order_estimate(o.numbers, microbatches=o.microbatches) for o in legal(counts))
        fits = [one for one in every if not one.is_large]
        return min(each.iteration for each in fits)

    assert best(order[: len(order) // 10]) <= 1.1 * best(order)


def test_all_are_counted_while_none_has_room() -> None:
    """Three times as long; then memory is the reason, not time. The clock is a counter of calls."""
    text = SMALL.replace("128 MiB", "4 MiB")
    file = cluster_file_of_text(text, name="tiny")
    every = all_counted(file)
    assert all(one.reason for one in every)
    roomy = cluster_file_of_text(SMALL, name="small")
    with pytest.MonkeyPatch.context() as patch:
        for given, share in ((file, 3), (roomy, 1)):
            patch.setattr(time, "perf_counter", count(0).__next__)
            found = counted_within(given, len(every) / 4)
            done = sum(not isinstance(one, UncountedCombination) for one in found)
            assert done == pytest.approx(share * len(every) / 4, abs=2)


def test_memory_is_the_reason_where_no_order_fits(command: Run, problem: Path) -> None:
    """1F1B of two stages keeps two microbatches on rank 0: a card with room for one is too small.

    The answer is no word of time, and what it says would do does.
    """
    lists = "tensor = [1]\npipeline = [2]\nmicro_batch = [1]\nscope = ['none']\nchunks = [1]\n"
    lists = f'[plan]\nframework = "megatron-core"\nzero = [1]\nlayers = "even"\n{lists}'
    file = cluster_file_of_text(f"{SMALL}\n{lists}", name="small")
    (one,) = legal(all_counted(file))
    part = one.numbers.layers.stages(one.numbers.cuts[0])[0]
    needs = part.static + 2 * part.activation + one.numbers.beside
    assert one.needed < needs
    text = f"{SMALL}\n{lists}"
    problem.write_text(text.replace('"128 MiB"', str(needs - 1)))
    answer = command("plan", problem)
    assert answer.status == 1
    first = answer.out.splitlines()[0]
    assert first.startswith("DOES NOT FIT  no deployment fits in the orders that it runs (1f1b, ")
    assert "time" not in first
    found = json.loads(command("plan", problem, "--json").out)
    assert found["least_capacity"] == needs
    (row,) = found["candidates"]
    assert row["status"] == "INFEASIBLE"
    assert row["reason"].startswith("its orders do not fit: the least needs ")
    problem.write_text(text.replace('"128 MiB"', str(needs)))
    assert command("plan", problem).status == 0


def test_what_would_fit_is_named_and_does(command: Run, problem: Path) -> None:
    """Two bytes less of each parameter's gradient make the room that is missing."""
    lists = "tensor = [1]\npipeline = [2]\nmicro_batch = [1]\nscope = ['none']\nchunks = [1]\n"
    lists = f'[plan]\nframework = "megatron-core"\nzero = [1]\nlayers = "even"\n{lists}'
    text = f"{SMALL}\n{lists}"
    (one,) = legal(all_counted(cluster_file_of_text(text, name="small")))
    part = one.numbers.layers.stages(one.numbers.cuts[0])[0]
    needs = part.static + 2 * part.activation + one.numbers.beside
    text = text.replace('"128 MiB"', str(needs - 1))
    problem.write_text(text)
    said = command("plan", problem).out.splitlines()[1]
    assert said.startswith("fits     16-bit gradients (")
    assert "full recompute (" in said
    fits = json.loads(command("plan", problem, "--json").out)["fits"]
    assert {one["change"] for one in fits} >= {"16-bit gradients", "full recompute"}
    for one_fit in fits:
        told = f'precision = ["{one_fit.get("precision", "bf16")}"]\n'
        told += "".join(f"{key} = [{one_fit[key]}]\n" for key in ("tensor", "pipeline"))
        told += f"scope = ['{one_fit['scope']}']\n"
        head, _, _ = text.partition("tensor = [1]")
        problem.write_text(f"{head}micro_batch = [1]\nchunks = [1]\n{told}")
        found = json.loads(command("plan", problem, "--json").out)
        assert found["value"] <= one_fit["iteration"]
    problem.write_text(text + 'precision = ["bf16", "bf16-gradients"]\n')
    found = json.loads(command("plan", problem, "--json").out)
    assert found["winner"]["precision"] == "bf16-gradients"
    assert found["candidates"][1]["status"] in ("INFEASIBLE", "BOUNDED")


def test_of_precisions_that_are_as_fast_the_first_is_taken(command: Run, problem: Path) -> None:
    """Where both fit, memory decides nothing; the plan's folder is read with its precision."""
    names = '["bf16", "bf16-gradients"]'
    problem.write_text(f'{SMALL}[plan]\nframework = "megatron-core"\nprecision = {names}\n')
    folder = problem.parent / "plan"
    answer = command("plan", problem, "-o", folder, "--yours", "pipeline=2")
    assert "32-bit gradients" in answer.out.splitlines()[0]
    assert command("verify", folder).status == 0
    problem.write_text(f'{SMALL}[plan]\nframework = "megatron-core"\nprecision = "bf16"\n')
    yours = "pipeline=2 precision=bf16-gradients"
    alone = json.loads(command("plan", problem, "--json", "--yours", yours).out)
    assert "precision" not in alone["winner"]
    assert alone["yours"]["precision"] == "bf16-gradients"


@pytest.mark.parametrize("told", ['["bf16", "fp7"]', '["bf16", "bf16"]', '["bf16", "bpipe"]'])
def test_precisions_that_are_none_are_refused(command: Run, problem: Path, told: str) -> None:
    problem.write_text(f'{SMALL}[plan]\nframework = "megatron-core"\nprecision = {told}\n')
    answer = command("plan", problem)
    assert answer.status == 2
    assert "precision" in answer.err


def test_a_published_run_fits_with_its_gradients_of_sixteen_bits(
    command: Run, problem: Path
) -> None:
    """Llama 3 405B on 1,024 H100 as NVIDIA runs it: TP 8, PP 8, CP 2, 8 chunks of each rank."""
    sizes = {"tensor": 8, "data": 8, "pipeline": 8, "context": 2, "chunks": 8, "zero": 1}
    lists = "".join(f"{key} = [{size}]\n" for key, size in sizes.items())
    problem.write_text(
        '[model]\nname = "llama-3-405b"\n[cluster]\ncard = "h100"\ncards = 1024\n'
        'products = "fp8"\n[batch]\nsamples = 512\nsequence = 8192\n'
        f'[plan]\nframework = "megatron-core"\nmicro_batch = [1]\nscope = ["none"]\n{lists}'
        'precision = ["bf16", "bf16-gradients"]\n'
    )
    found = json.loads(command("plan", problem, "--json").out)
    assert found["winner"]["precision"] == "bf16-gradients"
    assert found["verified"]
    assert found["candidates"][0]["status"] == "FEASIBLE"
