"""Megatron-LM: arguments of its training scripts. Its orders are its own: 1F1B and interleaved.

So a schedule is handed over where it is one of the two, cell by cell; the layout string cuts the
model (``formats.layout_string``). Source of the order: Megatron-LM,
``megatron/core/pipeline_parallel/schedules.py``. Where Megatron is installed, its own parser and
checks read what is written, in a process of their own.
"""

from __future__ import annotations

from bubbleproof.formats.layout_string import layers_of, layout_of
from bubbleproof.frameworks import framework_named
from bubbleproof.hand_over.handed import HandedFiles, HandedSchedule, PlannedModel, launch_sizes
from bubbleproof.hand_over.megatron_arguments import drops, written_arguments
from bubbleproof.hand_over.own_reader import read_by
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.families.interleaved import (
    InterleavedOneForwardOneBackward,
    group_choices,
)
from bubbleproof.theory.model.actions import Kind

ARGUMENTS, OWN = "megatron.args", "megatron-core"
LAYOUT = (
    "the layout reads back as the plan's cut, by a reader that agrees with Megatron's parser on "
    "60,000 drawn strings"
)
MILLISECOND = 1000  # microseconds


def megatron_files(handed: HandedSchedule) -> HandedFiles:
    """The arguments. Raises ``ValueError`` for another order, placement, sharding or model."""
    planned = handed.require_plan("megatron")
    name, group = own_order(handed)
    runs, at = framework_named(OWN, "--to"), planned.deployment
    why = runs.model_refused(planned.model) or runs.precision_refused(at.precision)
    if at.zero > 1:
        why = f"ZeRO {at.zero} is no --use-distributed-optimizer; plan with zero = [0, 1]"
    if why:
        raise ValueError(f"hand-over to megatron: {why}")
    layout = layout_of(planned.layers)
    back = tuple(stage.count("t") for stage in layers_of(layout))
    if back != planned.layers:
        raise ValueError(f"hand-over to megatron: {layout} reads as {back}, not {planned.layers}")
    lines = [*_of_pipeline(handed, layout, group), *written_arguments(planned)]
    text = "".join(f"{line}\n" for line in lines)
    words = (str(at.devices), ARGUMENTS)
    return HandedFiles(
        files={ARGUMENTS: text},
        start=f"CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun {launch_sizes(planned)} pretrain_gpt.py "
        f"$(cat {ARGUMENTS}) ...",
        losses=tuple(_losses(handed, planned)),
        checked=(LAYOUT, f"the order is that of Megatron's {name}, cell by cell"),
        read=read_by(OWN, OWN, "read_arguments", {ARGUMENTS: text}, words),
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


def _of_pipeline(handed: HandedSchedule, layout: str, group: int) -> list[str]:
    lines = [f"--pipeline-model-parallel-size {handed.pipeline.num_ranks}"]
    lines += [f"--pipeline-model-parallel-layout {layout}"] * (handed.num_stages > 1)
    if handed.pipeline.num_chunks > 1:
        lines.append(f"--microbatch-group-size-per-virtual-pipeline-stage {group}")
    return lines


def _losses(handed: HandedSchedule, planned: PlannedModel) -> list[str]:
    """What Megatron lacks, with its cost by the plan's own numbers."""
    model, at, pipeline = planned.model, planned.deployment, handed.pipeline
    lost = [
        "start times and capacities: Megatron has no table of them; it starts each action as soon "
        "as it can, as the plan is timed (0 ms)"
    ]
    if pipeline.num_ranks > 1 and pipeline.num_chunks == 1:
        lost.append(
            "messages beside computation: of one chunk per rank Megatron waits for each, and the "
            f"plan does not ({_waits(planned, pipeline.num_microbatches)})"
        )
    if model.dropout and not drops(model, at):
        lost.append("dropout is off, as the plan is timed without it (0 ms)")
    if not model.positions:
        lost.append(
            "the base of rotary positions is not in a plan: add --rotary-base, which is 10000 "
            "else (0 ms by the plan's numbers)"
        )
    return lost


def _waits(planned: PlannedModel, microbatches: int) -> str:
    """What waiting for two messages of every microbatch takes, where the plan tells it."""
    if planned.costs is None:
        return "at most two messages a microbatch"
    waited = 2 * microbatches * planned.costs.numbers.latency / MILLISECOND
    return f"at most {waited:,.1f} ms a step"
