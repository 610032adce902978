"""What Automodel's own code makes of a YAML: one line of JSON.

python read_automodel.py CARDS FILE

Its loader reads the file, its recipe's parser the section ``distributed``, its setup makes the
meshes over a group without processes, its step scheduler takes the batches, and the model of the
file is built without memory. A module that no stage names would be dropped without a word: it is
refused here, and so is a name that the model lacks.
"""

import json
import sys
from collections import Counter
from importlib import import_module
from importlib.metadata import version
from typing import Any

DISTRIBUTED = "nemo_automodel.components.distributed"
LISTS = ("ModuleDict", "ModuleList")


def parts_of(module: Any, above: str = "") -> list[str]:
    """The names that stages may have: what lies beside lists of layers, and their layers."""
    names = []
    for name, child in module.named_children():
        full = f"{above}{name}"
        if type(child).__name__ in LISTS:
            names += [f"{full}.{each}" for each, _ in child.named_children()]
        elif any(type(each).__name__ in LISTS for each in child.children()):
            names += parts_of(child, f"{full}.")
        else:
            names.append(full)
    return names


def refusal_of_parts(model: Any, stages: list[list[str]]) -> str:
    """Why such stages are not the model; empty where they are."""
    has, named = set(parts_of(model)), Counter(name for stage in stages for name in stage)
    if missing := sorted(has - set(named)):
        return f"no stage has {', '.join(missing[:4])} of the model"
    if strange := sorted(set(named) - has):
        return f"the model has no {', '.join(strange[:4])}"
    twice = sorted(name for name, count in named.items() if 1 < count < len(stages))
    return f"{twice[0]} is of several stages" if twice else ""


def built(section: Any) -> Any:
    """The transformers model of a file's section ``model``, on the meta device."""
    torch, transformers = import_module("torch"), import_module("transformers")
    config = section.config.instantiate()
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config)


def told(cards: int, path: str) -> dict[str, Any]:
    """What it makes of the file. Raises whatever Automodel raises."""
    config = import_module("nemo_automodel.components.config.loader").load_yaml_config(path)
    recipe = import_module("nemo_automodel.cli.utils").resolve_recipe_name(config.recipe)
    section = import_module("nemo_automodel.recipes._dist_utils").parse_distributed_section(
        config.distributed.to_dict()
    )
    dist = import_module("torch.distributed")
    store = import_module("torch.testing._internal.distributed.fake_pg").FakeStore()
    dist.init_process_group("fake", rank=0, world_size=cards, store=store)
    try:
        setup = import_module(f"{DISTRIBUTED}.config").DistributedSetup.build(
            strategy=section["strategy_config"],
            parallelism_sizes=section["parallelism_sizes"],
            pipeline_config=section["pipeline_config"],
            moe_parallel_config=section["moe_parallel_config"],
            world_size=cards,
        )
        mesh = setup.mesh_context
        sizes = {name: getattr(mesh, f"{name}_size") for name in ("pp", "dp", "cp", "tp", "ep")}
    finally:
        dist.destroy_process_group()
    batch = config.get("step_scheduler.local_batch_size", 1)
    import_module("nemo_automodel.components.training.step_scheduler").StepScheduler(
        global_batch_size=config.get("step_scheduler.global_batch_size"),
        local_batch_size=batch,
        dp_size=sizes["dp"],
        dataloader=None,
        max_steps=config.get("step_scheduler.max_steps", None),
    )
    pipeline, stages = section["pipeline_config"], []
    if pipeline is not None:
        stages = pipeline.module_fqns_per_model_part
        if why := refusal_of_parts(built(config.model), stages):
            raise ValueError(why)
    each = 1 if pipeline is None else pipeline.pp_microbatch_size
    if batch // each < sizes["pp"]:
        raise ValueError(f"{batch // each} microbatches of {sizes['pp']} ranks")
    return {"recipe": recipe, "sizes": sizes, "stages": stages, "microbatches": batch // each}


def asked(cards: int, path: str) -> dict[str, Any]:
    """The version, and what is told or why it is refused."""
    found: dict[str, Any] = {"version": version("nemo-automodel")}
    try:
        return {**found, "told": told(cards, path)}
    except Exception as refused:  # whatever it raises is its answer
        return {**found, "refused": f"{type(refused).__name__}: {str(refused)[:300]}"}


if __name__ == "__main__":
    answer = asked(int(sys.argv[1]), sys.argv[2])
    sys.stdout.write(f"\n{json.dumps(answer)}\n")
