"""NeMo Automodel: a table and the YAML of a recipe.

The pipeline stands in ``distributed.pipeline``, with plain fields; modules have the names of the
Hugging Face model, which is built of the plan's sizes. The recipe takes a replica's samples from
``step_scheduler.local_batch_size``. Source: nemo-automodel 0.7.0,
``nemo_automodel/recipes/_dist_utils.py``, ``components/distributed/pipelining/config.py`` and
``recipes/llm/train_ft.py``; it reads what is written (``benchmarks/frameworks``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from bubbleproof.costs.transformer import Transformer
from bubbleproof.hand_over.handed import (
    EMBEDDING,
    HEAD,
    NORM,
    HandedFiles,
    HandedSchedule,
    PlannedModel,
    launch_sizes,
    require_runs,
)
from bubbleproof.hand_over.own_reader import read_by
from bubbleproof.hand_over.torch_costs import cost_of
from bubbleproof.hand_over.torch_target import TABLE, table_of
from bubbleproof.hand_over.torchtitan_target import ROTARY, placement_name

TARGET, CONFIG = "automodel-0.7", "automodel.yaml"
NAMES = {EMBEDDING: "model.embed_tokens", NORM: "model.norm", HEAD: "lm_head"}
OF_EVERY_STAGE = "model.rotary_emb"
STEPS = 100  # of a training on words drawn by chance
RECIPE = "TrainFinetuneRecipeForNextTokenPrediction"


def automodel_files(handed: HandedSchedule) -> HandedFiles:
    """Table and YAML. Raises ``ValueError`` for what Automodel cannot be told."""
    planned = require_runs(handed, TARGET)
    style = {"1F1B": "1f1b", "Interleaved1F1B": "interleaved1f1b"}.get(placement_name(handed))
    if style is None:
        raise ValueError("hand-over to automodel: its stages lie in a loop alone; use --to torch")
    table, losses = table_of(handed)
    is_staged, at = handed.pipeline.num_ranks > 1, planned.deployment
    if not is_staged:
        losses = ["the order: one rank has no pipeline, and adds gradients up (0 ms)"]
    each = at.micro_batch * (handed.pipeline.num_microbatches if is_staged else 1)
    config = {
        "recipe": RECIPE,
        "step_scheduler": {
            "global_batch_size": planned.samples,
            "local_batch_size": each,
            "max_steps": STEPS,
        },
        "dist_env": {"backend": "nccl", "timeout_minutes": 10},
        "distributed": _distributed(handed, planned, style),
        "model": _model(planned.model, at.sequence),
        **_others(planned),
    }
    written = {CONFIG: "\n".join(_yaml(config)) + "\n"}
    if is_staged:
        written = {TABLE: table, **written}
    words = [str(at.devices), CONFIG]
    return HandedFiles(
        files=written,
        start=_start(planned),
        losses=(*losses, *_losses(planned)),
        has_table=is_staged,
        read=read_by(TARGET, "nemo-automodel", "read_automodel", written, words),
    )


def _start(planned: PlannedModel) -> str:
    """Its own launcher starts one node; torchrun starts more."""
    sizes = launch_sizes(planned)
    if sizes.startswith("--nnodes 1 "):
        return f"automodel {CONFIG} {sizes.removeprefix('--nnodes 1 ')}"
    return f"torchrun {sizes} -m nemo_automodel.cli.app {CONFIG}"


def _distributed(handed: HandedSchedule, planned: PlannedModel, style: str) -> dict[str, object]:
    at = planned.deployment
    told: dict[str, object] = {
        "strategy": "fsdp2",
        "pp_size": handed.pipeline.num_ranks,
        "tp_size": at.tensor,
        "cp_size": at.context,
        "ep_size": at.expert,
        "dp_size": at.data,
        "sequence_parallel": at.sequence_parallel and at.tensor > 1,
        "reshard_after_forward": at.zero == 3,
        "defer_fsdp_grad_sync": False,  # the plan shares the gradients of each microbatch
        "activation_checkpointing": at.scope == "full",
        "mp_policy": {
            "param_dtype": "float32" if at.precision == "fp32" else "bfloat16",
            "reduce_dtype": "float32",
        },
    }
    if handed.pipeline.num_ranks == 1:
        return told
    parts = [
        [NAMES.get(name, f"model.{name}") for name in part] + [OF_EVERY_STAGE]
        for part in handed.modules()
    ]
    return told | {
        "pipeline": {
            "pp_schedule": style,
            "pp_schedule_csv": TABLE,
            "pp_microbatch_size": at.micro_batch,
            "pp_seq_len": at.sequence,
            "scale_grads_in_schedule": False,
            "module_fqns_per_model_part": parts,
        }
    }


def _model(model: Transformer, sequence: int) -> dict[str, object]:
    """A model of transformers with such sizes: Llama, Qwen 2 or Qwen 3."""
    sizes: dict[str, object] = {
        "num_hidden_layers": model.layers,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_width,
        "vocab_size": model.vocabulary,
        "max_position_embeddings": sequence,
        "tie_word_embeddings": model.tied,
    }
    name, width = "LlamaConfig", int(model.feed_forward)
    if model.experts:
        name = "Qwen3MoeConfig"
        sizes |= {
            "num_experts": model.experts,
            "num_experts_per_tok": model.experts_per_token,
            "moe_intermediate_size": width,
        }
    elif model.extras:
        name = "Qwen3Config"  # which has norms of queries and keys
    elif model.attention_biases == "inputs" and not model.feed_forward_bias:
        name = "Qwen2Config"
    else:
        sizes["mlp_bias"] = model.feed_forward_bias
    if not model.experts:
        sizes["intermediate_size"] = width
    if name != "Qwen2Config":
        sizes["attention_bias"] = model.attention_biases != "none"
    return {
        "_target_": "nemo_automodel.NeMoAutoModelForCausalLM.from_config",
        "torch_dtype": "float32",
        "config": {"_target_": f"transformers.{name}", **sizes},
    }


def at_odds(model: Transformer) -> bool:
    """Whether transformers' model has a bias that this one lacks: its biases are all or none."""
    return model.attention_biases == "inputs" and bool(model.experts or model.feed_forward_bias)


def _others(planned: PlannedModel) -> dict[str, object]:
    """What a recipe needs besides, to be put right by its owner: words that mean nothing."""
    return {
        "dataset": {
            "_target_": "nemo_automodel.components.datasets.llm.mock_iterable_dataset."
            "MockIterableDataset",
            "seq_len": planned.deployment.sequence,
            "vocab_size": planned.model.vocabulary,
        },
        "loss_fn": {"_target_": "nemo_automodel.components.loss.masked_ce.MaskedCrossEntropy"},
        "optimizer": {"_target_": "torch.optim.AdamW", "lr": 0.0003},
    }


def _losses(planned: PlannedModel) -> list[str]:
    at, losses = planned.deployment, list[str]()
    if at.zero in (0, 1) and at.replicas > 1:
        told = cost_of(planned, zero=2)
        losses.append(f"ZeRO {at.zero}: fsdp2 shards weights over replicas too ({told})")
    if at.scope == "attention":
        told = cost_of(planned, scope="none")
        losses.append(f"recompute attention: Automodel recomputes a layer or nothing ({told})")
    if at_odds(planned.model):
        losses.append("biases of queries, keys and values come with one of the output (0 ms)")
    losses.append(
        f"dataset and optimizer are to be put right in {CONFIG}: they train on words drawn by "
        f"chance; rope_theta is transformers' ({ROTARY}), which no plan has (0 ms)"
    )
    return losses


def _yaml(told: Mapping[str, object], depth: int = 0) -> list[str]:
    """Lines of a mapping: mappings indented, all else in JSON's form, which YAML reads."""
    lines, space = [], "  " * depth
    for key, value in told.items():
        if isinstance(value, Mapping):
            lines += [f"{space}{key}:", *_yaml(value, depth + 1)]
        elif isinstance(value, list):
            lines += [f"{space}{key}:", *(f"{space}  - {json.dumps(each)}" for each in value)]
        else:
            lines.append(f"{space}{key}: {json.dumps(value)}")
    return lines
