"""Plans handed to each framework: files that say what was planned, training with the same bits."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import known_model
from bubbleproof.costs.layer_extras import layer_extras
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.hand_over import own_reader, trained_check
from bubbleproof.hand_over.automodel_target import CONFIG as YAML
from bubbleproof.hand_over.automodel_target import automodel_files
from bubbleproof.hand_over.handed import HandedSchedule, PlannedModel
from bubbleproof.hand_over.megatron_target import megatron_files
from bubbleproof.hand_over.torch_target import CHECK, STAGES, TABLE, TRAIN, torch_files
from bubbleproof.hand_over.torchtitan_target import (
    CONFIG,
    MODEL,
    WORDS,
    torchtitan_files,
    torchtitan_toml_files,
)
from bubbleproof.platforms import has_fork_server
from bubbleproof.theory.families import families, make_parameters
from proofs_tests.commands import forked_torchrun
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.sized import sampled, sized
from proofs_tests.structure import code_lines

# Four stages; two chunks on each of two ranks; two replicas under ZeRO 1.
PLANS = {
    "deep": "pipeline = [4]\ntensor = [1]\ndata = [1]\nchunks = [1]\n",
    "chunks": 'pipeline = [2]\ntensor = [2]\ndata = [1]\nchunks = [2]\nplacements = ["loop"]\n',
    "replicas": "pipeline = [2]\ntensor = [1]\ndata = [2]\nzero = [1]\nchunks = [1]\n",
}


def handed(name: str, layers: tuple[int, ...] = (), **params: int) -> HandedSchedule:
    """A family's schedule, of Llama 2 7B where layers are told."""
    member = families()[name].member(make_parameters(params))
    given = ScheduleFile.of(member.problem, member.schedule, pipeline=member.pipeline, name=name)
    model = replace(known_model("llama-2-7b").model, layers=sum(layers)) if layers else None
    at = Deployment(pipeline=params["p"], data=2, zero=1, tensor=2, sequence=4096)
    planned = None
    if model is not None:
        planned = PlannedModel(model=model, deployment=at, layers=layers, samples=2 * params["m"])
    return HandedSchedule(name=name, given=given, pipeline=member.pipeline, planned=planned)


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_is_handed_to_each_target(plan: str, tmp_path: Path, command: Run) -> None:
    file, folder = tmp_path / "cluster.toml", tmp_path / "plan"
    file.write_text(f"{SMALL}[plan]\n{PLANS[plan]}")
    assert command("plan", file, "--work", 1, "-o", folder).status == 0
    table = (folder / TABLE).read_text()
    winner = json.loads((folder / "plan.json").read_text())["winner"]
    for target in ("torch", "torchtitan-0.3", "automodel-0.7"):
        out = tmp_path / target
        answer = command("hand-over", folder, "--to", target, "-o", out, "--json")
        told = json.loads(answer.out)
        assert answer.status == 0
        assert set(told["files"]) == {path.name for path in out.iterdir()}
        assert (out / TABLE).read_text() == table
        assert all(loss in (out / "UNSUPPORTED.md").read_text() for loss in told["losses"])
    stages = json.loads((tmp_path / "torch" / STAGES).read_text())
    layers = [sum(name.startswith("layers.") for name in part) for part in stages["modules"]]
    assert layers == winner["layers"]
    words = options((tmp_path / "torchtitan-0.3" / WORDS).read_text().split())
    parts = words["parallelism.module_fqns_per_model_part"]
    assert [part.replace("lm_head", "output").split(",") for part in parts] == stages["modules"]
    assert words["training.global_batch_size"] == ["8"]
    assert words["training.disable_cuda_graphs"] == ["activation-checkpoint:none"]  # a subcommand
    (replicas,) = words["parallelism.data_parallel_replicate_degree"]
    (batch,) = words["training.local_batch_size"]
    assert int(batch) == stages["microbatches"] * stages["samples"] == 8 // int(replicas)
    yaml = pytest.importorskip("yaml", reason="transformers brings it")
    recipe = yaml.safe_load((tmp_path / "automodel-0.7" / YAML).read_text())
    assert recipe["step_scheduler"]["global_batch_size"] == 8
    assert recipe["step_scheduler"]["local_batch_size"] == int(batch)
    assert "_target_" not in recipe["distributed"]["pipeline"]


def options(words: Sequence[str]) -> dict[str, list[str]]:
    """The words of a command line by the option that they follow."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            found[word[2:]] = []
        else:
            found[[*found][-1]].append(word)
    return found


def llama(layers: tuple[int, ...] = (7, 9, 9, 7)) -> HandedSchedule:
    """Llama 3 8B on four ranks."""
    given = handed("1f1b", layers, p=len(layers), m=8)
    assert given.planned is not None
    model = known_model("llama-3-8b").model
    return replace(given, planned=replace(given.planned, model=model))


def test_both_versions_of_torchtitan_are_told_the_same_by_other_names() -> None:
    words = options(torchtitan_files(llama()).files[WORDS].split())
    config = tomllib.loads(torchtitan_toml_files(llama()).files[CONFIG])
    assert (words["module"], words["config"]) == (["llama3"], ["llama3_8b"])
    assert config["model"] == {"name": "llama3", "flavor": "8B"}
    for section in ("parallelism", "training"):
        for name, value in config[section].items():
            told = words[f"{section}.{name}"]
            if name == "module_fqns_per_model_part":
                assert [part.replace("lm_head", "output").split(",") for part in told] == value
            else:
                assert told == [str(value)]
    with pytest.raises(ValueError, match=r"has models by name alone, .* use torchtitan-0\.3"):
        torchtitan_toml_files(handed("1f1b", (1, 1), p=2, m=2))


def test_a_model_that_torchtitan_has_not_is_built_of_its_sizes() -> None:
    files = torchtitan_files(handed("1f1b", (16, 16), p=2, m=4)).files
    assert "--module planned_model\n--config planned\n" in files[WORDS]
    sizes = json.loads(files[MODEL])
    # Llama 2 7B: 32 layers of 4,096 numbers, 32 heads of 128, blocks of 11,008.
    assert {"layers": 32, "hidden": 4096, "heads": 32, "feed_forward": 11008}.items() <= (
        sizes.items()
    )
    assert "bubbleproof" not in files["planned_model.py"]


def test_one_rank_has_no_pipeline_and_no_table() -> None:
    for writer in (torchtitan_files, automodel_files):
        made = writer(handed("1f1b", (4,), p=1, m=4))
        assert not made.has_table
        assert TABLE not in made.files
        assert any("one rank has no pipeline" in loss for loss in made.losses)
    assert "pipeline:" not in automodel_files(handed("1f1b", (4,), p=1, m=4)).files[YAML]


def test_automodel_is_given_as_many_microbatches_as_ranks() -> None:
    with pytest.raises(ValueError, match="4 ranks with as many microbatches or more, not 3"):
        automodel_files(handed("1f1b", (1,) * 4, p=4, m=3))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"version": "0.3.0", "told": {}}, "torchtitan 0.3.0 reads schedule.csv and torchtitan"),
        (
            {"version": "0.3.0", "refused": "ValueError: no"},
            "torchtitan 0.3.0 refuses it: ValueError: no",
        ),
        ({"said": "ImportError: triton"}, "could not be asked: ImportError: triton"),
    ],
)
def test_what_was_written_is_read_by_the_targets_own_code_where_it_is_installed(
    answer: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert torchtitan_files(llama()).read.unloaded == "torchtitan is not installed here"
    monkeypatch.setattr(own_reader, "version", lambda _: "0.3.0")
    monkeypatch.setattr(own_reader, "answer_of", lambda *_: answer)
    if "refused" in answer:
        with pytest.raises(ValueError, match=said):
            torchtitan_files(llama())
        return
    made = torchtitan_files(llama())
    assert said in " ".join((*made.read.loaded, made.read.unloaded))
    assert bool(made.read.loaded) == ("told" in answer)
    monkeypatch.setattr(own_reader, "version", lambda _: "0.4.1")
    assert torchtitan_files(llama()).read.unloaded == "torchtitan 0.4.1 is installed here, not 0.3"


def test_a_script_that_prints_no_answer_is_told() -> None:
    """Torchtitan is not installed here: its reader's imports fail, and that is the answer."""
    told = own_reader.answer_of("read_torchtitan", {}, ["1", "--module", "llama3"])
    assert "PackageNotFoundError" in str(told["said"])


@pytest.fixture
def torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torchrun itself only in a full sweep, and where processes cannot be forked."""
    if sized(has_fork_server(), full=False):
        monkeypatch.setattr("subprocess.run", forked_torchrun.run)


@pytest.mark.torch
@pytest.mark.sweep
@pytest.mark.usefixtures("torchrun")
def test_what_was_handed_over_trains_with_the_bits_of_the_loop(
    tmp_path: Path, command: Run
) -> None:
    answer = command(
        "hand-over",
        "zb-v",
        "p=2",
        "m=4",
        "--to",
        "torch",
        "-o",
        tmp_path / "x",
        "--check",
        "--json",
    )
    assert answer.status == 0
    (check,) = json.loads(answer.out)["checks"]
    assert check["holds"]
    assert check["what"].startswith("10 steps")


@pytest.mark.torch
@pytest.mark.sweep
@pytest.mark.usefixtures("torchrun")
@pytest.mark.parametrize(
    ("script", "right", "wrong", "said"),
    sampled(
        [
            (TRAIN, "scale_grads=scale", "scale_grads=not scale", "the gradient of"),
            (CHECK, "float(loss.detach())", "2 * float(loss.detach())", "the losses differ"),
        ],
        every=2,
    ),
)
def test_what_trains_otherwise_is_told(
    script: str, right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    for name, text in torch_files(handed("1f1b", p=1, m=2)).files.items():
        assert name != script or right in text
        changed = text.replace(right, wrong) if name == script else text
        (tmp_path / name).write_text(changed)
    assert said in trained_check._difference(tmp_path, 1)


def test_scripts_stand_alone_and_are_short() -> None:
    files = torch_files(handed("1f1b", p=2, m=2)).files
    assert "bubbleproof" not in files[TRAIN] + files[CHECK]
    assert code_lines(files[TRAIN]) <= 80


def test_megatron_gets_its_own_orders_alone() -> None:
    plain = megatron_files(handed("1f1b", (7, 9, 9, 7), p=4, m=8)).files["megatron.args"]
    assert "--pipeline-model-parallel-layout Et*7|t*9|t*9|t*7L\n" in plain
    assert "--num-layers 32\n" in plain
    assert "--use-distributed-optimizer\n" in plain
    assert "--sequence-parallel\n" in plain
    chunked = megatron_files(handed("interleaved", (2, 2, 2, 2), p=2, m=4, v=2))
    assert (
        "--microbatch-group-size-per-virtual-pipeline-stage 2\n" in chunked.files["megatron.args"]
    )
    rest = handed("interleaved", (2,) * 8, p=4, m=18, v=2, G=7)
    text = megatron_files(rest).files["megatron.args"]
    assert "--microbatch-group-size-per-virtual-pipeline-stage 7\n" in text
    for other in (
        handed("gpipe", (1, 1), p=2, m=4),
        handed("zb-h1", (1, 1), p=2, m=4),
        handed("zb-v", (1, 1, 1, 1), p=2, m=4),
        handed("interleaved", (1,) * 6, p=3, m=4, v=2),
    ):
        with pytest.raises(ValueError, match=r"hand-over to megatron: it runs 1F1B .* use --to"):
            megatron_files(other)


def test_megatron_refuses_what_its_arguments_do_not_say() -> None:
    good = handed("1f1b", (1, 1), p=2, m=4)
    assert good.planned is not None
    sharded = replace(good.planned, deployment=good.planned.deployment.with_changes(zero=3))
    with pytest.raises(ValueError, match=r"ZeRO 3 .*; plan with zero = \[0, 1\]"):
        megatron_files(replace(good, planned=sharded))
    for model, said in (
        ("falcon-40b", "no model with attention and feed-forward block side by side"),
        ("falcon-7b", "no model with attention"),
    ):
        other = replace(good.planned, model=known_model(model).model)
        with pytest.raises(ValueError, match=said):
            megatron_files(replace(good, planned=other))
    counted = replace(
        good.planned, deployment=good.planned.deployment.with_changes(precision="bpipe")
    )
    with pytest.raises(ValueError, match="no precision bpipe; plan with one of bf16"):
        megatron_files(replace(good, planned=counted))


def test_megatron_is_told_of_norms_of_queries_and_keys() -> None:
    """Of each head's own, as Qwen3 has them; of all heads at once, as OLMo 2, it has none."""
    good = handed("1f1b", (2, 2), p=2, m=4)
    assert good.planned is not None
    shape = {"hidden": 4096, "width": 128, "heads": 32, "kv_heads": 32}
    for extras in (layer_extras(shape, qk_norm="head"), layer_extras(shape, qk_norm="whole")):
        model = replace(good.planned.model, extras=extras)
        normed = replace(good, planned=replace(good.planned, model=model))
        if extras[0].vectors == 128:
            assert "--qk-layernorm\n" in megatron_files(normed).files["megatron.args"]
            continue
        with pytest.raises(ValueError, match="no model with query norm of that kind"):
            megatron_files(normed)
    assert "--qk-layernorm" not in megatron_files(good).files["megatron.args"]


def test_megatron_is_told_of_latent_attention() -> None:
    """DeepSeek-V3: 512 and 1,536 numbers, heads of 128 + 64 and 128; three dense layers."""
    good = handed("1f1b", (31, 30), p=2, m=4)
    assert good.planned is not None
    latent = replace(good.planned, model=known_model("deepseek-v3").model)
    text = megatron_files(replace(good, planned=latent)).files["megatron.args"]
    for line in (
        "--multi-latent-attention",
        "--kv-lora-rank 512",
        "--q-lora-rank 1536",
        "--qk-head-dim 128",
        "--qk-pos-emb-head-dim 64",
        "--v-head-dim 128",
        "--moe-layer-freq ([0]*3+[1]*58)",
    ):
        assert f"{line}\n" in text


def test_megatron_is_told_of_experts() -> None:
    good = handed("1f1b", (16, 16), p=2, m=4)
    assert good.planned is not None
    mixed = replace(good.planned, model=known_model("mixtral-8x7b").model)
    mixed = replace(mixed, deployment=mixed.deployment.with_changes(data=4, expert=4))
    text = megatron_files(replace(good, planned=mixed)).files["megatron.args"]
    # Mixtral 8x7B: eight experts of 14,336, two for a token
    for line in (
        "--num-experts 8",
        "--moe-router-topk 2",
        "--moe-ffn-hidden-size 14336",
        "--expert-model-parallel-size 4",
    ):
        assert f"{line}\n" in text
    assert "--moe-layer-freq" not in text
    first = replace(mixed.model, dense_layers=1, dense_feed_forward=512)
    text = megatron_files(replace(good, planned=replace(mixed, model=first))).files["megatron.args"]
    assert "--moe-layer-freq ([0]*1+[1]*31)\n" in text
    assert "--ffn-hidden-size 512\n" in text


def test_placements_that_a_framework_has_no_name_for_are_refused() -> None:
    names = {
        name: torchtitan_files(handed(name, layers, **params)).files[WORDS]
        for name, layers, params in (
            ("1f1b", (1, 1), {"p": 2, "m": 2}),
            ("interleaved", (1,) * 4, {"p": 2, "m": 2, "v": 2}),
            ("zb-v", (1,) * 4, {"p": 2, "m": 2}),
        )
    }
    for name, said in (("1f1b", "1F1B"), ("interleaved", "Interleaved1F1B"), ("zb-v", "ZBVZ")):
        assert f"pipeline_parallel_schedule {said}" in names[name]
    with pytest.raises(ValueError, match="in a loop or, of two chunks, in a V"):
        torchtitan_files(handed("hanayo", (1,) * 8, p=2, m=2, v=4))
    with pytest.raises(ValueError, match="in a loop alone"):
        automodel_files(handed("zb-v", (1,) * 4, p=2, m=2))


def test_tied_weights_are_refused_where_the_runtime_does_not_exchange_them() -> None:
    good = handed("1f1b", (1, 1), p=2, m=2)
    assert good.planned is not None
    tied = replace(
        good, planned=replace(good.planned, model=replace(good.planned.model, tied=True))
    )
    for writer in (torch_files, torchtitan_files, automodel_files):
        with pytest.raises(ValueError, match="ties head and embedding"):
            writer(tied)
    assert "--untie" not in megatron_files(tied).files["megatron.args"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("1f1b", "p=2", "m=2", "--to", "tourch"), "did you mean 'torch'?"),
        (("1f1b", "p=2", "m=2", "--to", "megatron"), "needs a plan of a model"),
        (("1f1b", "p=2", "--to", "torch"), "parameter m is missing"),
        (("svpp", "p=2", "m=2", "s=2", "--to", "torch"), "a table has no slices"),
        (("bpipe", "p=4", "m=6", "--to", "torch"), "EVICT"),
        (("nothing.json", "--to", "torch"), "nothing.json"),
    ],
)
def test_what_cannot_be_handed_over_is_one_line(
    words: tuple[str, ...], said: str, tmp_path: Path, command: Run
) -> None:
    answer = command("hand-over", *words, "-o", tmp_path / "out")
    assert answer.status == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_more_ranks_than_one_machine_trains_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 16 processes, the plan has 17"):
        trained_check.trained_check(handed("1f1b", p=17, m=17))
