"""The deployments of a problem file that starts from a model, as spaces of pipelines.

A planner goes through them, and a reader of its proofs derives them anew: every combination that no
number forbids, with the space of its pipeline's shapes and the ticks that follow the pipeline in
every step. Whether it fits is no part of this: that is shown of its candidates.

``deployed_space`` makes the pipeline that a plan goes through of the numbers themselves. The file
of the same problem is ``deployed_content``'s: both say the same, which a test holds them to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bubbleproof.costs.cluster_layers import ClusterLayers
from bubbleproof.costs.combinations import AnyCount, CombinationCosts, combinations, legal
from bubbleproof.formats.errors import UnusableInput, values_at
from bubbleproof.formats.plans.listed_shapes import listed_space, refuse_strangers, stage_values
from bubbleproof.formats.sizes import LARGEST, refuse_overflow, refuse_oversize
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.layer_cuts import LayerPart
from bubbleproof.theory.pipelines.shapes.plan_space import WHOLE, PlanSpace
from bubbleproof.verify.candidates.bundle import DeploymentSpace

if TYPE_CHECKING:
    from bubbleproof.formats.clusters.cluster_toml import ClusterFile
    from bubbleproof.formats.layouts.plan_layout import PlanLayout

UNIT, MEMORY_UNIT = "us", "bytes"  # of every deployment's problem
KEYS = ("forward", "input_backward", "weight_backward", "activation", "static")
NAMES = {"input_backward": "input", "weight_backward": "weight"}


def deployed_space(file: ClusterFile, one: CombinationCosts) -> PlanSpace:
    """The shapes of a deployment's pipeline: what its problem file tells, without the file.

    Raises ``ValueError`` as ``problem_of`` does, such as for more microbatches than a problem has.
    """
    numbers, shapes, ranks = one.numbers, file.shapes_of(one), one.combination.pipeline
    return space_of_layers(numbers, shapes, ranks=ranks, microbatches=one.microbatches)


def space_of_layers(
    numbers: ClusterLayers, shapes: PlanLayout, *, ranks: int, microbatches: int
) -> PlanSpace:
    """The same of any such numbers and shapes."""
    _refuse_untold(numbers)
    refuse_oversize(ranks=ranks, microbatches=microbatches)
    of_stages: Mapping[str, Any] = stage_values(numbers.layers, ranks)
    with values_at(""):
        pipeline = Pipeline(
            num_ranks=ranks,
            num_microbatches=microbatches,
            **of_stages,
            capacity=numbers.capacity,
            message=numbers.message,
            latency=numbers.latency,
            unit=UNIT,
            memory_unit=MEMORY_UNIT,
        )
    refuse_overflow(pipeline)
    space = listed_space(shapes, pipeline, (WHOLE,), None, numbers.layers)
    refuse_strangers(shapes, ranks)
    return space


def _refuse_untold(numbers: ClusterLayers) -> None:
    """Raise ``UnusableInput`` for a number that no problem file can tell."""
    layers, told = numbers.layers, [("memory.message", numbers.message)]
    told += [("memory.capacity", numbers.capacity), ("links.latency", numbers.latency)]
    for table, part in (
        *(("", part) for part, _ in layers.runs),
        (".embedding", layers.embedding),
        (".head", layers.head),
    ):
        told += [(f"layers{table}.{key}", value) for key, value in part_values(part).items()]
    for key, value in told:
        if not 0 <= value <= LARGEST:
            raise UnusableInput(key, f"a whole number of 0 to {LARGEST}", str(value))


def part_values(part: LayerPart) -> dict[str, int]:
    """What a file tells of a layer, embedding or head."""
    return {NAMES.get(key, key): getattr(part, key) for key in KEYS}


def all_counted(file: ClusterFile) -> list[AnyCount]:
    """Every combination of the file with its numbers, or why it has none; last what is its own.

    Raises ``UnusableInput`` for lists of which the file's framework runs none.
    """
    with values_at("plan"):
        every = combinations(file.training, file.lists)
        listed = [each for each in every if file.runs(each)]
        if not listed and file.opened is not None and file.own is None:
            raise ValueError(f"no deployment can be planned: {file.opened.refused(every[0])}")
    own = [] if file.own is None else [file.own.combination]
    return [file.counted(each) for each in dict.fromkeys([*listed, *own])]


def deployed_spaces(
    file: ClusterFile, counts: Sequence[AnyCount]
) -> list[tuple[CombinationCosts, DeploymentSpace]]:
    """Those that no number forbids. ``counts`` are ``all_counted`` of the file."""
    found = []
    for one in legal(counts):
        try:
            space = deployed_space(file, one)
        except ValueError:  # such as more microbatches than a problem may have
            continue
        name, after, rest = str(one.combination), one.numbers.step_end, one.numbers.rest_end
        found.append((one, DeploymentSpace(name=name, space=space, after=after, rest=rest)))
    return found
