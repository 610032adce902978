"""torchtitan: the words of its launch line, or in 0.2 a file, and a table of computations alone.

Which stage a rank holds is not read from the table but follows the name of the schedule: V for
``ZBVZeroBubble``, else a loop. Modules that no stage names are dropped without a word; the head is
``lm_head``, in 0.2 ``output``. Gradients are not scaled by the runtime (``scale_grads=False``),
losses are. A model that torchtitan has is named; another is in 0.3 built of the plan's sizes
(``hand_over.launched.planned_model``). Source: torchtitan 0.3.0, ``torchtitan/config/configs.py``,
``torchtitan/config/manager.py``, ``torchtitan/distributed/pipeline_parallel.py``; 0.2.2,
``torchtitan/config/job_config.py``. Both read what is written (``benchmarks/frameworks``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

from bubbleproof.formats.toml_text import toml_text
from bubbleproof.frameworks import NAMED_MODELS, sizes_of
from bubbleproof.hand_over.handed import (
    HEAD,
    HandedFiles,
    HandedSchedule,
    PlannedModel,
    launch_sizes,
    require_runs,
)
from bubbleproof.hand_over.own_reader import read_by
from bubbleproof.hand_over.torch_costs import cost_of, kept_gradients
from bubbleproof.hand_over.torch_target import TABLE, table_of

WORDS, CONFIG, MODEL, BUILDER = "torchtitan.args", "torchtitan.toml", "model.json", "planned_model"
SCOPES = {"none": "none", "full": "full", "attention": "none"}
ROTARY = 10_000
Options = Mapping[str, object]


def torchtitan_files(handed: HandedSchedule) -> HandedFiles:
    """Table and words of 0.3. Raises ``ValueError`` for what torchtitan cannot be told."""
    planned = require_runs(handed, "torchtitan-0.3")
    written, losses = dict[str, str](), _losses(planned)
    model = NAMED_MODELS.get(sizes_of(planned.model))
    if model is None:
        written, model = _own_model(planned), (BUILDER, "planned", "")
        losses.append(
            f"{planned.model.name or 'the model'} is none of torchtitan's: {BUILDER}.py builds its "
            f"sizes; rotary_base of {MODEL} is {ROTARY}, which no plan has, and norms of queries "
            "and keys are those of torchtitan's Qwen 3 where it has experts (0 ms)"
        )
    words = ["--module", model[0], "--config", model[1], *_words(_options(handed, "lm_head"))]
    words.append(f"activation-checkpoint:{SCOPES[planned.deployment.scope]}")
    written, start = {WORDS: _lines(words), **written}, f"$(cat {WORDS})"
    return _files(handed, "torchtitan-0.3", planned, written, losses, words, start)


def torchtitan_toml_files(handed: HandedSchedule) -> HandedFiles:
    """Table and file of 0.2. Raises ``ValueError`` for what torchtitan cannot be told."""
    planned = require_runs(handed, "torchtitan-0.2")
    config: dict[str, dict[str, object]] = {}
    for key, value in _options(handed, HEAD).items():
        section, name = key.split(".")
        config.setdefault(section, {})[name] = value
    config["activation_checkpoint"] = {"mode": SCOPES[planned.deployment.scope]}
    module, _, flavor = NAMED_MODELS[sizes_of(planned.model)]
    config["model"] = {"name": module, "flavor": flavor}
    written, words = {CONFIG: toml_text(config)}, ["--job.config_file", CONFIG]
    return _files(
        handed, "torchtitan-0.2", planned, written, _losses(planned), words, " ".join(words)
    )


def _files(
    handed: HandedSchedule,
    target: str,
    planned: PlannedModel,
    written: Mapping[str, str],
    losses: Sequence[str],
    words: Sequence[str],
    start: str,
) -> HandedFiles:
    """What is written and the table, as torchtitan reads the words; ``start`` ends its command."""
    table, lost = _table(handed)
    cards, files_ = str(planned.deployment.devices), {**table, **written}
    return HandedFiles(
        files=files_,
        start=f"torchrun {launch_sizes(planned)} -m torchtitan.train {start}",
        losses=(*lost, *losses),
        has_table=bool(table),
        read=read_by(target, "torchtitan", "read_torchtitan", files_, [cards, *words]),
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


def _table(handed: HandedSchedule) -> tuple[dict[str, str], list[str]]:
    """The table, where there is a pipeline, and what it leaves out."""
    placement_name(handed)
    table, losses = table_of(handed)
    if handed.pipeline.num_ranks > 1:
        return {TABLE: table}, losses
    return {}, ["the order: one rank has no pipeline, and adds gradients up (0 ms)"]


def _options(handed: HandedSchedule, head: str) -> dict[str, object]:
    """What is told of parallelism and of the batch, by section and name."""
    planned = handed.planned
    if planned is None:
        raise ValueError("a schedule without a plan has no options")
    at, pipeline = planned.deployment, handed.pipeline
    is_sharded, is_staged = at.zero >= 2, pipeline.num_ranks > 1
    told: dict[str, object] = {
        "parallelism.tensor_parallel_degree": at.tensor,
        "parallelism.context_parallel_degree": at.context,
        "parallelism.expert_parallel_degree": at.expert,
        "parallelism.data_parallel_replicate_degree": 1 if is_sharded else at.data,
        "parallelism.data_parallel_shard_degree": at.data if is_sharded else 1,
        "parallelism.fsdp_reshard_after_forward": "always" if at.zero == 3 else "never",
        "parallelism.pipeline_parallel_degree": pipeline.num_ranks,
        "training.local_batch_size": at.micro_batch,
        "training.global_batch_size": planned.samples,
        "training.seq_len": at.sequence,
        "training.mixed_precision_param": "float32" if at.precision == "fp32" else "bfloat16",
    }
    if is_staged:
        told |= {
            "parallelism.pipeline_parallel_schedule": placement_name(handed),
            "parallelism.pipeline_parallel_schedule_csv": TABLE,
            "parallelism.pipeline_parallel_microbatch_size": at.micro_batch,
            "parallelism.module_fqns_per_model_part": handed.modules(head),
            "training.local_batch_size": pipeline.num_microbatches * at.micro_batch,
        }
    return told


def _words(options: Options) -> list[str]:
    """The options of a command line: a stage is one word, its modules joined by commas."""
    words = []
    for key, value in options.items():
        parts = value if isinstance(value, list) else [[str(value)]]
        words += [f"--{key}", *(",".join(part) for part in parts)]
    return [*words, "--training.disable_cuda_graphs"]


def _lines(words: Sequence[str]) -> str:
    """One option with its values a line."""
    return " ".join(words).replace(" --", "\n--").replace(" activation-", "\nactivation-") + "\n"


def _losses(planned: PlannedModel) -> list[str]:
    at, losses = planned.deployment, []
    if at.zero == 1:
        told = cost_of(planned, zero=0)
        losses.append(f"ZeRO 1: torchtitan shards no optimizer state alone ({told})")
    if at.scope == "attention":
        told = cost_of(planned, scope="none")
        losses.append(f"recompute attention: torchtitan recomputes a layer or nothing ({told})")
    if planned.job is not None and planned.job.cluster.runs.products != "bf16":
        losses.append(f"products in {planned.job.cluster.runs.products} are not written: bf16")
    return losses + kept_gradients(planned)


def _own_model(planned: PlannedModel) -> dict[str, str]:
    """The sizes of a model, and what builds it."""
    names = ("layers", "hidden", "heads", "kv_heads", "head_width", "vocabulary", "experts")
    sizes = {name: getattr(planned.model, name) for name in (*names, "experts_per_token")}
    sizes |= {"feed_forward": int(planned.model.feed_forward), "rotary_base": ROTARY}
    sizes["sequence"] = planned.deployment.sequence
    sizes["query_norms"] = bool(planned.model.extras)
    script = files("bubbleproof.hand_over.launched") / f"{BUILDER}.py"
    return {
        MODEL: json.dumps(sizes, indent=1) + "\n",
        f"{BUILDER}.py": script.read_text(encoding="utf-8"),
    }
