"""What torchtitan's own code makes of the words of a launch line: one line of JSON.

python read_torchtitan.py CARDS WORDS...

Its configuration manager reads the words, its model is built without memory, its parallel
dimensions make their mesh over a group without processes. Modules that no stage names would be
dropped without a word: they are refused here, and so are names that the model lacks.
"""

import json
import sys
from collections import Counter
from importlib import import_module
from importlib.metadata import version
from typing import Any


def built(config: Any) -> Any:
    """The model on the meta device."""
    torch = import_module("torch")
    with torch.device("meta"):
        if hasattr(config, "model_spec"):
            config.model_spec.model.update_from_config(config=config)
            return config.model_spec.model.build()
        specs = import_module("torchtitan.protocols.train_spec")
        spec = specs.get_train_spec(config.model.name)
        sizes = spec.model_args[config.model.flavor]
        sizes.update_from_config(config)
        return spec.model_cls(sizes)


def parts_of(model: Any) -> list[str]:
    """The names that stages may have: the model's children, and the layers of lists of them."""
    names = []
    for name, child in model.named_children():
        listed = type(child).__name__ in ("ModuleDict", "ModuleList")
        names += [f"{name}.{each}" for each, _ in child.named_children()] if listed else [name]
    return names


def refusal_of_parts(model: Any, stages: list[list[str]]) -> str:
    """Why such stages are not the model; empty where they are."""
    has, named = Counter(parts_of(model)), Counter(name for stage in stages for name in stage)
    if missing := sorted((has - named).elements()):
        return f"no stage has {', '.join(missing[:4])} of the model"
    if strange := sorted((named - has).elements()):
        return f"the model has no {', '.join(strange[:4])}"
    return ""


def placed(config: Any, ranks: int, stages: int) -> list[list[int]]:
    """The stages of each rank."""
    if stages <= 1:
        return [[0]]
    name = config.parallelism.pipeline_parallel_schedule
    module = import_module("torchtitan.distributed.pipeline_parallel")
    if hasattr(module, "_get_pp_rank_to_stage_indices_mapping"):
        asked = module._get_pp_rank_to_stage_indices_mapping
        return [list(asked(rank, ranks, name, stages)) for rank in range(ranks)]
    schedules = import_module("torch.distributed.pipelining.schedules")
    waves = (schedules.ScheduleZBVZeroBubble, schedules.ScheduleDualPipeV)
    is_wave = schedules.get_schedule_class(name) in waves
    last = 2 * ranks - 1
    return [
        [rank, last - rank] if is_wave else list(range(rank, stages, ranks))
        for rank in range(ranks)
    ]


def told(cards: int, words: list[str]) -> dict[str, Any]:
    """What it makes of the words. Raises whatever torchtitan raises."""
    config = import_module("torchtitan.config").ConfigManager().parse_args(words)
    own = config.parallelism
    dist = import_module("torch.distributed")
    store = import_module("torch.testing._internal.distributed.fake_pg").FakeStore()
    dist.init_process_group("fake", rank=0, world_size=cards, store=store)
    try:
        dims = import_module("torchtitan.distributed.parallel_dims").ParallelDims
        degrees = {
            "dp_replicate": own.data_parallel_replicate_degree,
            "dp_shard": own.data_parallel_shard_degree,
            "cp": own.context_parallel_degree,
            "tp": own.tensor_parallel_degree,
            "pp": own.pipeline_parallel_degree,
            "ep": own.expert_parallel_degree,
        }
        if hasattr(own, "expert_tensor_parallel_degree"):
            degrees["etp"] = own.expert_tensor_parallel_degree
        made = dims(**degrees, world_size=cards)
        made.build_mesh()
    finally:
        dist.destroy_process_group()
    batch = config.training.local_batch_size * made.dp_replicate * made.dp_shard
    if config.training.global_batch_size % batch:
        raise ValueError(f"global batch {config.training.global_batch_size}, local {batch}")
    stages = own.module_fqns_per_model_part or []
    if stages and (why := refusal_of_parts(built(config), stages)):
        raise ValueError(why)
    return {
        "degrees": degrees,
        "stages": stages,
        "placed": placed(config, own.pipeline_parallel_degree, len(stages)),
        "microbatches": config.training.local_batch_size // own.pipeline_parallel_microbatch_size,
        "recompute": type(getattr(config, "activation_checkpoint", None)).__qualname__,
    }


def asked(cards: int, words: list[str]) -> dict[str, Any]:
    """The version, and what is told or why it is refused."""
    found: dict[str, Any] = {"version": version("torchtitan")}
    try:
        return {**found, "told": told(cards, words)}
    except SystemExit:
        return {**found, "refused": "its command line does not take the words"}
    except Exception as refused:  # whatever it raises is its answer
        return {**found, "refused": f"{type(refused).__name__}: {str(refused)[:300]}"}


if __name__ == "__main__":
    sys.path.insert(0, "")
    answer = asked(int(sys.argv[1]), sys.argv[2:])
    sys.stdout.write(f"\n{json.dumps(answer)}\n")
