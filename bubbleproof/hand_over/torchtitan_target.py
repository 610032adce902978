"""torchtitan: a table and the part of its configuration that concerns parallelism.

``pipeline_parallel_schedule_csv`` names the table, of computations alone; which stage a rank holds
is not read from it but follows the name of the schedule: V for ``ZBVZeroBubble``, else loop.
``module_fqns_per_model_part`` cuts the model. Gradients are not scaled by the runtime
(``scale_grads=False``), losses are (``rescale_accumulated_loss``). Source: torchtitan,
``torchtitan/distributed/pipeline_parallel.py`` and ``torchtitan/config/job_config.py``.
"""

from __future__ import annotations

import json

from bubbleproof.hand_over.handed import HandedFiles, HandedSchedule, require_untied
from bubbleproof.hand_over.torch_target import TABLE, table_of

CONFIG = "torchtitan.toml"
SCOPES = {"none": "none", "full": "full", "attention": "none"}


def torchtitan_files(handed: HandedSchedule) -> HandedFiles:
    """Table and configuration. Raises ``ValueError`` for what torchtitan cannot be told."""
    planned = handed.require_plan("torchtitan")
    require_untied(handed, "torchtitan")
    table, losses = table_of(handed)
    at, pipeline = planned.deployment, handed.pipeline
    is_sharded = at.zero >= 2
    if at.zero == 1:
        losses.append("ZeRO 1: torchtitan shards no optimizer state alone; replicas are whole")
    if at.scope == "attention":
        losses.append("recompute attention: torchtitan's selective mode keeps other tensors")
    config: dict[str, dict[str, object]] = {
        "parallelism": {
            "pipeline_parallel_degree": pipeline.num_ranks,
            "pipeline_parallel_schedule": placement_name(handed),
            "pipeline_parallel_schedule_csv": TABLE,
            "pipeline_parallel_microbatch_size": at.micro_batch,
            "module_fqns_per_model_part": handed.modules(),
            "tensor_parallel_degree": at.tensor,
            "context_parallel_degree": at.context,
            "expert_parallel_degree": at.expert,
            "data_parallel_replicate_degree": 1 if is_sharded else at.data,
            "data_parallel_shard_degree": at.data if is_sharded else 1,
            "fsdp_reshard_after_forward": "always" if at.zero == 3 else "never",
        },
        "training": {
            "local_batch_size": pipeline.num_microbatches * at.micro_batch,
            "global_batch_size": planned.samples,
            "seq_len": at.sequence,
        },
        "activation_checkpoint": {"mode": SCOPES[at.scope]},
    }
    cards = pipeline.num_ranks * at.tensor * at.context * at.data
    return HandedFiles(
        files={TABLE: table, CONFIG: _toml(config)},
        start=f"torchrun --nproc-per-node {min(cards, 8)} ... -m torchtitan.train "
        f"--job.config_file {CONFIG}",
        losses=tuple(losses),
        has_table=True,
    )


def placement_name(handed: HandedSchedule) -> str:
    """The name of a schedule whose stages lie where ours do. Raises ``ValueError`` for others."""
    if handed.is_loop:
        return "1F1B" if handed.pipeline.num_chunks == 1 else "Interleaved1F1B"
    if handed.is_v:
        return "ZBVZeroBubble"
    raise ValueError(
        "hand-over to torchtitan: stages must lie on ranks in a loop or, of two chunks, in a V; "
        f"got {list(handed.pipeline.stage_ranks)}; use --to torch"
    )


def _toml(config: dict[str, dict[str, object]]) -> str:
    """Tables of numbers, texts and lists of texts, which TOML writes as JSON does."""
    lines = []
    for table, values in config.items():
        lines += [
            f"[{table}]",
            *(f"{key} = {json.dumps(each)}" for key, each in values.items()),
            "",
        ]
    return "\n".join(lines)
