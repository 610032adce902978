"""Megatron's arguments of a planned model: sizes, model, numbers, and what the times assume.

The times of a plan are of one configuration of Megatron (``costs.times.software``): Transformer
Engine with its fused kernels, flash attention, the fused loss, a vocabulary filled up on each
tensor rank, sequence parallelism, and context parallelism by all-to-all. Each of these is written,
and so is every overlap that the times count on; one that they do not is off, as it is by default.
Source: megatron-core 0.19.2, ``megatron/training/arguments.py``, whose parser and ``validate_args``
were asked of what is written here (``benchmarks/frameworks``).
"""

from __future__ import annotations

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.times.software import PADDED
from bubbleproof.costs.transformer import Transformer
from bubbleproof.hand_over.handed import PlannedModel

GRADIENTS = {
    "bf16": ["--bf16", "--accumulate-allreduce-grads-in-fp32"],
    "bf16-gradients": ["--bf16", "--grad-reduce-in-bf16"],
    "fp32": [],
}
FP8 = ["--fp8-format hybrid", "--fp8-recipe delayed"]
FUSED = ["--transformer-impl transformer_engine", "--attention-backend flash"]
FUSED_LOSS = ["--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl native"]


def written_arguments(planned: PlannedModel) -> list[str]:
    """The lines of model, experts, numbers, recomputation and overlaps; not of the pipeline."""
    experts = _of_experts(planned) if _sorts(planned.model)[True] else []
    return [
        *_of_degrees(planned),
        *_of_model(planned),
        *experts,
        *_of_step(planned),
        *_of_software(planned),
    ]


def _of_degrees(planned: PlannedModel) -> list[str]:
    at = planned.deployment
    lines = [
        f"--tensor-model-parallel-size {at.tensor}",
        f"--context-parallel-size {at.context}",
    ]
    lines += ["--cp-comm-type p2p"] * (at.context > 1)  # a ring, as the times count
    return lines + ["--sequence-parallel"] * (at.sequence_parallel and at.tensor > 1)


def _sorts(model: Transformer) -> dict[bool, Transformer | None]:
    """The layers without experts, and those with: there is one kind of each at most."""
    found: dict[bool, Transformer | None] = {False: None, True: None}
    return found | {bool(kind.experts): kind for kind, _ in model.layer_runs}


def _of_model(planned: PlannedModel) -> list[str]:
    model, at = planned.model, planned.deployment
    block = _sorts(model)[False] or model
    lines = [
        f"--num-layers {model.layers}",
        f"--hidden-size {model.hidden}",
        f"--ffn-hidden-size {block.feed_forward}",
        f"--num-attention-heads {model.heads}",
        f"--seq-length {at.sequence}",
        f"--max-position-embeddings {model.positions or at.sequence}",
        f"--position-embedding-type {'learned_absolute' if model.positions else 'rope'}",
        f"--normalization {'RMSNorm' if model.norm == 'rms' else 'LayerNorm'}",
        f"--vocab-size {model.vocabulary}",
        f"--make-vocab-size-divisible-by {PADDED}",
    ]
    lines += _of_attention(model)
    lines += ["--swiglu"] * model.gated
    lines += ["--untie-embeddings-and-output-weights"] * (not model.tied)
    lines += ["--disable-bias-linear"] * (not model.feed_forward_bias)
    lines += ["--add-qkv-bias"] * (model.attention_biases == "inputs")
    off = ["--attention-dropout 0.0", "--hidden-dropout 0.0"]
    return lines + off * (not drops(model, at))


def drops(model: Transformer, at: Deployment) -> bool:
    """Whether the times and bytes are of a model with dropout."""
    return model.dropout if at.rules.dropout is None else at.rules.dropout


def _of_attention(model: Transformer) -> list[str]:
    if model.kv_rank:
        return [
            "--multi-latent-attention",
            "--qk-layernorm",
            f"--kv-lora-rank {model.kv_rank}",
            *[f"--q-lora-rank {model.query_rank}"] * bool(model.query_rank),
            f"--qk-head-dim {model.head_width}",
            f"--qk-pos-emb-head-dim {model.rope_width}",
            f"--v-head-dim {model.value_head_width}",
        ]
    lines = [f"--kv-channels {model.head_width}"]
    lines += ["--qk-layernorm"] * any(each.name == "query norm" for each in model.extras)
    if model.kv_heads != model.heads:
        lines += ["--group-query-attention", f"--num-query-groups {model.kv_heads}"]
    return lines


def _of_experts(planned: PlannedModel) -> list[str]:
    """Experts are cut by the tensor group over replicas, and whole over more cards than those."""
    at, sorts = planned.deployment, _sorts(planned.model)
    model = sorts[True] or planned.model
    lines = [
        f"--num-experts {model.experts}",
        f"--moe-router-topk {model.experts_per_token}",
        f"--moe-ffn-hidden-size {model.feed_forward}",
        f"--expert-model-parallel-size {at.expert}",
        f"--expert-tensor-parallel-size {1 if at.data % at.expert else at.tensor}",
        "--moe-token-dispatcher-type alltoall",
        "--moe-grouped-gemm",
    ]
    shared = f"--moe-shared-expert-intermediate-size {model.shared_feed_forward}"
    lines += [shared] * bool(model.shared_feed_forward)
    order = "+".join(f"[{int(bool(k.experts))}]*{n}" for k, n in planned.model.layer_runs)
    return lines + [f"--moe-layer-freq ({order})"] * (sorts[False] is not None)


def _of_step(planned: PlannedModel) -> list[str]:
    at = planned.deployment
    lines = [f"--micro-batch-size {at.micro_batch}", f"--global-batch-size {planned.samples}"]
    lines += GRADIENTS[at.precision]
    lines += ["--use-distributed-optimizer"] * (at.zero == 1)
    if at.scope == "full":
        lines.append("--recompute-granularity full")
        lines += ["--recompute-method uniform", "--recompute-num-layers 1"]
    elif at.scope == "attention":
        lines += ["--recompute-granularity selective", "--recompute-modules core_attn"]
    return lines


def _of_software(planned: PlannedModel) -> list[str]:
    """Kernels and overlaps, of a plan whose cluster is known."""
    at, job = planned.deployment, planned.job
    if job is None:
        return []
    runs, lines = job.cluster.runs, []
    lines += FUSED * (runs.accounting == "engine")
    lines += FUSED_LOSS * runs.fused_loss
    lines += FP8 * (runs.products == "fp8")
    lines += ["--tp-comm-overlap"] * (runs.overlaps and at.tensor > 1)
    if job.cluster.hides and at.replicas > 1:
        lines.append("--overlap-grad-reduce")
        lines += ["--overlap-param-gather"] * (at.zero == 1)
    return lines
