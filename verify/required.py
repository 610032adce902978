"""What a pipeline requires, stated a second time: every task, dependency and memory event, by name.

``theory`` turns a Pipeline into a Problem in columns. A dependency or a memory event forgotten
there would pass every rule, since rules judge schedules of the Problem as it is. So this module
says what each action of a training step needs and does once more, from the definitions
(docs/guide/design.md §2), action by action and by the actions' text, and ``differences`` compares
the two. It calls nothing of what it judges.

With a(g) the activation of stage g, in memory units, on the rank that runs it:

F      waits for the F of the stage before and of the slice before; holds a(g) from its start.
B      waits for its F, and for the B or I of the stage behind and of the slice behind; gives a(g)
       back at its end.
I, W   I waits as B does; it gives back ``released_at_input`` at its end (where that is negative it
       acquires the difference at its start), and W, which waits for I, the rest at its end. The
       parts of a W run one after the other; the last gives the rest back. Each part holds its
       ``weight_workspace`` while it runs; a B, which runs the same GEMMs, the largest of them.
R      (recompute) waits for its F, which gives all but ``kept`` back at its end; R acquires the
       same at its start; the backward waits for R.
EVICT, LOAD; OFFLOAD, RELOAD of an activation
       after its F, one after the other, before its backward. What F leaves behind is acquired where
       it goes when the transfer starts, and given back where it was when that ends.
RELOAD, OFFLOAD, STEP of a stage's model state: ``required_choices``. UNSHARD, RESHARD, REDUCE_GRAD
of the visits of a rank: ``required_visits``.

SEND_F and SEND_B
       of what crosses a boundary between ranks, where its size over the link's bandwidth is not
       nothing: after the producer, on the link; the consumer comes ``latency`` ticks later.

A link says its latency, bandwidth and duplex, or those of the pipeline hold; a rank is no distance
from itself. A pair that overlaps is one task with the needs and the memory of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.required_alike import one_of_each_kind
from bubbleproof.verify.required_choices import ChoiceRequirements
from bubbleproof.verify.required_step import StepRequirements
from bubbleproof.verify.required_table import RequiredTable, stated

Key = TypeVar("Key")


def required(pipeline: Pipeline, microbatches: Sequence[int] | None = None) -> RequiredTable:
    """What the pipeline requires, by its definition.

    Parameters
    ----------
    pipeline
        Whose definition it is.
    microbatches
        Of which it is told; None for all.
    """
    if microbatches is None:
        microbatches = range(pipeline.num_microbatches)
    step = StepRequirements(pipeline, microbatches)
    ChoiceRequirements(step)
    return step.found


def differences(pipeline: Pipeline, problem: Problem) -> list[str]:
    """In what the problem is not what the pipeline requires, a sentence each."""
    kinds = one_of_each_kind(pipeline, problem)
    if kinds is not None and not _differences(pipeline, problem, kinds):
        return []
    return _differences(pipeline, problem, None)


def _differences(pipeline: Pipeline, problem: Problem, told: Sequence[int] | None) -> list[str]:
    asked, said = required(pipeline, told), stated(problem, told)
    return [
        *_unlike("task", asked.tasks, said.tasks),
        *_unlike("wait", asked.waits, said.waits),
        *_unlike("memory event", asked.changes, said.changes),
        *_unlike("store", asked.stores, said.stores),
    ]


def _unlike(what: str, asked: Mapping[Key, object], said: Mapping[Key, object]) -> Iterator[str]:
    for key in dict.fromkeys((*asked, *said)):
        one, other = asked.get(key), said.get(key)
        if one != other and (one or other):  # a change of 0 is none
            name = " ".join(str(word) for word in (key if isinstance(key, tuple) else (key,)))
            told = ["nothing" if value is None else str(value) for value in (one, other)]
            yield f"{what} {name}: the pipeline requires {told[0]}, the problem has {told[1]}"
