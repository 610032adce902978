"""Problem files: a training step that a person writes down, in TOML.

::

    name = "two ranks"           # default: the file's name
    description = "..."
    unit = "us"                  # what one tick is
    memory_unit = "bytes"
    ranks = 2
    microbatches = 8
    chunks = 1                   # stages per rank; stages = ranks * chunks
    slices = 1                   # pieces of a sample
    placement = "loop"           # "wave", "bidirectional" or the rank of each stage: [0, 1]
    split_backward = false       # true: every backward runs as an input and a weight part

    [durations]                  # ticks of one action: a number, or a list with one per stage,
    forward = 10                 # or with one row [first slice, second slice, ...] (or one a stage)
    backward = 20                # the full backward; with input and weight given: their sum
    input = 11                   # with weight: needed where split_backward = true, else only
    weight = 9                   # to compare with families that split the backward
    weight_parts = [4, 5]        # the GEMMs that W is cut into (or a row per stage); default: whole

    [memory]                     # optional, like the tables below
    capacity = "80 GiB"          # of each rank: one, or a list; default: unlimited
    activation = "1.5 GiB"       # held from forward to backward; a number or one per stage
    released_at_input = 0        # the part that a split backward gives back after its input part
    weight_workspace = [0, 0]    # held by each GEMM of W while it runs: rows as above, or one
    static = ["10 GiB", "11 GiB"] # weights and optimizer state of each stage
    message = "32 MiB"           # what a stage sends on, and the gradient that comes back

    [links]
    latency = 0                  # ticks of every message between ranks, beside what it occupies
    bandwidth = "300 GB/s"       # or memory units per tick; default: messages occupy no link
    duplex = "full"              # one message in each direction at a time; default: "half", one
    [[link]]                     # these pairs have links of their own; absent keys as in [links]
    ranks = [0, 1]
    latency = 3

    [choices]                    # what is chosen, by the fields of theory.pipelines.choices:
    frozen_stages = [0]          # overlaps, evictions, waits, offloads, sharding, ...
    [choices.recompute]          # what the solver may choose; each table is optional
    stages = "all"               # which stages may drop activations and make them again, or a list
    fixed = false                # true: they do, and samples = [[stage, microbatch], ...]
    kept = "20 MiB"              # what stays of an activation; default: 0
    duration = 10                # ticks; default: those of the forward
    per_microbatch = false       # true: a stage may recompute some microbatches only
    [choices.evict]              # activations may wait on a paired rank
    pairs = "mirrored"           # rank r on rank p-1-r, or [[from, to], ...]
    duration = 2                 # ticks of each way; the link of a pair does one at a time
    [choices.offload]            # activations may wait on the host
    stages = "all"
    offload = 3                  # ticks of each way, each on an engine of its own
    reload = 3
    host_capacity = "512 GiB"    # for each rank; default: unlimited

    [compare]                    # published schedules to show beside the solved one
    families = ["gpipe", "1f1b", "interleaved v=2"]

    [layers]                     # instead of [durations], memory.activation and memory.static
    number = 40                  # layers alike, cut into stages
    forward = 7264               # ticks of one layer: forward; backward, or input and weight
    backward = 14824
    activation = "1.1 GiB"       # held by one layer; also released_at_input, static
    spread = 1                   # layers that a plan's stage may be off the even share; default: 0
    cuts = ["even", "balanced"]  # in its place: these; balanced: the heaviest rank is lightest,
                                 # alone, and with what it waits for; "any": all cuts
    pattern = ["dense*3", "(window*5 full)*8"]  # instead of number and the layer's own keys
    kinds.dense = { forward = 9, backward = 18 }  # and so on, for each kind of the pattern
    [layers.embedding]           # beside the first layers, likewise; [layers.head]: the last
    static = "5 GiB"

    [plan]                       # shapes to try; the numbers above are those of one chunk and slice
    chunks = [1, 2, 4]
    placements = ["loop", "wave"] # "bidirectional", or the rank of each stage
    backward = ["whole", "split"] # whether each rank splits: [true, false]; "mixed": all such lists
    slices = [1]
    rank_by = "nominal"          # list the candidates by "expected" or "p95" makespan instead
    [plan.jitter]                # how durations spread, in percent, with their defaults
    action_percent = 5           # each action anew; rank_percent = 2: a rank's speed, once a step
    straggler = [3, 20]          # rank 3 takes 20 % longer; slow_link = [3, 4, 50]: its messages

    [paper.tpipe]                # what plan --paper tpipe asks for beside; pipemesh needs one too
    state = "6 GiB"              # optimizer state of a rank (papers/planning/paper_layout.py has
    the keys)

    [solve]
    objective = "makespan"       # or "span_idle", "makespan-then-peak", "peak"
    within = 500                 # ticks: the largest value wanted; for "peak", the largest makespan
    time_limit = 60              # seconds
    memory = "4 GiB"             # what an engine may take, which then has a process of its own

Times are ticks of ``unit`` and memory is counted in ``memory_unit``, or a text has a unit of its
own (``values``, which says what is counted where not all is whole). An unknown key is an error.
The schema is ``docs/reference/schemas/problem-1.json``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bubbleproof.formats.comparison import ComparedFamily, parse_comparison
from bubbleproof.formats.errors import UnusableInput, about, values_at
from bubbleproof.formats.files import MEBIBYTE, FilePath, read_text
from bubbleproof.formats.layouts.choices_layout import allowed_choices, fixed_choices
from bubbleproof.formats.layouts.plan_layout import PlanLayout
from bubbleproof.formats.layouts.problem_file_layout import (
    PAPER,
    ProblemFileLayout,
    durations,
    problem_layout,
)
from bubbleproof.formats.plans.listed_shapes import refuse_strangers, stage_values
from bubbleproof.formats.plans.plan_shapes import has_split_ticks, layers_of, plan_space
from bubbleproof.formats.printable import spelled_out
from bubbleproof.formats.sizes import refuse_overflow, refuse_oversize
from bubbleproof.formats.toml_text import parse_toml
from bubbleproof.formats.validation import described
from bubbleproof.formats.values import MeasuredUnits, validate_measured
from bubbleproof.theory.families import family
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.links import Link
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.spread import Spread
from bubbleproof.theory.pipelines.shapes.layer_cuts import Layers
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace

SIZE_LIMIT = MEBIBYTE
EMPTY = (
    "nothing stands in it; a problem has ranks, microbatches and [durations], a model on a cluster "
    "[model], [cluster] and [batch]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFile:
    """What a problem file says.

    ``has_split_ticks`` tells whether the ticks of I and W were given; without them the pipeline
    cannot be compared with families that split the backward, and ``compare`` names none of those.
    ``time_limit`` is in seconds, ``memory`` of an engine in bytes. ``allowed`` is what a solver may
    choose, None for nothing.
    ``plan`` are other shapes to try, ``rank_by`` and ``spread`` how to list what comes of them.
    ``paper`` has the tables of the papers' planners, by name.
    """

    name: str
    description: str
    pipeline: Pipeline
    has_split_ticks: bool
    compare: tuple[ComparedFamily, ...]
    objective: str
    within: int | None
    time_limit: int | None
    memory: int | None = None
    allowed: AllowedChoices | None = None
    plan: PlanSpace | None = None
    rank_by: str = "nominal"
    spread: Spread = field(default_factory=Spread)
    paper: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def read_problem(path: FilePath) -> ProblemFile:
    """Read a problem file of at most 1 MiB.

    Raises ``UnusableInput`` naming the key, what was expected and what was found.
    """
    with about(path):
        return problem_file_of_text(read_text(path, limit=SIZE_LIMIT), name=Path(path).stem)


def problem_file_of_text(text: str, *, name: str) -> ProblemFile:
    """What a problem file of this text says. Raises ``UnusableInput`` as ``read_problem`` does."""
    return problem_of(parse_toml(text), name=name)


def problem_of(content: Mapping[str, object], *, name: str) -> ProblemFile:
    """What a problem file of this content says; ``name`` is for one that states none.

    Raises ``UnusableInput`` as ``read_problem`` does.
    """
    if "model" in content:
        expected = "a problem of a pipeline, which bubbleproof plan -o DIR writes for this one"
        raise UnusableInput("model", expected, "a model on a cluster")
    if not content:
        raise UnusableInput.of_values("", EMPTY)
    units = MeasuredUnits(content.get("unit"), content.get("memory_unit"))
    layouts = problem_layout() if PAPER in content else ProblemFileLayout
    layout = validate_measured(layouts, content, units)
    _refuse_oversize(layout, chunks=layout.chunks)
    layers = layers_of(layout)
    with values_at(""):
        pipeline = _pipeline(layout, layers, units)
    refuse_overflow(pipeline)
    _remark(layout.name or name, pipeline, units)
    allowed, plan = allowed_choices(layout.choices, pipeline), layout.plan or PlanLayout()
    space = plan_space(layout, pipeline, allowed, layers)
    refuse_strangers(plan, pipeline.num_ranks)
    return ProblemFile(
        name=layout.name or name,
        description=layout.description,
        pipeline=pipeline,
        has_split_ticks=has_split_ticks(layout),
        compare=_comparisons(layout),
        objective=layout.solve.objective,
        within=layout.solve.within,
        time_limit=layout.solve.time_limit,
        memory=layout.solve.memory,
        allowed=allowed,
        plan=space,
        rank_by=plan.rank_by,
        spread=described(plan.jitter, "plan.jitter"),
        paper=layout.model_dump(include={PAPER}, exclude_none=True)[PAPER],
    )


@cache
def _say(remark: str) -> None:
    """Say something of a file, once however often it is read."""
    logging.getLogger("bubbleproof").warning(remark)


def _remark(name: str, pipeline: Pipeline, units: MeasuredUnits) -> None:
    for remark in units.remarks:
        _say(f"{spelled_out(name)}: {remark}")
    if not (pipeline.ticks.forward.any() or pipeline.ticks.backward.any()):
        _say(f"{spelled_out(name)}: all durations are 0")


def _refuse_oversize(layout: ProblemFileLayout, *, chunks: int) -> None:
    refuse_oversize(
        ranks=layout.ranks,
        microbatches=layout.microbatches,
        chunks=chunks,
        slices=layout.slices,
    )


def _pipeline(layout: ProblemFileLayout, layers: Layers | None, units: MeasuredUnits) -> Pipeline:
    stages = layout.ranks * layout.chunks
    values: Mapping[str, Any] = (
        durations(layout) if layers is None else stage_values(layers, stages)
    )
    return Pipeline(
        num_ranks=layout.ranks,
        num_microbatches=layout.microbatches,
        num_chunks=layout.chunks,
        num_slices=layout.slices,
        placement=described(layout.placement, ""),
        split_backward=layout.split_backward,
        links=_links(layout),
        unit=units.ticks.unit,
        memory_unit=units.memory.unit,
        **described(layout.links, "links"),
        **{**described(layout.memory, "memory"), **values},
        **fixed_choices(layout.choices, stages),
    )


def _comparisons(layout: ProblemFileLayout) -> tuple[ComparedFamily, ...]:
    found = []
    for index, text in enumerate(layout.compare.families):
        where = f"compare.families[{index}]"
        comparison = parse_comparison(where, text)
        _refuse_oversize(layout, chunks=comparison.num_chunks or 1)
        if family(comparison.family).is_split and not has_split_ticks(layout):
            expected = f"durations.input and durations.weight, which {comparison.family} needs"
            raise UnusableInput(where, expected, "neither")
        found.append(comparison)
    return tuple(found)


def _links(layout: ProblemFileLayout) -> tuple[Link, ...]:
    seen: dict[frozenset[int], int] = {}
    for index, link in enumerate(layout.link):
        pair = frozenset(link.ranks)
        if len(pair) < 2 or max(pair) >= layout.ranks:
            expected = f"two different ranks of 0 to {layout.ranks - 1}"
            found = f"{link.ranks[0]} and {link.ranks[1]}"
            raise UnusableInput(f"link[{index}].ranks", expected, found)
        if seen.setdefault(pair, index) != index:
            found = f"those of link[{seen[pair]}]"
            raise UnusableInput(f"link[{index}].ranks", "another pair of ranks", found)
    links = []
    for link in layout.link:
        latency = layout.links.latency if link.latency is None else link.latency
        told = {**dict(link), "ranks": tuple(sorted(link.ranks)), "latency": latency}
        links.append(Link(**told))
    return tuple(links)
