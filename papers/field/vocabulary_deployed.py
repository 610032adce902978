"""Vocabulary parallelism of a model on a cluster: the ends of each deployment over all its ranks.

A rank has its share of the embedding and of the output layer: of their weights and optimizer state,
of the ticks of either pass, and of the scores of the microbatch that is between S and T, beside the
last stage's output, which all ranks have whole. The embedding's ticks are told with F and B of the
stage, since a rank embeds whenever it would wait. An all-reduce takes ``HOPS`` messages. What
follows the pipeline is told as long as without, and stages have as many layers each.

Only its authors' code runs it (``vocabulary``): it is told beside a plan and is none of its
candidates, which are pipelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from math import inf

from bubbleproof.costs.combinations import AnyCount, CombinationCosts, legal
from bubbleproof.papers.field.vocabulary import vocabulary_order, with_output_layer
from bubbleproof.papers.planning.paper_choice import PaperChoice, no_choice
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
    """A deployment's problem and the published order of it. Precondition: ranks divide its layers.

    Parameters
    ----------
    barriers
        1 or 2.
    """
    numbers, p = one.numbers, one.combination.pipeline
    begin, end = (_share(part, p) for part in (numbers.layers.embedding, numbers.layers.head))
    inner = replace(numbers.layers, embedding=NOTHING, head=NOTHING)
    stages = inner.stages((inner.number // p,) * p)
    beside = begin.static + end.static + end.activation + numbers.message
    pipeline = Pipeline(
        num_ranks=p,
        num_microbatches=one.microbatches,
        forward=tuple(stage.forward + begin.forward for stage in stages),
        backward=tuple(stage.backward + begin.backward for stage in stages),
        activation=tuple(stage.activation + begin.activation for stage in stages),
        static=tuple(stage.static + beside for stage in stages),
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


def _share(part: LayerPart, ranks: int) -> LayerPart:
    of = {each.name: -(-getattr(part, each.name) // ranks) for each in fields(part)}
    return LayerPart(**of)


def vocabulary_choice(counts: Sequence[AnyCount]) -> tuple[PaperChoice, int | None]:
    """The deployment that is the shortest so, of ``MOST_TRIED``, and its iteration in ticks."""
    even = [one for one in legal(counts) if one.combination.pipeline > 1 and _is_even(one)]
    best, value = no_choice(NAME, "no deployment of several stages of as many layers fits"), inf
    for one in sorted(even, key=_least)[:MOST_TRIED]:
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


def _is_even(one: CombinationCosts) -> bool:
    return one.numbers.layers.number % one.combination.pipeline == 0


def _least(one: CombinationCosts) -> float:
    """No fewer ticks does the iteration take: those of stages alike and messages without time."""
    layers, p = one.numbers.layers, one.combination.pipeline
    ticks, head = layers.sums["ticks"][-1], layers.head
    filling = (p - 1) * (ticks - head.forward - head.backward) - head.weight_backward
    return (one.microbatches * ticks + filling) / p + one.numbers.step_end
