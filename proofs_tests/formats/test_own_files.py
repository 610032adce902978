"""What one runs today: read from what each framework is started with, or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.costs.combinations import TrainingJob
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.formats.clusters.own_configuration import OwnConfiguration
from bubbleproof.formats.clusters.own_files import own_of

JOB = """[model]
name = "llama-3-70b"
[cluster]
card = "h100"
cards = 64
[batch]
samples = 36
sequence = 8192
"""
SCRIPT = """#!/bin/bash
# --tensor-model-parallel-size 8
TP=4
export PP=4
GPT_ARGS=(
    --tensor-model-parallel-size $TP   # of a node
    --pipeline-model-parallel-size ${PP:-2}
    --context-parallel-size 2
    --num-layers 80
    --hidden-size 8192 --num-attention-heads 64
    --seq-length=8192
    --num-layers-per-virtual-pipeline-stage 4 \\
    --microbatch-group-size-per-virtual-pipeline-stage 9
    --micro-batch-size 1
    --global-batch-size 36
    --bf16 --use-distributed-optimizer --sequence-parallel
)
torchrun --nproc-per-node 8 pretrain_gpt.py "${GPT_ARGS[@]}" --data-path data
"""
TITAN = """torchrun -m torchtitan.train --module llama3 --config llama3_70b \\
  --parallelism.tensor-parallel-degree 4 --parallelism.pipeline-parallel-degree=4 \\
  --parallelism.pipeline-parallel-schedule GPipe --training.seq-len 8192 \\
  --parallelism.data-parallel-shard-degree 1 --parallelism.data-parallel-replicate-degree 4 \\
  activation-checkpoint:selective
"""
TITAN_TOML = """[training]
seq_len = 8192
[parallelism]
tensor_parallel_degree = 4
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 1
module_fqns_per_model_part = [["tok_embeddings", "layers.0"], ["layers.1", "layers.2"],
                              ["layers.3"], ["norm", "output"]]
[activation_checkpoint]
mode = "full"
"""
AUTOMODEL = """step_scheduler:
  global_batch_size: 36
distributed:
  strategy: fsdp2
  tp_size: 4
  pp_size: 4   # stages
  dp_size: none
  activation_checkpointing: true
  pipeline:
    pp_schedule: interleaved1f1b
    pp_microbatch_size: 1
"""


@pytest.fixture
def job() -> TrainingJob:
    return cluster_file_of_text(JOB, name="job").training


def own(folder: Path, job: TrainingJob, text: str, name: str = "own.txt") -> OwnConfiguration:
    (folder / name).write_text(text)
    return own_of(str(folder / name), job)


def sizes(found: OwnConfiguration) -> tuple[int, ...]:
    at = found.combination
    return (at.tensor, at.pipeline, at.context, at.data, at.micro_batch, at.zero, found.chunks)


def test_a_script_of_megatron_is_read_with_its_variables(tmp_path: Path, job: TrainingJob) -> None:
    """80 layers, 4 ranks and 4 layers of a stage: 5 chunks; neither overlap is switched on."""
    found = own(tmp_path, job, SCRIPT)
    assert sizes(found) == (4, 4, 2, 2, 1, 1, 5)
    assert (found.group, found.layers, found.combination.scope) == (9, (4,) * 20, "none")
    assert found.waits == ("exposed_tensor", "exposed_gradient")
    on = SCRIPT.replace(
        "--bf16", "--bf16 --tp-comm-overlap --overlap-grad-reduce --fp8-format e4m3"
    )
    found = own(tmp_path, job, on)
    assert (found.waits, found.products, found.remarks) == ((), "fp8", ())
    rough = on.replace("--bf16", "--no-overlap-p2p-communication").replace("--tp-comm-overlap", "")
    found = own(tmp_path, job, rough.replace("--sequence-parallel", ""))
    assert [each.split()[-1] for each in found.remarks] == [
        "bfloat16",
        "--sequence-parallel",
        "computation",
    ]


@pytest.mark.parametrize(
    ("old", "new", "layers"),
    [  # 80 layers on 4 ranks; embedding and loss counted: 82 in 2 x 41
        ("--num-layers-per-virtual-pipeline-stage 4", "", (20,) * 4),
        (
            "--num-layers-per-virtual-pipeline-stage 4",
            "--decoder-first-pipeline-num-layers 19 --decoder-last-pipeline-num-layers 17",
            (19, 22, 22, 17),
        ),
        (
            "--num-layers-per-virtual-pipeline-stage 4",
            "--pipeline-model-parallel-layout 'Et*19|t*20|t*20|t*21L'",
            (19, 20, 20, 21),
        ),
        (
            "--num-layers-per-virtual-pipeline-stage 4",
            "--num-virtual-stages-per-pipeline-rank 2",
            (10,) * 8,
        ),
    ],
)
def test_stages_of_megatron_are_as_it_cuts_them(
    old: str, new: str, layers: tuple[int, ...], tmp_path: Path, job: TrainingJob
) -> None:
    assert own(tmp_path, job, SCRIPT.replace(old, new)).layers == layers


def test_embedding_and_loss_may_count_as_layers(tmp_path: Path, job: TrainingJob) -> None:
    """80 + 2 = 82 on two ranks: 41 each, one of them the embedding here and the loss there."""
    text = SCRIPT.replace("--num-layers-per-virtual-pipeline-stage 4", "").replace("PP=4", "PP=2")
    both = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"
    assert own(tmp_path, job, text.replace("--bf16", both)).layers == (40, 40)


def test_layouts_alone_and_among_words(tmp_path: Path, job: TrainingJob) -> None:
    text = "Et*19|t*20|t*20|t*21L\n"
    words = "tensor=4 data=2 pipeline=2 context=4 layout="
    (tmp_path / "my.layout").write_text(text)
    for layout in (text.strip(), str(tmp_path / "my.layout")):
        found = own_of(words + layout, job)
        assert (found.layers, found.chunks) == ((19, 20, 20, 21), 2)
    more = cluster_file_of_text(JOB.replace("36", "64"), name="job").training
    found = own(tmp_path, more, text)
    assert sizes(found) == (1, 4, 1, 16, 1, 1, 1)
    assert "tells no sizes" in found.remarks[0]


def test_torchtitan_is_read_from_its_command_and_from_its_file(
    tmp_path: Path, job: TrainingJob
) -> None:
    found = own(tmp_path, job, TITAN)
    assert (sizes(found), found.order) == ((4, 4, 1, 4, 1, 0, 1), "gpipe")
    assert found.combination.scope == "attention"
    assert "selective recomputation" in found.remarks[0]
    more = cluster_file_of_text(JOB.replace("36", "64"), name="job").training
    found = own(tmp_path, more, TITAN_TOML)
    assert (sizes(found), found.order) == ((4, 2, 1, 8, 1, 2, 2), "interleaved")
    assert (found.layers, found.combination.scope) == ((1, 2, 1, 0), "full")


def test_torchtitans_layers_of_a_stage_count_the_ends(tmp_path: Path, job: TrainingJob) -> None:
    """80 + 1 + 1 = 82 in stages of 11 are 8, two on each of 4 ranks; of 12 they are 7."""
    text = TITAN.replace("GPipe", "Interleaved1F1B")
    more = "--parallelism.pipeline-parallel-layers-per-stage"
    assert own(tmp_path, job, text.replace(" activation", f" {more} 11 activation")).chunks == 2
    with pytest.raises(ValueError, match="divide by 4 ranks, found 12, which make 7"):
        own(tmp_path, job, text.replace(" activation", f" {more} 12 activation"))


def test_automodel_is_read_from_its_yaml(tmp_path: Path, job: TrainingJob) -> None:
    found = own(tmp_path, job, AUTOMODEL)
    assert (sizes(found), found.order) == ((4, 4, 1, 4, 1, 2, 2), "interleaved")
    assert found.combination.scope == "full"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SCRIPT.replace("--bf16", "--tensor-model-parallel-size 8"), "one value, found 4 and 8"),
        (SCRIPT.replace("--bf16", "--overlap-param-gather"), "--overlap-grad-reduce beside it"),
        (
            SCRIPT.replace("--sequence-parallel", "--tp-comm-overlap"),
            "--tp-comm-overlap: expected --sequence-parallel beside it",
        ),
        (SCRIPT.replace("-size $TP", "-size four"), "a whole number of 1 or more, found 'four'"),
        (SCRIPT.replace("--context-p", "--contekst-p"), "such as --context-parallel-size"),
        (SCRIPT.replace("=8192", "=4096"), "--seq-length: expected sequence 8192"),
        (SCRIPT.replace("layers 80", "layers 64"), "--num-layers: expected layers 80"),
        (SCRIPT.replace("batch-size 36", "batch-size 32"), "--global-batch-size: expected samples"),
        (SCRIPT.replace("stage 4", "stage 3"), "whole stages of 80, found 3"),
        (SCRIPT.replace("PP=4", "PP=3"), "found 4"),
        (
            SCRIPT.replace("--bf16", "--pipeline-model-parallel-layout 'Et*40|t*40L'"),
            "no --num-layers-per-virtual-pipeline-stage beside it, found both; leave one out",
        ),
        (
            SCRIPT.replace("--num-layers-per-virtual-pipeline-stage 4", "")
            + "--pipeline-model-parallel-layout 'Et*40|tx*40L'",
            "got 'x'",
        ),
        (SCRIPT.replace("--bf16", "--recompute-granularity half"), "full or selective"),
        ("Et*40|tx*40L", "expected Megatron's arguments or layout"),
        ("Et*40|t*41L", "the layout: expected layers 80"),
        (
            TITAN.replace("GPipe", "ZBVZeroBubble"),
            "parallelism.pipeline_parallel_schedule: expected",
        ),
        (TITAN.replace("shard-degree 1", "shard-degree 2"), "1 beside replicas"),
        (TITAN.replace("selective", "some"), "activation_checkpoint.mode: expected one of"),
        (AUTOMODEL.replace("tp_size: 4", "tp_size: x"), "distributed.tp_size: expected a whole"),
        (AUTOMODEL.replace("  pipeline:", "  others:"), "distributed.pipeline: expected a mapping"),
        (AUTOMODEL.replace("  pp_size: 4", "  pp_size: 4\n  pp_size: 8"), "one value, found two"),
        ('{"train_micro_batch_size_per_gpu": 1}', "a DeepSpeed configuration, which tells no"),
        ("[model]\nname = 'x'\n", "found none of them"),
        (SCRIPT.replace("TP=4", "TP=5"), "must use the 64 cards"),
    ],
)
def test_what_contradicts_is_one_line_with_its_key(
    text: str, said: str, tmp_path: Path, job: TrainingJob
) -> None:
    with pytest.raises(ValueError, match=r"own\.txt") as caught:
        own(tmp_path, job, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_and_words_that_are_none(job: TrainingJob) -> None:
    with pytest.raises(ValueError, match=r"nothing\.sh: expected a file, found no such file"):
        own_of("nothing.sh", job)
    with pytest.raises(ValueError, match=r"--yours takes key=value with .* or a file"):
        own_of("tensr=4", job)
    with pytest.raises(ValueError, match=r"layout=.*got 'x'"):
        own_of("pipeline=2 layout=Etx|L", job)
