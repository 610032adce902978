"""What a plan goes through where its file lists nothing, or names a framework."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.costs.combinations import Combination, CombinationCosts, legal
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.deployed_content import deployed_file
from bubbleproof.formats.clusters.deployed_space import all_counted, deployed_space
from bubbleproof.formats.clusters.hardware_toml import CALIBRATED
from bubbleproof.formats.clusters.open_choices import OpenChoices
from bubbleproof.formats.clusters.own_configuration import own_configuration
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.frameworks import FRAMEWORKS, framework_choices, framework_of_costs
from bubbleproof.planners.own_run import own_run
from proofs_tests.commands.small_cluster import SMALL


def read(plan: str = "", text: str = SMALL) -> ClusterFile:
    return cluster_file_of_text(text + plan, name="small")


def one_of(file: ClusterFile, **sizes: int) -> CombinationCosts:
    for one in legal(all_counted(file)):
        if all(getattr(one.combination, name) == size for name, size in sizes.items()):
            return one
    raise AssertionError(sizes)


def test_every_framework_of_the_list_says_what_it_runs() -> None:
    for each in FRAMEWORKS:
        assert framework_choices(each.name).zero
    assert framework_of_costs("megatron-core-overlapped") == "megatron-core"
    assert framework_of_costs("megatron-deepspeed") == "deepspeed"
    assert framework_of_costs("own") == "any"


def test_without_a_table_all_is_open_that_megatron_runs() -> None:
    """4 layers on 2 ranks: 1 or 2 chunks; 8 samples are groups of 2 or more, 1 is none."""
    file = read()
    assert file.opened is not None
    assert file.opened.framework == "megatron-core"
    assert {one.combination.zero for one in all_counted(file)} == {0, 1}
    space = deployed_space(file, one_of(file, pipeline=2, data=1, tensor=2, micro_batch=1))
    assert space.chunks == (1, 2)
    assert (space.backward, space.slices, space.placements) == (("whole",), (1,), ("loop",))
    assert space.layers is not None
    assert space.layers.rule.kinds == ("even", "balanced")
    lone = one_of(file, pipeline=2, tensor=2, micro_batch=8)  # one microbatch makes no group of 2
    assert deployed_space(file, lone).chunks == (1,)


def test_any_opens_slices_waves_and_split_backwards() -> None:
    file = read('[plan]\nframework = "any"')
    space = deployed_space(file, one_of(file, pipeline=2, data=1, tensor=2, micro_batch=1))
    assert space.slices == (1, 2, 4)
    assert space.backward == ("whole", "split")
    assert space.placements == ("loop", "wave")
    assert {one.combination.zero for one in all_counted(file)} == {0, 1, 2, 3}
    assert file.training.shares == 4


def test_context_is_open_while_a_card_has_a_thousand_tokens() -> None:
    """2,048 tokens: 2 cards have 1,024 each, 4 have 512."""
    assert read(text=SMALL.replace("sequence = 256", "sequence = 2048")).lists.context == (1, 2)
    assert read().lists.context == (1,)


def test_what_is_listed_stays() -> None:
    file = read('[plan]\nframework = "torch"\nchunks = [2]\nzero = [2, 1]\nbackward = ["split"]')
    assert {one.combination.zero for one in all_counted(file)} == {0, 2} - {0}
    space = deployed_space(file, one_of(file, pipeline=2, micro_batch=1))
    assert (space.chunks, space.backward, space.slices) == ((2,), ("split",), (1,))


def test_a_table_without_a_framework_is_what_it_lists() -> None:
    file = read("[plan]\nzero = [1]")
    assert file.opened is None
    assert file.lists.context == (1,)
    assert deployed_space(file, one_of(file, pipeline=2)).chunks == (1,)
    assert file.training.cluster.runs.name == "megatron-core"


@pytest.mark.parametrize("plan", ["", '[plan]\nframework = "any"\nbackward = ["split"]'])
def test_the_space_is_what_its_problem_file_tells(plan: str) -> None:
    file = read(plan)
    for one in legal(all_counted(file)):
        assert deployed_file(file, one).plan == deployed_space(file, one)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ('framework = "megatron-core"\nzero = [2, 3]', "plan.zero: expected values that megatron"),
        ('framework = "deepspeed"\nchunks = [2]', "plan.chunks: expected values that deepspeed"),
        ('framework = "torch"\nslices = [2]', "plan.slices: expected values that torch runs"),
        ('framework = "automodel"\nplacements = ["wave"]', "plan.placements: expected values"),
        ('framework = "megatron-core"\nbackward = ["split"]', "plan.backward: expected values"),
        ('framework = "megaton"', "must be one of .* .did you mean 'megatron'"),
    ],
)
def test_a_framework_that_cannot_run_what_is_listed_is_refused(plan: str, words: str) -> None:
    with pytest.raises(UnusableInput, match=words):
        read(f"[plan]\n{plan}")


def test_a_cluster_that_names_a_framework_opens_nothing_and_plans_for_it() -> None:
    named = SMALL.replace("[cluster]", '[cluster]\nframework = "megatron-core-0.19"')
    file = read("[plan]\nzero = [1, 3]\nchunks = [1, 2]", named)
    assert file.opened is not None
    assert file.opened.framework == "megatron-core-0.19"
    assert file.training.cluster.runs.name == "megatron-core"
    assert file.orders == ("1f1b", "interleaved G")
    assert file.lists.context == (1,)
    assert {one.combination.zero for one in all_counted(file)} == {1}
    space = deployed_space(file, one_of(file, pipeline=2, micro_batch=1))
    assert (space.chunks, space.backward, space.slices) == ((1, 2), ("whole",), (1,))
    software = SMALL.replace("[cluster]", '[cluster]\nframework = "megatron-core-overlapped"')
    assert read("[plan]\nzero = [1]", software).opened is None


@pytest.mark.parametrize(
    "name", [name for each in FRAMEWORKS for name in each.names if not each.only_named]
)
def test_every_framework_has_its_softwares_times(name: str) -> None:
    framework = framework_choices(name)
    named = SMALL.replace("[cluster]", f'[cluster]\nframework = "{name}"')
    found = cluster_file_of_text(named + "[plan]\nchunks = [1]", name="small").training.cluster
    assert found.runs.name == framework.costs
    assert framework_of_costs(framework.costs) == framework.product


def test_a_cluster_that_names_no_software_has_that_of_its_cards_rows(tmp_path: Path) -> None:
    numbers = re.compile(r"per_node.*network = \"1 GB/s\"", re.DOTALL)

    def usual(cluster: str) -> str:
        text = numbers.sub(cluster, SMALL) + "[plan]\nchunks = [1]"
        return cluster_file_of_text(text, name="small").training.cluster.runs.name

    assert usual('card = "H100"') == "megatron-core-overlapped"
    assert usual('card = "a100-80gb"') == "megatron-core"
    fitted = tmp_path / "own.toml"
    text = (CALIBRATED / "b200.toml").read_text().replace('["megatron-core"]', '["torchtitan"]')
    fitted.write_text(text)
    assert usual(f"hardware = '{fitted}'") == "torchtitan"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("megatron-core-0.18", r"did you mean 'megatron-core-0\.19'"),
        ("megatron-cor", "did you mean 'megatron-core'"),
    ],
)
def test_software_of_an_unknown_name_is_refused_with_the_nearest(name: str, words: str) -> None:
    with pytest.raises(UnusableInput, match=f"cluster.framework: expected .*{words}"):
        read("", SMALL.replace("[cluster]", f'[cluster]\nframework = "{name}"'))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ('family = "falcon"', "no model with attention and feed-forward block side by side"),
        ('family = "llama"\nnorms = 4', "another number of norms"),
        ('family = "llama"\nwindow = 128', "attention to a part of the sequence"),
        ('family = "llama"\nfeed_forward_bias = true', "biases of some linears"),
    ],
)
def test_a_model_that_the_named_framework_has_not_is_refused(model: str, words: str) -> None:
    text = SMALL.replace('family = "llama"', model)
    read("", text)  # of no named framework
    with pytest.raises(UnusableInput, match=f"plan.framework: .*{words}"):
        read('[plan]\nframework = "megatron-core"', text)


def test_a_plan_for_torchtitan_shards_what_experts_lie_over() -> None:
    one = Combination(
        tensor=1, data=8, pipeline=4, micro_batch=1, zero=0, scope="none", context=1, expert=8
    )
    opened = OpenChoices(framework="torchtitan", listed=frozenset(), layers=48)
    assert not opened.takes(one)
    assert opened.takes(replace(one, zero=2))
    automodel = OpenChoices(framework="automodel", listed=frozenset(), layers=48)
    assert not automodel.takes(one)  # FSDP alone runs pipelines, and shards over replicas
    assert automodel.takes(replace(one, zero=2))


@pytest.mark.parametrize(
    ("framework", "software"),
    [
        ("torchtitan", "torchtitan"),
        ("automodel", "automodel"),
        ("torch", "torch"),
        ("megatron-core", "megatron-core-overlapped"),
        ("any", "megatron-core-overlapped"),
    ],
)
def test_a_plan_for_a_framework_is_timed_as_that_framework(framework: str, software: str) -> None:
    """What hand-over writes switches on what these times assume, and no other's overlaps."""
    plan = f"[plan]\nframework = '{framework}'\nzero = [2]\nscope = ['none']\n"
    if framework == "megatron-core":
        plan = plan.replace("zero = [2]", "zero = [1]")
    assert read(plan).training.cluster.runs.name == software


def test_what_is_told_may_spread_experts_over_tensor_ranks() -> None:
    """Megatron's groups of experts go over tensor x data ranks: 4 of 2 x 2. An open file that lists
    no experts leaves it out, as a double of expert 2; a configuration of one's own does run it."""
    moe = SMALL.replace(
        'family = "llama"', 'family = "mixture"\nexperts = 4\nexperts_per_token = 2'
    )
    moe = moe.replace("cards = 4", "cards = 8").replace("128 MiB", "1 GiB")
    file = read(text=moe)
    own = own_configuration("tensor=2 pipeline=2 expert=4", 8)
    assert not file.runs(own.combination)
    assert file.with_own(own).own == own
    run = own_run(file, own)
    assert (run.reason, run.fits) == ("", True)
