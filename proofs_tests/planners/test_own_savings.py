"""What one runs is timed as its file tells it, and each change is timed alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.own_configuration import OwnConfiguration, own_configuration
from bubbleproof.planners.own_run import NotLegalRun, own_run
from bubbleproof.planners.own_savings import savings
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.conftest import command as command
from proofs_tests.commands.small_cluster import SMALL

FOUR = SMALL.replace("layers = 4", "layers = 16").replace("128 MiB", "2 GiB")


def file_of(samples: int = 8, plan: str = "") -> ClusterFile:
    text = FOUR.replace("samples = 8", f"samples = {samples}")
    return cluster_file_of_text(f"{text}[plan]\nframework = 'megatron-core'\n{plan}", name="own")


def words(text: str) -> OwnConfiguration:
    return own_configuration(text, 4)


def test_its_groups_and_cut_are_those_that_it_tells() -> None:
    """Twelve microbatches on four ranks: G = 5 leaves 2, which Megatron refuses; G = 7 leaves 5."""
    file, own = file_of(12), words("pipeline=4 chunks=2 zero=0")
    cut = (1, 3, 2, 2, 2, 2, 2, 2)
    run = own_run(file, replace(own, group=7, layers=cut))
    assert run.candidate.layers == cut
    even = own_run(file, replace(own, group=7, layers=(2,) * 8))
    others = [own_run(file, replace(own, group=group, layers=(2,) * 8)) for group in (4, 12)]
    assert len({even.on_card, *(each.on_card for each in others)}) == 3  # more in flight with G
    with pytest.raises(NotLegalRun, match=r"in groups of 5 .* use groups of 4"):
        own_run(file, replace(own, group=5))


def test_what_waits_takes_longer_and_is_the_same_candidate() -> None:
    file, own = file_of(), words("tensor=2 pipeline=1")
    plain = own_run(file, own)
    for name in ("exposed_tensor", "exposed_gradient"):
        slow = own_run(file, replace(own, waits=(name,)))
        assert slow.iteration > plain.iteration
        assert slow.known.value == plain.iteration
        assert slow.parts.iteration == slow.iteration


def test_each_change_saves_what_the_changed_run_is_shorter() -> None:
    file = file_of()
    own = own_run(file, replace(words("tensor=2 pipeline=2"), waits=("exposed_tensor",)))
    plan = own_run(file, words("pipeline=2 chunks=2"))
    found = savings(file, own, plan.combination, plan.candidate)
    assert [each.saves for each in found] == sorted((each.saves for each in found), reverse=True)
    told = {each.change: each.saves for each in found}
    on = own_run(file, words("tensor=2 pipeline=2"))
    assert told["--tp-comm-overlap"] == own.iteration - on.iteration
    lone = own_run(file, replace(words("pipeline=2 data=2"), waits=("exposed_tensor",)))
    assert told["tensor 2 -> 1"] == own.iteration - lone.iteration
    assert len(found) <= 3


def test_a_file_is_estimated_beside_the_plan(tmp_path: Path, command: Run) -> None:
    script, file = tmp_path / "run.sh", tmp_path / "job.toml"
    script.write_text(
        "pretrain_gpt.py --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
        "--num-layers 16 --micro-batch-size 1 --global-batch-size 8 --sequence-parallel"
    )
    file.write_text(f"{FOUR}[plan]\nframework = 'megatron-core'\nmicro_batch = [1]\n")
    told = json.loads(command("plan", file, "--yours", script, "--json").out)
    yours = told["yours"]
    assert (yours["tensor"], yours["pipeline"], yours["zero"]) == (2, 2, 0)
    assert yours["value"] > told["value"]
    assert 0 < len(yours["savings"]) <= 3
    lines = command("plan", file, "--yours", script).out.splitlines()
    (line,) = [each for each in lines if each.startswith("yours")]
    assert f"by itself {yours['savings'][0]['change']} saves " in line
    folder = tmp_path / "plan"
    assert command("plan", file, "--yours", script, "-o", folder).status == 0
    assert command("verify", folder).status == 0
    script.write_text("pretrain_gpt.py --num-layers 15")
    answer = command("plan", file, "--yours", script)
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert f"{script}: --num-layers: expected layers 16" in answer.err
