"""NeMo-Automodel: a table and the part of its YAML that concerns the pipeline.

``AutoPipeline`` takes ``pp_schedule_csv`` (of computations alone), ``module_fqns_per_model_part``
in the names of the Hugging Face model, and ``scale_grads_in_schedule``. Placements are those of
torchtitan. Source: NeMo-Automodel, ``components/distributed/pipelining/autopipeline.py``.
"""

from __future__ import annotations

from bubbleproof.hand_over.handed import (
    EMBEDDING,
    HEAD,
    NORM,
    HandedFiles,
    HandedSchedule,
    require_untied,
)
from bubbleproof.hand_over.torch_target import TABLE, table_of
from bubbleproof.hand_over.torchtitan_target import placement_name

CONFIG = "automodel.yaml"
NAMES = {EMBEDDING: "model.embed_tokens", NORM: "model.norm", HEAD: "lm_head"}
ROTARY = "model.rotary_emb"


def automodel_files(handed: HandedSchedule) -> HandedFiles:
    """Table and YAML. Raises ``ValueError`` for what Automodel cannot be told."""
    planned = handed.require_plan("automodel")
    require_untied(handed, "automodel")
    style = {"1F1B": "1f1b", "Interleaved1F1B": "interleaved1f1b"}.get(placement_name(handed))
    if style is None:
        raise ValueError("hand-over to automodel: its stages lie in a loop alone; use --to torch")
    table, losses = table_of(handed)
    at, batch = (
        planned.deployment,
        handed.pipeline.num_microbatches * planned.deployment.micro_batch,
    )
    parts = [
        [NAMES.get(name, f"model.{name}") for name in part] + [ROTARY] for part in handed.modules()
    ]
    lines = [
        "distributed:",
        "  strategy: fsdp2",
        f"  pp_size: {handed.pipeline.num_ranks}",
        f"  tp_size: {at.tensor}",
        f"  cp_size: {at.context}",
        f"  ep_size: {at.expert}",
        f"  dp_size: {at.data}",
        "autopipeline:",
        "  _target_: nemo_automodel.components.distributed.pipelining.AutoPipeline",
        f"  pp_schedule_csv: {TABLE}",
        f"  pp_schedule: {style}",
        f"  pp_microbatch_size: {at.micro_batch}",
        f"  pp_batch_size: {batch}",
        "  scale_grads_in_schedule: false",
        "  module_fqns_per_model_part:",
    ]
    for part in parts:
        lines.append(f"    - [{', '.join(part)}]")
    if at.zero in (0, 1):
        losses.append(f"ZeRO {at.zero}: fsdp2 shards weights over replicas too")
    if at.scope != "none":
        losses.append(f"recompute {at.scope}: set activation_checkpointing in the model's section")
    return HandedFiles(
        files={TABLE: table, CONFIG: "\n".join(lines) + "\n"},
        start=f"automodel finetune llm -c {CONFIG}",
        losses=tuple(losses),
        has_table=True,
    )
