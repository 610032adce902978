"""MEPipe's planner on the ranks of a problem file, as printed and as it should be.

Symbols: p stages, n samples (microbatches), v chunks per stage, s slices, f forwards of the first
stage before its first backward, A activations of a sample through all layers: one action keeps
A/(vsp), which is a rank's activation of a microbatch over v s.

*Memory* (section 4.5): static (weights, gradients, optimizer), temporary, and f A/(vsp). So within
a rank's capacity M

    f <= floor((M - static - temporary) v s / (A/p)),    v s <= f <= v max(p,s) + min(p,s) - 1

(sections 4.2 and 4.4, Table 3); below v s nothing runs. ``static`` is the least of the file, a
stage with neither embedding nor head, since the paper's stages are alike; ``[paper.mepipe]`` may
tell ``temporary`` in memory units.

*As printed*, of the (v, s) that the file lists the one with the lowest bubble ratio is chosen, with
the largest f that fits, among equals the fewest pieces v s. With the f of Table 3 the bubble is
Table 3's: a step takes n v s + p - 1 + (v-1) max(p - s n, 0) forwards and backwards. Of a smaller
f the paper has no formula; what section 4.3's generator gives at equal ticks is taken. Its order is
executable where it keeps every rank's memory and has no more bubble than counted, at the file's
ticks without latency.

*As it should be*: our order for the largest f whose schedule the checker accepts with the memory of
every rank, and its makespan at the file's own ticks. That of the chosen (v, s) is the repair; the
shortest of every (v, s), with weight gradients apart where the file lists split backwards (section
5), is the repair where that has none, and is named.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4 and 5, Table 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.planners.papers.paper_choice import Given, PaperChoice, Run, verified_run
from bubbleproof.theory.families.printed import PrintedSVPP
from bubbleproof.theory.families.svpp import SVPP, SVPPWeights, least_forwards, most_forwards
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.plan_space import SPLIT, WHOLE, Candidate
from bubbleproof.theory.pipelines.shaping import NotLegalError, shaped

PAPER = "mepipe"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryMemory:
    """The table ``[paper.mepipe]``."""

    temporary: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """An SVPP variant that fits on paper: its candidate, and the largest f."""

    candidate: Candidate
    pipeline: Pipeline
    forwards: int

    def __str__(self) -> str:
        return f"v={self.candidate.chunks} s={self.candidate.slices} f={self.forwards}"

    @property
    def is_largest(self) -> bool:
        """Whether f is Table 3's."""
        return self.forwards == most_forwards(self.pipeline)


def mepipe_choice(given: Given) -> PaperChoice:
    """What MEPipe would run, or its repair."""
    planner = _Planner(given)
    variants = [one for one in planner.candidates(WHOLE) if one.forwards >= _least(one)]
    chosen = min(variants, key=_rank, default=None)
    own = None if chosen is None else printed_run(chosen)
    nearest = None if chosen is None else planner.largest_that_runs(chosen, SVPP)
    shortest = planner.shortest()
    run = own if isinstance(own, Run) else nearest or shortest
    return PaperChoice(
        paper=PAPER,
        choice=_told(chosen),
        executable=isinstance(own, Run),
        note="; ".join(_sentences(planner, chosen, own, shortest)),
        value=None if run is None else run.measured.makespan,
        run=run,
    )


def table_3_slots(pipeline: Pipeline) -> int:
    """n v s + p - 1 + (v-1) max(p - s n, 0): forwards and backwards of a step (Table 3)."""
    p, n = pipeline.num_ranks, pipeline.num_microbatches
    v, s = pipeline.num_chunks, pipeline.num_slices
    return n * v * s + p - 1 + (v - 1) * max(p - s * n, 0)


def bubble(one: Variant) -> Fraction:
    """The share of idle time, by Table 3 or at equal ticks by section 4.3's generator."""
    work = one.pipeline.num_microbatches * _least(one)
    if one.is_largest:
        return 1 - Fraction(work, table_3_slots(one.pipeline))
    return 1 - Fraction(2 * work, _generated(one, forward=1, backward=1))


def _generated(one: Variant, *, forward: int, backward: int) -> int:
    """The makespan of the generator's order where all stages take the same, without latency."""
    given = one.pipeline
    plain = Pipeline(
        num_ranks=given.num_ranks,
        num_microbatches=given.num_microbatches,
        num_chunks=given.num_chunks,
        num_slices=given.num_slices,
        forward=forward,
        backward=backward,
    )
    problem = plain.problem()
    schedule = PrintedSVPP(forwards=one.forwards).schedule(plain, problem)
    return measure(problem, schedule).makespan


def printed_run(one: Variant) -> Run | str:
    """The generator's order where it runs as counted; or what it does instead."""
    ticks = one.pipeline.ticks
    forward, backward = int(ticks.forward.max()), int(ticks.backward.max())
    if one.is_largest:
        counted = table_3_slots(one.pipeline) * (forward + backward)
        generated = _generated(one, forward=forward, backward=backward)
        if generated > counted:
            return f"section 4.3's order takes {generated} ticks, Table 3 counts {counted}"
    program = PrintedSVPP(forwards=one.forwards).program(one.pipeline)
    return verified_run(one.pipeline, program, one.candidate)


class _Planner:
    """The numbers that the paper's rules go by."""

    def __init__(self, given: Given) -> None:
        self.space = given.space
        beside = TemporaryMemory(**given.table)  # type: ignore[arg-type]  # the layout has checked it
        self.temporary = beside.temporary

    def candidates(self, backward: str) -> Iterator[Variant]:
        """The shapes of SVPP that the space lists and the file can be divided into."""
        for one in self.space.candidates():
            is_even = len(set(one.layers or (1,))) == 1
            if (one.placement, one.backward, is_even) != ("loop", backward, True):
                continue
            try:
                pipeline = shaped(self.space, one).pipeline
            except NotLegalError:
                continue
            yield Variant(candidate=one, pipeline=pipeline, forwards=self.forwards(pipeline))

    def forwards(self, pipeline: Pipeline) -> int:
        """The largest f that section 4.5's memory allows, and for whole backwards Table 3.

        With weight gradients apart f bounds what a rank holds, up to all it runs (section 5).
        """
        most = pipeline.num_microbatches * least_forwards(pipeline)
        if pipeline.split_backward is False:
            most = most_forwards(pipeline)
        capacity = pipeline.capacity
        caps = capacity if isinstance(capacity, tuple) else (capacity,)
        known = [cap for cap in caps if cap is not None]
        activation = int(pipeline.per_stage.activation.max())
        if not known or not activation:
            return most
        left = min(known) - self.temporary - min(_static_of_ranks(pipeline))
        return max(0, min(most, left // activation))

    def shortest(self) -> Run | None:
        """The shortest of our orders that the checker accepts."""
        runs = [
            run
            for backward, family in ((WHOLE, SVPP), (SPLIT, SVPPWeights))
            for one in self.candidates(backward)
            if (run := self.largest_that_runs(one, family)) is not None
        ]
        return min(runs, key=lambda run: run.measured.makespan, default=None)

    def largest_that_runs(self, one: Variant, family: type[SVPP]) -> Run | None:
        """Our order with the largest f that the checker accepts."""
        for forwards in range(one.forwards, _least(one) - 1, -1):
            program = family(forwards=forwards).program(one.pipeline)
            run = verified_run(one.pipeline, program, one.candidate)
            if isinstance(run, Run):
                return run
        return None


def _static_of_ranks(pipeline: Pipeline) -> list[int]:
    totals = [0] * pipeline.num_ranks
    for rank, static in zip(pipeline.stage_ranks, pipeline.per_stage.static.tolist(), strict=True):
        totals[rank] += static
    return totals


def _least(one: Variant) -> int:
    return least_forwards(one.pipeline)


def _rank(one: Variant) -> tuple[Fraction, int]:
    return bubble(one), _least(one)


def _told(chosen: Variant | None) -> dict[str, object]:
    """The choice for a report."""
    if chosen is None:
        return dict.fromkeys(("chunks", "slices", "f", "bubble"))
    return {
        "chunks": chosen.candidate.chunks,
        "slices": chosen.candidate.slices,
        "f": chosen.forwards,
        "bubble": str(bubble(chosen)),
    }


def _sentences(
    planner: _Planner, chosen: Variant | None, own: Run | str | None, shortest: Run | None
) -> Iterator[str]:
    for one in planner.candidates(WHOLE):
        if one.forwards < _least(one):
            yield f"{one}: needs room for {_least(one)} forwards before the first backward"
    if chosen is None:
        yield "nothing fits on paper"
    elif isinstance(own, str):
        yield f"{chosen} does not run as printed: {own}"
    if shortest is not None and not (
        isinstance(own, Run) and own.measured.makespan <= shortest.measured.makespan
    ):
        yield f"shortest of ours: {shortest.candidate}, {shortest.measured.makespan} ticks"
