"""Megatron-LM: arguments of its training scripts. Its orders are its own: 1F1B and interleaved.

So a schedule is handed over where it is one of the two, cell by cell; the layout string cuts the
model. Source of the arguments: Megatron-LM, ``megatron/training/arguments.py``; of the order,
``megatron/core/pipeline_parallel/schedules.py``.

The layout string says which layers each stage has, stages in the order in which they run. ``E`` is
the embedding, ``t`` a decoder layer, ``m`` a layer of multi-token prediction, ``L`` the loss with
the head; ``|`` ends a stage. ``t*3`` repeats what stands before it, ``(tt|)*29`` what stands in
parentheses, each once and from the left: a repetition within another is none. Commas are dropped; a
stage may be without layers. Stage i is on pipeline rank i mod p, as chunk i div p. Source:
Megatron-LM, ``megatron/core/transformer/pipeline_parallel_layer_layout.py``, whose answers on drawn
strings are recorded (``benchmarks/frameworks``) and compared with this reader's.

>>> layout_of((20, 20))
'Et*20|t*20L'
>>> layers_of("Et*3|(tt|)*2,m|L")
(('E', 't', 't', 't'), ('t', 't'), ('t', 't'), ('m',), ('L',))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.formats.errors import UnusableInput, about
from bubbleproof.formats.files import read_text
from bubbleproof.hand_over.handed import HandedFiles, HandedSchedule, PlannedModel
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.families.interleaved import (
    InterleavedOneForwardOneBackward,
    group_choices,
)
from bubbleproof.theory.model.actions import Kind

ARGUMENTS = "megatron.args"
GRAMMAR = "the layout, by a grammar of ours (hand_over.megatron_target), is the plan's cut"


def megatron_files(handed: HandedSchedule) -> HandedFiles:
    """The arguments. Raises ``ValueError`` for another order, placement, sharding or model."""
    planned = handed.require_plan("megatron")
    name, group = own_order(handed)
    _require_deployment(planned)
    layout = layout_of(planned.layers)
    read = tuple(stage.count("t") for stage in layers_of(layout))
    if read != planned.layers:
        raise ValueError(f"hand-over to megatron: {layout} reads as {read}, not {planned.layers}")
    lines = [*_of_pipeline(handed, planned, layout, group), *_of_model(planned), *_of_step(planned)]
    text = "".join(f"{line}\n" for line in lines)
    return HandedFiles(
        files={ARGUMENTS: text},
        start=f"torchrun --nproc-per-node 8 ... pretrain_gpt.py $(cat {ARGUMENTS}) ...",
        losses=(
            "times and capacities: Megatron has arguments, no table",
            "messages go as Megatron sends them: batched, and overlapped where it is asked",
        ),
        checked=(GRAMMAR, f"the order is that of Megatron's {name}, cell by cell"),
    )


def own_order(handed: HandedSchedule) -> tuple[str, int]:
    """Which of Megatron's orders the schedule has, and the microbatches of its groups.

    Raises ``ValueError`` for any other order.
    """
    pipeline, ranks = handed.pipeline, handed.pipeline.num_ranks
    is_whole = not handed.given.problem.actions.is_kind(Kind.I, Kind.W).any()
    groups = group_choices(ranks, pipeline.num_microbatches)
    tried: dict[str, tuple[Family, int]] = {"1f1b": (family("1f1b"), 0)}
    if pipeline.num_chunks > 1:
        tried = {
            f"interleaved 1F1B of groups of {group}": (
                InterleavedOneForwardOneBackward(group),
                group,
            )
            for group in groups
        }
    ours = handed.given.compute.orders(ranks)[:ranks]
    for name, (own, group) in tried.items() if handed.is_loop and is_whole else ():
        if own.program(pipeline).orders(ranks)[:ranks] == ours:
            return name, group
    raise ValueError(
        "hand-over to megatron: it runs 1F1B and, of groups of as many microbatches as ranks or "
        f"more, interleaved 1F1B with whole backwards, and {handed.name} is neither; use --to torch"
    )


def _require_deployment(planned: PlannedModel) -> None:
    if planned.deployment.zero > 1:
        raise ValueError(
            f"hand-over to megatron: ZeRO {planned.deployment.zero} is no --use-distributed-"
            "optimizer; plan with zero = [0, 1]"
        )
    if planned.model.kv_rank:
        raise ValueError(
            "hand-over to megatron: latent attention has arguments of its own, which are not "
            "written; use --to torch"
        )


def _of_pipeline(
    handed: HandedSchedule, planned: PlannedModel, layout: str, group: int
) -> list[str]:
    at = planned.deployment
    lines = [
        f"--pipeline-model-parallel-size {handed.pipeline.num_ranks}",
        *[f"--pipeline-model-parallel-layout {layout}"] * (handed.num_stages > 1),
        f"--tensor-model-parallel-size {at.tensor}",
        f"--context-parallel-size {at.context}",
    ]
    if handed.pipeline.num_chunks > 1:
        lines.append(f"--microbatch-group-size-per-virtual-pipeline-stage {group}")
    if at.sequence_parallel and at.tensor > 1:
        lines.append("--sequence-parallel")
    return lines


def _of_model(planned: PlannedModel) -> list[str]:
    model = planned.model
    lines = [
        f"--num-layers {model.layers}",
        f"--hidden-size {model.hidden}",
        f"--ffn-hidden-size {model.dense_feed_forward or model.feed_forward}",
        f"--num-attention-heads {model.heads}",
        f"--kv-channels {model.head_width}",
        f"--seq-length {planned.deployment.sequence}",
        f"--max-position-embeddings {model.positions or planned.deployment.sequence}",
        f"--normalization {'RMSNorm' if model.norm == 'rms' else 'LayerNorm'}",
    ]
    if model.kv_heads != model.heads:
        lines += ["--group-query-attention", f"--num-query-groups {model.kv_heads}"]
    lines += ["--swiglu"] * model.gated
    lines += ["--position-embedding-type rope"] * (not model.positions)
    lines += ["--untie-embeddings-and-output-weights"] * (not model.tied)
    lines += ["--disable-bias-linear"] * (not model.feed_forward_bias)
    lines += ["--add-qkv-bias"] * (model.attention_biases == "inputs")
    lines += ["--attention-dropout 0.0", "--hidden-dropout 0.0"] * (not model.dropout)
    return lines + (_of_experts(planned) if model.experts else [])


def _of_experts(planned: PlannedModel) -> list[str]:
    """Experts are cut by the tensor group too, which is Megatron's default."""
    model, dense = planned.model, planned.model.dense_layers
    lines = [
        f"--num-experts {model.experts}",
        f"--moe-router-topk {model.experts_per_token}",
        f"--moe-ffn-hidden-size {model.feed_forward}",
        f"--expert-model-parallel-size {planned.deployment.expert}",
        "--moe-token-dispatcher-type alltoall",
        "--moe-grouped-gemm",
    ]
    shared = f"--moe-shared-expert-intermediate-size {model.shared_feed_forward}"
    lines += [shared] * bool(model.shared_feed_forward)
    return lines + [f"--moe-layer-freq ([0]*{dense}+[1]*{model.layers - dense})"] * bool(dense)


def _of_step(planned: PlannedModel) -> list[str]:
    at = planned.deployment
    lines = [f"--micro-batch-size {at.micro_batch}", f"--global-batch-size {planned.samples}"]
    lines += ["--bf16"]
    lines += ["--use-distributed-optimizer"] * (at.zero == 1)
    if at.scope == "full":
        lines.append("--recompute-granularity full")
        lines += ["--recompute-method uniform", "--recompute-num-layers 1"]
    elif at.scope == "attention":
        lines += ["--recompute-granularity selective", "--recompute-modules core_attn"]
    return lines


LETTERS = "EtmL"
_GROUP = re.compile(r"\(([^)]+)\)\*(\d+)")
_LETTER = re.compile(r"(.)\*(\d+)")
MOST = 1 << 16  # letters of a layout written out, bytes of its file


def layout_of(layers: Sequence[int]) -> str:
    """The layout of a model whose stages have so many decoder layers, ends with their own."""
    stages = [f"t*{number}" if number > 1 else "t" * number for number in layers]
    return "E" + "|".join(stages) + "L"


def layers_of(layout: str) -> tuple[tuple[str, ...], ...]:
    """The letters of each stage. Raises ``ValueError`` naming what is no layout."""
    text = _written_out(_written_out(layout.replace(",", ""), _GROUP), _LETTER)
    stray = sorted({letter for letter in text if letter not in f"{LETTERS}|"})
    if stray:
        raise ValueError(
            f"a layout has the letters {' '.join(LETTERS)}, | and repetitions, got {stray[0]!r} "
            f"in {layout[:60]!r}"
        )
    stages = tuple(tuple(part) for part in text.split("|"))
    flat = [letter for stage in stages for letter in stage]
    if flat[:1] != ["E"] or flat[-1:] != ["L"] or flat.count("E") != 1 or flat.count("L") != 1:
        raise ValueError(f"a layout begins with one E and ends with one L, got {layout[:60]!r}")
    predicting = [number for number, stage in enumerate(stages) if "m" in stage]
    if len(predicting) > 1 or "t" in flat[flat.index("m") if predicting else len(flat) :]:
        raise ValueError(
            f"a layout has all layers m in one stage, behind every layer t, got {layout[:60]!r}"
        )
    return stages


def _written_out(text: str, pattern: re.Pattern[str]) -> str:
    """Every repetition of the pattern once, from the left: what comes of it is not read again."""
    repeated = [(len(found.group(1)), found.group(2)) for found in pattern.finditer(text)]
    if any(len(count) > 6 for _, count in repeated) or (
        len(text) + sum(size * int(count) for size, count in repeated) > MOST
    ):
        raise ValueError(f"a layout has at most {MOST} letters, got {text[:60]!r}")
    return pattern.sub(lambda found: found.group(1) * int(found.group(2)), text)


_OPTION = r"--pipeline-model-parallel-{}[\s=]+[\"']?([^\s\"']+)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MegatronLayout:
    """A layout as a file has it: the letters of each stage, in the order in which stages run.

    ``num_ranks`` is that of the pipeline, where the file says it.
    """

    stages: tuple[tuple[str, ...], ...]
    num_ranks: int | None = None

    @property
    def layers(self) -> tuple[int, ...]:
        """The decoder layers of each stage."""
        return tuple(stage.count("t") for stage in self.stages)


def read_layout(path: str) -> MegatronLayout:
    """The layout of a file: its string alone, or among the arguments of a training.

    Raises ``UnusableInput`` for what is none, and for ranks that do not divide its stages.
    """
    text = read_text(path, limit=MOST)
    found = re.search(_OPTION.format("layout"), text)
    size = re.search(_OPTION.format("size"), text) if found else None
    with about(path):
        if found is None and text.lstrip().startswith("-"):
            expected = "--pipeline-model-parallel-layout among the arguments"
            raise UnusableInput("", expected, "none")
        try:
            stages = layers_of(re.sub(r"\s", "", text) if found is None else found[1])
        except ValueError as error:
            raise UnusableInput("", "a Megatron layout", str(error)) from None
        if size is None:
            return MegatronLayout(stages=stages)
        ranks = int(size[1]) if re.fullmatch(r"[1-9][0-9]{0,8}", size[1]) else 0
        if not ranks or len(stages) % ranks:
            expected = f"a pipeline size that divides the {len(stages)} stages of the layout"
            raise UnusableInput("", expected, size[1])
        return MegatronLayout(stages=stages, num_ranks=ranks)
