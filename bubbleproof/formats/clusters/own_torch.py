"""torchtitan's command line or job configuration, and Automodel's YAML, as what one runs today.

torchtitan 0.3 has no file: its command line tells ``--parallelism.…`` and a subcommand
``activation-checkpoint:…``; 0.2 reads TOML with the same names. Automodel has ``distributed`` with
``pipeline`` in it. Of a YAML mappings of plain values are read, by their indentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bubbleproof.formats.clusters.own_told import OwnTold, counted_from
from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.toml_text import parse_toml
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

ORDERS = {  # of a schedule's name in small letters
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "interleaved1f1b": "interleaved",
    "loopedbfs": "bfs",
}
PER_STAGE = "parallel_layers_per_stage"
SEVERAL = ("interleaved", "bfs")
SCOPES = {"none": "none", "full": "full", "selective": "attention"}
TITAN = {
    "tensor_parallel_degree": "tensor",
    "pipeline_parallel_degree": "pipeline",
    "context_parallel_degree": "context",
    "expert_parallel_degree": "expert",
}
AUTOMODEL = {"tp_size": "tensor", "pp_size": "pipeline", "cp_size": "context", "ep_size": "expert"}

Flat = Mapping[str, str]


def torchtitan_told(text: str, layers: int) -> OwnTold:
    """What a command line or a job configuration says of a model of so many layers.

    Raises ``UnusableInput``, at the key, for what is none.
    """
    is_toml = re.search(r"^\[parallelism\]", text, re.MULTILINE) is not None
    flat = _of_toml(text) if is_toml else _of_command(text)
    of = {key.removeprefix("parallelism."): value for key, value in flat.items()}
    sizes = {
        name: counted_from(f"parallelism.{key}", of[key])
        for key, name in TITAN.items()
        if key in of
    }
    replicate = counted_from(
        "parallelism.data_parallel_replicate_degree", of.get("data_parallel_replicate_degree", 1)
    )
    shard = of.get("data_parallel_shard_degree", "-1")
    if replicate > 1 and shard != "1":
        raise UnusableInput(
            "parallelism.data_parallel_shard_degree",
            "1 beside replicas, whose shards are not estimated",
            quoted(shard),
        )
    if shard != "-1":
        sizes["data"] = replicate * counted_from("parallelism.data_parallel_shard_degree", shard)
    order = _order("parallelism.pipeline_parallel_schedule", of.get("pipeline_parallel_schedule"))
    cut = _cut(of.get("module_fqns_per_model_part", ""))
    ranks = sizes.get("pipeline", 1)
    sizes["chunks"] = _chunks(order, ranks, cut)
    if f"pipeline_{PER_STAGE}" in of and cut is None:
        sizes["chunks"] = _chunks_of(of, ranks, layers)
    keeps = of.get("fsdp_reshard_after_forward", "default")
    is_resharded = keeps == "always" or (keeps == "default" and ranks == 1)
    sizes["zero"] = 0 if replicate > 1 else 2 + is_resharded
    micro = "pipeline_parallel_microbatch_size" if ranks > 1 else "training.local_batch_size"
    sizes["micro_batch"] = counted_from(f"parallelism.{micro}", of.get(micro, 1))
    mode = flat.get("activation_checkpoint.mode", "none")
    if mode not in SCOPES:
        raise UnusableInput(
            "activation_checkpoint.mode", f"one of {', '.join(SCOPES)}", quoted(mode)
        )
    remarks = []
    if mode == "selective":
        remarks.append("selective recomputation is estimated as that of the attention")
    if "pipeline_parallel_schedule_csv" in of:
        remarks.append("its table of a schedule is not read: verify and measure take it")
    return OwnTold(
        sizes=sizes,
        scope=SCOPES[mode],
        order=order,
        layers=cut,
        model=_batch(
            flat, {"training.seq_len": "sequence", "training.global_batch_size": "samples"}
        ),
        remarks=tuple(remarks),
    )


def automodel_told(text: str) -> OwnTold:
    """What a YAML says. Raises ``UnusableInput``, at the key, for what is none."""
    flat = _of_yaml(text)
    sizes = {
        name: counted_from(f"distributed.{key}", flat[f"distributed.{key}"])
        for key, name in AUTOMODEL.items()
        if f"distributed.{key}" in flat
    }
    told = flat.get("distributed.dp_size", "none").lower()
    if told not in ("none", "null", ""):
        sizes["data"] = counted_from("distributed.dp_size", told)
    part = "distributed.pipeline."
    ranks = sizes.get("pipeline", 1)
    if ranks > 1 and not any(key.startswith(part) for key in flat):
        raise UnusableInput("distributed.pipeline", "a mapping, with pp_size above 1", "none")
    order = _order(f"{part}pp_schedule", flat.get(f"{part}pp_schedule"))
    sizes["chunks"] = _chunks(order, ranks, None)
    sizes["zero"] = 2 if ranks > 1 else 3
    sizes["micro_batch"] = counted_from(
        f"{part}pp_microbatch_size", flat.get(f"{part}pp_microbatch_size", 1)
    )
    told_layers = f"{part}layers_per_stage" in flat
    remarks = ("layers_per_stage is not read: two stages a rank",) * told_layers
    is_again = flat.get("distributed.activation_checkpointing", "false").lower() == "true"
    return OwnTold(
        sizes=sizes,
        scope="full" if is_again else "none",
        order=order,
        model=_batch(flat, {"step_scheduler.global_batch_size": "samples"}),
        remarks=remarks,
    )


def _order(key: str, name: str | None) -> str:
    """The family of a schedule's name."""
    told = (name or "1F1B").lower().replace("_", "")
    if told not in ORDERS:
        known = "1F1B, GPipe, Interleaved1F1B, LoopedBFS"
        raise UnusableInput(key, f"one of {known}, which are estimated", quoted(str(name)))
    return ORDERS[told]


def _chunks(order: str, ranks: int, cut: Cut | None) -> int:
    """As many as the parts that are told, else 2 of an order of several."""
    if cut is not None:
        if len(cut) % ranks:
            where = "parallelism.module_fqns_per_model_part"
            raise UnusableInput(where, f"parts that divide by {ranks} ranks", f"{len(cut)}")
        return len(cut) // ranks
    return 2 if order in SEVERAL and ranks > 1 else 1


def _chunks_of(of: Flat, ranks: int, layers: int) -> int:
    """Of stages of so many layers, the embedding and the head counted among them."""
    key = f"pipeline_{PER_STAGE}"
    ends = [of.get(f"pipeline_parallel_{end}_stage_less_layers", "1") for end in ("first", "last")]
    weight = layers + sum(counted_from(f"parallelism.{key}", end, 0) for end in ends)
    stages = -(-weight // counted_from(f"parallelism.{key}", of[key]))
    if stages % ranks:
        expected = f"as many as make stages that divide by {ranks} ranks"
        raise UnusableInput(f"parallelism.{key}", expected, f"{of[key]}, which make {stages}")
    return stages // ranks


def _cut(parts: str) -> Cut | None:
    """The layers of each part, which names its modules; None where none is told."""
    found = [part.split(",") for part in parts.split()]
    return tuple(sum(name.startswith("layers.") for name in part) for part in found) or None


def _batch(flat: Flat, keys: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    told = {key: name for key, name in keys.items() if flat.get(key, "-1") != "-1"}
    return {name: (key, counted_from(key, flat[key])) for key, name in told.items()}


def _of_toml(text: str) -> dict[str, str]:
    """Values by table and key; of lists of names a part a word."""
    found = {}
    for table, values in parse_toml(text).items():
        for key, value in values.items() if isinstance(values, dict) else ():
            parts = (
                [",".join(map(str, part)) for part in value if isinstance(part, list)]
                if isinstance(value, list)
                else []
            )
            found[f"{table}.{key}"] = " ".join(parts) if parts else str(value)
    return found


def _of_command(text: str) -> dict[str, str]:
    """Values by name, of a command line."""
    words, found, key = re.sub(r"\\\n", " ", text).replace("=", " ").split(), {}, ""
    for word in words:
        if word.startswith("--"):
            key = word[2:].replace("-", "_")
            if key in found:
                raise UnusableInput(word, "one value", "two; leave one out")
            found[key] = ""
        elif word.startswith("activation-checkpoint:"):
            found["activation_checkpoint.mode"], key = word.partition(":")[2], ""
        elif key:
            found[key] = f"{found[key]} {word.strip(chr(34))}".strip()
    return found


def _of_yaml(text: str) -> dict[str, str]:
    """Plain values by the keys above them, by indentation."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        told = re.fullmatch(r"( *)([\w.-]+):(?:\s+([^#]*?))?\s*(?:#.*)?", line)
        if told is None:
            continue
        depth, key, value = len(told[1]), told[2], told[3]
        above = [(at, name) for at, name in above if at < depth]
        path = ".".join([*(name for _, name in above), key])
        if value:
            if path in found:
                raise UnusableInput(path, "one value", "two; leave one out")
            found[path] = value.strip("\"'")
        above.append((depth, key))
    return found
