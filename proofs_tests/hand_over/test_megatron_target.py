"""Megatron's arguments where Megatron is installed, what it lacks, and plans that it is given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bubbleproof as bp
from bubbleproof.costs.combinations import CombinationCosts, counted
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.plans.plan_json import read_plan
from bubbleproof.hand_over.handed import HandedFiles
from bubbleproof.hand_over.handed_over import handed_schedule
from bubbleproof.hand_over.megatron_target import ARGUMENTS, megatron_files
from bubbleproof.planners.cluster_planned import ClusterPlan
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.commands.test_hand_over import handed

# A reader that has Megatron's names and refuses three tensor ranks.
PARSER = """
import argparse
def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensor-model-parallel-size", type=int)
    return parser.parse_known_args()[0]
def validate_args(args, defaults):
    assert args.tensor_model_parallel_size != 3, "world size (8) is not divisible"
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of Megatron's names, for this process and those that it starts."""
    files = {
        "core/__init__.py": "__version__ = '0.19.9'",
        "../megatron_core-0.19.9.dist-info/METADATA": "Name: megatron-core\nVersion: 0.19.9\n",
        "training/__init__.py": "",
        "training/arguments.py": PARSER,
        "training/argument_utils.py": "core_transformer_config_from_args = lambda args: None",
    }
    for name, text in files.items():
        path = tmp_path / "wheel" / "megatron" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "wheel")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "wheel"))
    return tmp_path


@pytest.mark.usefixtures("installed")
def test_where_megatron_is_installed_it_loads_what_is_written() -> None:
    good = handed("1f1b", (7, 9, 9, 7), p=4, m=8)
    assert megatron_files(good).read.loaded == ("megatron-core 0.19.9 reads megatron.args",)
    assert good.planned is not None
    three = good.planned.deployment.with_changes(tensor=3)
    with pytest.raises(ValueError, match=r"0\.19\.9 refuses it: .*not divisible"):
        megatron_files(replace(good, planned=replace(good.planned, deployment=three)))


def test_a_parser_that_cannot_be_asked_is_told(installed: Path) -> None:
    (installed / "wheel/megatron/training/arguments.py").write_text("import nothing_of_this_name")
    told = megatron_files(handed("1f1b", (7, 9, 9, 7), p=4, m=8)).read.unloaded
    assert "could not be asked" in told
    assert "nothing_of_this_name" in told


def test_without_megatron_nothing_is_said_of_its_parser() -> None:
    made = megatron_files(handed("1f1b", (7, 9, 9, 7), p=4, m=8))
    assert (made.read.loaded, made.read.unloaded) == ((), "megatron-core is not installed here")


def planned(text: str, folder: Path) -> HandedFiles:
    file = folder / "job.toml"
    file.write_text(text)
    bp.write(folder / "plan", bp.plan(file, work=1))
    return megatron_files(handed_schedule(read_plan(folder / "plan" / "plan.json")))


ONE = "pipeline = [4]\ntensor = [1]\ndata = [1]\nmicro_batch = [1]\nzero = [0]\nscope = ['none']\n"


def test_what_megatron_waits_for_is_told_in_milliseconds(tmp_path: Path) -> None:
    """Two messages of each of 8 microbatches, of as long as the plan counts one."""
    text = f"{SMALL}[plan]\nframework = 'megatron-core'\nchunks = [1]\n{ONE}"
    losses = planned(text, tmp_path).losses
    file = cluster_file_of_text(text, name="x")
    handed = handed_schedule(read_plan(tmp_path / "plan" / "plan.json"))
    assert handed.planned is not None
    assert isinstance(handed.planned.costs, CombinationCosts)
    (one,) = {handed.planned.costs.combination}
    costs = counted(file.training, one)
    assert isinstance(costs, CombinationCosts)
    waited = 2 * 8 * costs.numbers.latency / 1000
    assert any(f"at most {waited:,.1f} ms a step" in loss for loss in losses)


def test_a_cluster_that_names_megatron_plans_megatrons_orders(tmp_path: Path) -> None:
    """Five microbatches on four ranks: of two chunks Megatron runs G = 5 alone, and G = 4 not."""
    of = SMALL.replace("layers = 4", "layers = 8").replace("samples = 8", "samples = 5")
    of = of.replace("[cluster]", "[cluster]\nframework = 'megatron-core-0.19'")
    text = f"{of}[plan]\nchunks = [2]\nlayers = 'even'\n{ONE}"
    group = "--microbatch-group-size-per-virtual-pipeline-stage 5\n"
    assert group in planned(text, tmp_path).files[ARGUMENTS]
    free = text.replace("[plan]", "[plan]\nframework = 'any'\nslices = [1]\nbackward = ['whole']")
    with pytest.raises(ValueError, match="is neither"):
        planned(free, tmp_path)


LISTS = st.fixed_dictionaries(
    {
        "samples": st.integers(1, 12),
        "chunks": st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
        "pipeline": st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=3, unique=True),
        "layers": st.sampled_from([4, 6, 8]),
        "model": st.sampled_from(["llama", "gpt", "mixture"]),
        "expert": st.sampled_from([1, 2, 4]),
        "is_named": st.booleans(),
    }
)


@given(LISTS)
@settings(max_examples=25)
def test_no_plan_for_megatron_is_refused_by_hand_over(
    tmp_path_factory: pytest.TempPathFactory, drawn: dict[str, object]
) -> None:
    text = SMALL.replace('"llama"', f'"{drawn["model"]}"')
    text = text.replace("layers = 4", f"layers = {drawn['layers']}")
    text = text.replace("samples = 8", f"samples = {drawn['samples']}")
    lists = f"chunks = {drawn['chunks']}\npipeline = {drawn['pipeline']}\n"
    if drawn["model"] == "mixture":
        text = text.replace("[cluster]", "experts = 8\nexperts_per_token = 2\n[cluster]")
        lists += f"expert = [{drawn['expert']}]\n"
    if drawn["is_named"]:
        lists += "framework = 'megatron-core'\n"
    else:
        text = text.replace("[cluster]", "[cluster]\nframework = 'megatron-core'")
    text += f"[plan]\n{lists}"
    folder = tmp_path_factory.mktemp("drawn")
    try:
        found = bp.plan(_written(folder, text), work=1)
    except ValueError:  # no deployment of the lists
        return
    if isinstance(found, ClusterPlan):
        bp.write(folder / "plan", found)
        made = megatron_files(handed_schedule(read_plan(folder / "plan" / "plan.json")))
        assert made.files[ARGUMENTS]


def _written(folder: Path, text: str) -> Path:
    (folder / "job.toml").write_text(text)
    return folder / "job.toml"


MIXED = (
    'experts = 8\nexperts_per_token = 2\npattern = ["first (moe block)*1 moe"]\n'
    "kinds.moe = {}\n"
    "kinds.first = { experts = 0, experts_per_token = 0, feed_forward = 256 }\n"
    "kinds.block = { experts = 0, experts_per_token = 0, feed_forward = 256 }\n[cluster]"
)


def test_layers_with_and_without_experts_are_a_list(tmp_path: Path) -> None:
    """Of four layers the first and third have no experts, and a block of 256 numbers."""
    text = SMALL.replace('"llama"', '"mixture"').replace("128 MiB", "1 GiB")
    text = text.replace("[cluster]", MIXED)
    files = planned(f"{text}[plan]\nframework = 'megatron-core'\nchunks = [1]\n{ONE}", tmp_path)
    lines = files.files[ARGUMENTS].splitlines()
    assert "--moe-layer-freq ([0]*1+[1]*1+[0]*1+[1]*1)" in lines
    assert "--ffn-hidden-size 256" in lines
    assert "--num-experts 8" in lines
    assert "--pipeline-model-parallel-layout Et*2|t|t|L" in lines
