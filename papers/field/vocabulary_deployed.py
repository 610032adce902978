"""Vocabulary parallelism of a model on a cluster: the ends of each deployment over all its ranks.

A rank has its share of the embedding and of the output layer: of their weights and optimizer state,
of the ticks of either pass, and of the scores of the microbatch that is between S and T, beside the
last stage's output, which all ranks have whole. The embedding's ticks are told with F and B of the
stage, since a rank embeds whenever it would wait. An all-reduce takes ``HOPS`` messages. What
follows the pipeline is told as long as without. Layers are cut evenly, the rest to the last ranks.

Its authors' code runs it (``vocabulary``). It is printed beside a plan and is none of the plan's
candidates, which are pipelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import islice
from math import inf

from bubbleproof.costs.combinations import AnyCount, CombinationCosts, legal
from bubbleproof.papers.field.vocabulary import vocabulary_order, with_output_layer
from bubbleproof.papers.planning.paper_choice import PaperChoice, no_choice
from bubbleproof.planners.search_budget import timely
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.layer_cuts import NOTHING, LayerPart
from bubbleproof.theory.pipelines.timing import left_shift
from bubbleproof.verify import check

NAME = "vocabulary"
BARRIERS = 1  # its code's default, and the least memory
HOPS = 2  # of a ring, each part 2 (p-1)/p times
MOST_TRIED = 8


def with_shared_ends(one: CombinationCosts, barriers: int = BARRIERS) -> tuple[Problem, Schedule]:
    """A deployment's problem and the published order of it. Precondition: no rank is without layer.

    Parameters
    ----------
    barriers
        1 or 2.
    """
    numbers, (stages, end) = one.numbers, _shares(one)
    pipeline = Pipeline(
        num_ranks=len(stages),
        num_microbatches=one.microbatches,
        forward=tuple(stage.forward for stage in stages),
        backward=tuple(stage.backward for stage in stages),
        activation=tuple(stage.activation for stage in stages),
        static=tuple(stage.static for stage in stages),
        capacity=numbers.capacity,
        latency=numbers.latency,
    )
    late = end.weight_backward if barriers == 1 else end.backward
    problem = with_output_layer(
        pipeline,
        score=end.forward + end.backward - late,
        weight=late,
        barriers=barriers,
        reduction=HOPS * numbers.latency,
    )
    return problem, left_shift(problem, vocabulary_order(pipeline, barriers))


def _shares(one: CombinationCosts) -> tuple[list[LayerPart], LayerPart]:
    """Each stage with what its rank has of the ends but S and T, and a rank's share of the head."""
    numbers, p = one.numbers, one.combination.pipeline
    begin, end = (_share(part, p) for part in (numbers.layers.embedding, numbers.layers.head))
    inner = replace(numbers.layers, embedding=NOTHING, head=NOTHING)
    held = begin.static + end.static + end.activation + numbers.message
    stages = [
        LayerPart(
            forward=stage.forward + begin.forward,
            backward=stage.backward + begin.backward,
            activation=stage.activation + begin.activation,
            static=stage.static + held,
        )
        for stage in inner.stages(tuple((inner.number + rank) // p for rank in range(p)))
    ]
    return stages, end


def _share(part: LayerPart, ranks: int) -> LayerPart:
    of = {each.name: -(-getattr(part, each.name) // ranks) for each in fields(part)}
    return LayerPart(**of)


def vocabulary_choice(
    counts: Sequence[AnyCount], seconds: float = inf
) -> tuple[PaperChoice, int | None]:
    """The deployment that is the shortest so, of ``MOST_TRIED``, and its iteration in ticks.

    Parameters
    ----------
    seconds
        For which is tried most; one is.
    """
    staged = sorted((one for one in legal(counts) if one.combination.pipeline > 1), key=_least)
    best, value = no_choice(NAME, "no deployment of several stages fits"), inf
    for one in timely(islice(filter(_has_room, staged), MOST_TRIED), seconds):
        if _least(one) >= value:
            break
        verdict = check(*with_shared_ends(one))
        if not verdict.ok or verdict.measured is None:
            continue
        taken = verdict.measured.makespan + one.numbers.step_end
        if taken < value:
            held = (max(verdict.measured.peak_memory) + one.numbers.beside) / 2**30
            note = f"only its authors' code runs it; {held:.1f} GiB of a card; rules 1 to 5 hold"
            choice = {"deployment": str(one.combination), "barriers": BARRIERS}
            best, value = replace(best, choice=choice, executable=True, note=note), taken
    return best, None if value == inf else int(value)


def _has_room(one: CombinationCosts) -> bool:
    """Whether each rank has, for the p - r + 1 microbatches that rank r holds."""
    stages, _ = _shares(one)
    held = range(len(stages) + BARRIERS, BARRIERS, -1)
    return all(
        stage.static + min(number, one.microbatches) * stage.activation <= one.numbers.capacity
        for stage, number in zip(stages, held, strict=True)
    )


def _least(one: CombinationCosts) -> float:
    """No fewer ticks does the iteration take: those of stages alike and messages without time."""
    layers, p = one.numbers.layers, one.combination.pipeline
    ticks, head = layers.sums["ticks"][-1], layers.head
    filling = (p - 1) * (ticks - head.forward - head.backward) - head.weight_backward
    return (one.microbatches * ticks + filling) / p + one.numbers.step_end
