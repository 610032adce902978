"""SVPP: slices of samples pipelined over v chunks per rank, a forward and a backward in turn.

Symbols as in MEPipe (EuroSys 2025): p ranks, v chunks per rank, s slices per sample, n = m samples
(microbatches), f forwards on rank 0 before its first backward, A activations of one sample; one
action's activation is A/(vsp). f trades memory for bubbles (section 4.2) and is the peak of every
rank: no rank ever holds more than f.

    least f     v*s: the first backward needs all slices of the first sample through all chunks
    largest f   v*max(p,s) + min(p,s) - 1 (Table 3), at most the m*v*s forwards there are

Source: MEPipe sections 4.1 to 4.4. The orders are those of ``svpp_orders``; the generator of
section 4.3 as printed is in ``svpp_literal``, and differs: it places one sample after another, so
that at v > 1 the backwards of a sample wait for those of its predecessor, and its rescheduling by
the number of children prefers a late slice of a low chunk to the chunk the ring is waiting for.
Here the highest chunk goes first.
Legal range: any p, m, v, s and v*s <= f <= the largest f, which is the default. At tF = tB and the
largest f the makespan is Table 3's, (nsv + p-1 + (v-1)max(p-sn, 0))(tF + tB), for v = 1, s >= p,
s dividing p, and with q = max(1, p div s) for m <= q and q dividing m; elsewhere it can be a few
ticks longer: in 3 of the 864 shapes with p <= 6, m <= 12, v <= 4, s <= 3, and at tB = 2 tF in 116
(74 ticks for 69 at p = 4, m = 5, v = 4, s = 1, where an order within the same f takes 69), as
``python -m benchmarks.family_audit`` counts. What becomes of microbatches that fill no group of q
is left open by the paper; ours is ``svpp_orders.group_sizes``.

*Weight gradients apart* (MEPipe section 5), whole or cut into single GEMMs. The backward of a slice
is split into I and W. W waits in a queue of its rank and is taken out when the rank would otherwise
wait, or when it holds f units and a forward could go on: a unit is held from F to the end of W, so
a rank without room does W at once and one with room delays it (section 5, Figure 7).

Here f bounds what a rank holds, and may exceed SVPP's largest f up to all m*v*s units: Figure 7(b)
spends memory above 7(a)'s that way. With one slice, one chunk and f = 2p-1 it idles no more than
ZB-H2. The default is SVPP's largest f, as in Figure 7(a).

Where the pipeline cuts W into parts (``weight_parts``) or its slices differ in cost (rows of
ticks), the order of F and I stays and that of W is found at those ticks: the
shortest of a few runs. Otherwise the order is that of equal ticks. Not covered: a
choice at run time, and another order of F and I than that of equal ticks.
Source: MEPipe (EuroSys 2025) section 5. Legal range: any p, m, v, s and v*s <= f <= m*v*s.

*Single GEMMs in the waits.* MEPipe section 5 puts the weight GEMMs of a slice in a queue and takes
them out while a rank waits for a tensor; it stops between two of them as soon as the next F or I
can go on. That happens at run time, so it depends on the ticks. Here the run is played through once
(``orders.weight_filling``, with F and I in the order of the uncut schedule) and its order kept. An
*eager* part can delay the F or I that comes during it by less than one GEMM.

Neither is always best (starting early can end late in any list schedule), and single parts need not
beat whole W's. So the order is that of the shortest run: the uncut schedule with the parts of each
W side by side, or a run, eager or patient, with parts or with whole W's. It is therefore never
longer than what the same rule makes of the uncut pipeline. No run gets stuck: an F that lacks room
waits for W's whose I came before it, and the uncut schedule found room after some of those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.families.base import Family, program_of_tasks, with_whole_weights
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.families.svpp_orders import slice_orders
from bubbleproof.theory.model.actions import NONE, Ints, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.orders.weight_filling import (
    WeightFilling,
    main_lists,
    parts_of_inputs,
)
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.programs.messages_in_programs import without_messages
from bubbleproof.theory.pipelines.timing import left_shift


def least_forwards(pipeline: Pipeline) -> int:
    """v*s, the forwards of one sample on one rank (MEPipe section 4.2)."""
    return pipeline.num_chunks * pipeline.num_slices


def most_forwards(pipeline: Pipeline) -> int:
    """min(v*max(p,s) + min(p,s) - 1, m*v*s), the f of the shortest SVPP (MEPipe Table 3)."""
    p, v, s = pipeline.num_ranks, pipeline.num_chunks, pipeline.num_slices
    return min(v * max(p, s) + min(p, s) - 1, pipeline.num_microbatches * v * s)


@dataclass(frozen=True, kw_only=True)
class SVPP(Family):
    """Sequence virtual pipeline parallelism; ``forwards`` is f, or None for the largest."""

    forwards: int | None = None

    name = "svpp"
    title = "SVPP"
    source = "MEPipe (EuroSys 2025) sections 4.1 to 4.4"
    least = frozenset({"bubble", "memory"})
    options = frozenset({"v", "s", "f"})

    def limit(self, pipeline: Pipeline) -> int:
        """The f of this pipeline."""
        return most_forwards(pipeline) if self.forwards is None else self.forwards

    def largest(self, pipeline: Pipeline) -> int:
        """The largest f this family takes."""
        return most_forwards(pipeline)

    def refusal(self, pipeline: Pipeline) -> str | None:
        least, most = least_forwards(pipeline), self.largest(pipeline)
        if not least <= self.limit(pipeline) <= most:
            p, v, s = pipeline.num_ranks, pipeline.num_chunks, pipeline.num_slices
            nearest = least if self.limit(pipeline) < least else most
            return (
                f"{self.name} runs f = {least} (v*s) to {most} forwards before the first backward "
                f"at p={p} m={pipeline.num_microbatches} v={v} s={s}, got f={self.forwards}; "
                f"use f={nearest}"
            )
        return super().refusal(pipeline)

    def program(self, pipeline: Pipeline) -> Program:
        return slice_orders(pipeline, self.limit(pipeline))

    def ours(self, pipeline: Pipeline) -> str | None:
        del pipeline
        return (
            "f is the paper's; the order is bubbleproof's and can take longer than Table 3. The "
            "paper's generator is svpp-printed."
        )

    def variant(self, params: FamilyParameters) -> Family:
        return type(self)(forwards=params.f)

    def full_params(
        self, params: FamilyParameters, pipeline: Pipeline
    ) -> dict[str, int | tuple[int, ...]]:
        return super().full_params(params, pipeline) | {"f": self.limit(pipeline)}


@dataclass(frozen=True, kw_only=True)
class SVPPWeights(SVPP):
    """SVPP with I and W, W filling the waits; ``forwards`` bounds what a rank holds."""

    name = "svpp-w"
    title = "SVPP, weight gradients apart"
    source = "MEPipe (EuroSys 2025) section 5"
    least = frozenset()
    is_split = True
    cuts_weights = True

    def largest(self, pipeline: Pipeline) -> int:
        return pipeline.num_microbatches * least_forwards(pipeline)

    def program(self, pipeline: Pipeline) -> Program:
        whole = super().program(pipeline)
        ticks = (
            pipeline.ticks.forward,
            pipeline.ticks.input_backward,
            pipeline.ticks.weight_backward,
        )
        is_even = all((table == table[:, :1]).all() for table in ticks)
        if is_even and not pipeline.part_ticks:
            return whole
        return shortest_filling(pipeline, whole, self.limit(pipeline))


def shortest_filling(pipeline: Pipeline, uncut: Program, limit: int) -> Program:
    """The order for a pipeline with cut W or uneven slices.

    ``uncut`` is an order of its F, I and whole W that holds at most ``limit`` units per rank.

    Parameters
    ----------
    limit
        Units that a rank may hold.
    """
    problem = without_messages(pipeline.problem())
    found = [uncut]
    for source in dict.fromkeys([with_whole_weights(pipeline), pipeline]):
        found += _runs(without_messages(source.problem()), uncut, limit)
    programs = [program_of_tasks(problem, _expanded(problem, program)) for program in found]
    return min(programs, key=lambda program: _makespan(problem, program))


def _runs(problem: Problem, uncut: Program, limit: int) -> list[Program]:
    is_weight = (problem.actions.kind == Kind.W).tolist()
    orders = _expanded(problem, uncut)
    mains = [[task for task in order if not is_weight[task]] for order in orders]
    tasks, parts = main_lists(problem), parts_of_inputs(problem)
    found = []
    for is_patient in (False, True):
        run = WeightFilling(tasks, mains, parts, limit, is_patient=is_patient)
        if not run.run():
            raise ValueError("an order with weights put off came to a stop before its end")
        found.append(program_of_tasks(problem, run.orders))
    return found


def _expanded(problem: Problem, program: Program) -> list[list[int]]:
    """The tasks of each rank in the order of ``program``, parts side by side where it has none."""
    place: dict[tuple[int, ...], int] = {}
    for row, action in enumerate(program.actions):
        place[action.kind, action.stage, action.microbatch, action.slice, action.part] = row
    actions = problem.actions
    columns = (actions.kind, actions.stage, actions.microbatch, actions.slice, actions.part)
    position = [
        place[name] if name in place else place[(*name[:-1], NONE)]
        for name in zip(*(column.tolist() for column in columns), strict=True)
    ]
    order = np.lexsort([actions.part, np.array(position), problem.rank_of_task])
    rank = problem.rank_of_task[order]
    return [order[rank == r].tolist() for r in range(problem.num_ranks)]


def _makespan(problem: Problem, program: Program) -> int:
    ticks: Ints = problem.duration[problem.locate(program.actions)]
    return int((left_shift(problem, program).start + ticks).max())
