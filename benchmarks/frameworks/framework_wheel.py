"""Code of torchtitan, Automodel and DeepSpeed, called on a CPU.

Runs where ``wheels`` has unpacked a wheel; nothing of bubbleproof is imported. Reads ``{kind: [row,
...], ...}`` and prints of each kind the answers in turn: what the code makes of a row, or the error
that it raises. The kinds are the functions of ``KINDS``.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

AUTOMODEL = "nemo_automodel.components"
PIPELINING = f"{AUTOMODEL}.distributed.pipelining.functional"


@contextlib.contextmanager
def _cards(number: int, rank: int = 0) -> Iterator[Any]:
    """A group of so many cards without processes."""
    dist = import_module("torch.distributed")
    store = import_module("torch.testing._internal.distributed.fake_pg").FakeStore()
    dist.init_process_group("fake", rank=rank, world_size=number, store=store)
    try:
        yield dist
    finally:
        dist.destroy_process_group()


def mesh(replicate: int, shard: int, cp: int, tp: int, pp: int, ep: int, cards: int) -> int:
    """torchtitan's parallel dimensions, and their mesh; the shards of the experts' weights."""
    dims = import_module("torchtitan.distributed.parallel_dims").ParallelDims
    told = {"dp_replicate": replicate, "dp_shard": shard, "cp": cp, "tp": tp, "pp": pp, "ep": ep}
    if "etp" in dims.__dataclass_fields__:
        told["etp"] = 1
    with _cards(cards):
        made = dims(**told, world_size=cards)
        made.build_mesh()
    return int(made.dp_shard * cp * tp // ep)


def words(*given: str) -> int:
    """The words of a launch line, read by torchtitan's configuration manager: microbatches."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(errors), contextlib.redirect_stderr(errors):
        manager = import_module("torchtitan.config").ConfigManager()
        config = manager.parse_args([*given])
    each = config.parallelism.pipeline_parallel_microbatch_size
    return int(config.training.local_batch_size // each)


@cache
def _small_titan() -> Any:
    """torchtitan's small Llama 3, of six layers."""
    registry = import_module("torchtitan.models.llama3.config_registry")
    with import_module("torch").device("meta"):
        return registry.llama3_debugmodel().model_spec.model.build()


def _kept(module: Any, above: str = "") -> list[str]:
    """What is left of a model: its children, and the layers of lists of them, by name."""
    found = []
    for name, child in module.named_children():
        if type(child).__name__ in ("ModuleDict", "ModuleList"):
            found += [f"{above}{name}.{each}" for each, _ in child.named_children()]
        elif any(type(each).__name__ in ("ModuleDict", "ModuleList") for each in child.children()):
            found += _kept(child, f"{above}{name}.")
        else:
            found.append(f"{above}{name}")
    return found


def titan_stages(*stages: list[str]) -> list[list[str]]:
    """What torchtitan leaves of its model in each stage of such names."""
    split = import_module("torchtitan.distributed.pipeline_parallel")._split_module
    return [_kept(split(_small_titan(), names)) for names in stages]


@cache
def _small_llama(layers: int) -> Any:
    transformers = import_module("transformers")
    config = transformers.LlamaConfig(
        num_hidden_layers=layers,
        hidden_size=64,
        intermediate_size=64,
        num_attention_heads=4,
        vocab_size=64,
        tie_word_embeddings=False,
    )
    with import_module("torch").device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config)


def automodel_stages(schedule: str, ranks: int, *stages: list[str]) -> list[Any]:
    """Of each rank its stages, and what Automodel leaves of a Llama of six layers in each."""
    torch, functional = import_module("torch"), import_module(PIPELINING)
    found = []
    for rank in range(ranks):
        with _cards(ranks, rank):
            device = import_module("torch.distributed.device_mesh")
            made, parts = functional.split_model_into_stages(
                _small_llama(6),
                device.init_device_mesh("cpu", (ranks,), mesh_dim_names=("pp",)),
                "pp",
                schedule,
                torch.device("meta"),
                module_names_per_stage=[*stages],
                layers_per_stage=None,
            )
            pairs = zip(made, parts, strict=True)
            found.append([[each.stage_index, _kept(part)] for each, part in pairs])
    return found


def section(distributed: dict[str, Any], cards: int) -> list[int]:
    """Automodel's parser of a recipe's section, and its meshes: sizes of pipeline and experts."""
    parser = import_module("nemo_automodel.recipes._dist_utils")
    setup = import_module(f"{AUTOMODEL}.distributed.config").DistributedSetup
    with _cards(cards):
        told = parser.parse_distributed_section(distributed)
        made = setup.build(
            strategy=told["strategy_config"],
            parallelism_sizes=told["parallelism_sizes"],
            pipeline_config=told["pipeline_config"],
            moe_parallel_config=told["moe_parallel_config"],
            world_size=cards,
        )
        return [made.mesh_context.pp_size, made.mesh_context.ep_size]


def batch(samples: int, local: int, data: int) -> int:
    """Automodel's step scheduler: the times that gradients are added up in a step."""
    scheduler = import_module(f"{AUTOMODEL}.training.step_scheduler").StepScheduler
    made = scheduler(samples, local, data, dataloader=None, max_steps=1)
    return int(made.grad_acc_steps)


def partition(method: str, layers: int, stages: int) -> list[int]:
    """DeepSpeed's cut of an embedding, layers, a norm and a head: the layers of each stage."""
    utils = import_module("deepspeed.runtime.utils")
    if method == "uniform":
        marks = utils.partition_uniform(layers + 3, stages)
    else:  # as PipelineModule does for "type:layer"
        marks = utils.partition_balanced([0, *[1] * layers, 0, 0], stages)
    inside = [min(max(int(mark) - 1, 0), layers) for mark in marks]
    return [after - before for before, after in pairwise(inside)]


def steps(stages: int, microbatches: int) -> list[str]:
    """Of each rank the passes of DeepSpeed's training schedule, in turn."""
    made = import_module("deepspeed.runtime.pipe.schedule").TrainSchedule
    letters, found = {"ForwardPass": "F", "BackwardPass": "B"}, []
    for rank in range(stages):
        schedule = made(micro_batches=microbatches, stages=stages, stage_id=rank)
        names = [type(each).__name__ for step in schedule.steps() for each in step]
        found.append("".join(letters[name] for name in names if name in letters))
    return found


def deepspeed_batch(samples: int, micro: int, microbatches: int, data: int) -> int:
    """DeepSpeed's check of the three numbers of a batch."""
    config = import_module("deepspeed.runtime.config").DeepSpeedConfig
    told = SimpleNamespace(
        train_batch_size=samples,
        train_micro_batch_size_per_gpu=micro,
        gradient_accumulation_steps=microbatches,
        world_size=data,
    )
    config._batch_assertion(told)
    return microbatches


KINDS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        mesh, words, titan_stages, automodel_stages, section, batch, partition, steps,
        deepspeed_batch,
    )
}  # fmt: skip


def _answer(kind: str, row: list[Any]) -> dict[str, Any]:
    try:
        return {"told": KINDS[kind](*row)}
    except SystemExit:
        return {"refused": "SystemExit: its command line does not take the words"}
    except Exception as refused:  # whatever it raises is its answer
        return {"refused": f"{type(refused).__name__}: {refused}"}


def main() -> None:
    """Answer what stands in the standard input."""
    warnings.simplefilter("ignore")
    run_path(str(Path(__file__).with_name("stand_in.py")))["stand_in"]()
    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    answers = {kind: [_answer(kind, row) for row in rows] for kind, rows in asked.items()}
    sys.stdout.write(f"\n{json.dumps(answers)}\n")


if __name__ == "__main__":
    main()
