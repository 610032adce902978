"""MEPipe's planner on the ranks of a problem file, as printed and as it should be.

Symbols: p stages, n samples (microbatches), v chunks per stage, s slices, f forwards of the first
stage before its first backward, A activations of a sample through all layers: one action keeps
A/(vsp), which is a rank's activation of a microbatch over v s.

*Memory* (section 4.5): static (weights, gradients, optimizer), temporary, and f A/(vsp). So within
a rank's capacity M

    f <= floor((M - static - temporary) v s / (A/p)),    v s <= f <= v max(p,s) + min(p,s) - 1

(sections 4.2 and 4.4, Table 3); below v s nothing runs. ``static`` and A/p are the least of the
file, a stage with neither embedding nor head, since the paper's stages are alike;
``[paper.mepipe]`` may tell ``temporary`` in memory units.

*As printed*, of the (v, s) that the file lists the one with the lowest bubble ratio is chosen, with
the largest f that fits, among equals the fewest pieces v s. With the f of Table 3 the bubble is
Table 3's: a step takes n v s + p - 1 + (v-1) max(p - s n, 0) forwards and backwards. Of a smaller
f the paper has no formula; what section 4.3's generator gives at equal ticks is taken. Where the
file lists split backwards, weight gradients run apart and f is what the memory allows, up to all
that a rank runs (section 5). The order is executable where it keeps every rank's memory and, f
being Table 3's, has no more bubble than counted, at the file's ticks without latency. Section 4.3
prints the order of whole backwards; section 5 leaves its own to run time, and ``svpp-w`` is taken.

*As it should be*: our order for the largest f whose schedule the checker accepts with the memory of
every rank, and its makespan at the file's own ticks. That of the chosen (v, s) is the repair; the
shortest of all shapes is the repair where that has none, and is named.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4 and 5, Table 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.papers.planning.paper_choice import (
    AcceptedSchedule,
    PaperChoice,
    PaperInput,
    verified_run,
)
from bubbleproof.theory.families.printed import PrintedSVPP
from bubbleproof.theory.families.sliced.svpp import SVPP, SVPPWeights, least_forwards, most_forwards
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import SPLIT, WHOLE, Candidate
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, shaped

PAPER = "mepipe"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryMemory:
    """The table ``[paper.mepipe]``."""

    temporary: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A shape of SVPP that the space lists, with the largest f on paper (0: nothing fits)."""

    candidate: Candidate
    pipeline: Pipeline
    forwards: int

    def __str__(self) -> str:
        return f"v={self.candidate.chunks} s={self.candidate.slices} f={self.forwards}"

    @property
    def is_split(self) -> bool:
        """Whether weight gradients run apart."""
        return self.candidate.backward == SPLIT

    @property
    def least(self) -> int:
        """v s."""
        return least_forwards(self.pipeline)

    @property
    def of_table_3(self) -> int:
        """The f of SVPP itself: what fits, at most Table 3's."""
        return min(self.forwards, most_forwards(self.pipeline))

    @property
    def is_largest(self) -> bool:
        """Whether Table 3's f fits."""
        return self.of_table_3 == most_forwards(self.pipeline)

    @property
    def bubble(self) -> Fraction:
        """The share of idle time, by Table 3 or at equal ticks by section 4.3's generator."""
        work = self.pipeline.num_microbatches * self.least
        if self.is_largest:
            return 1 - Fraction(work, table_3_slots(self.pipeline))
        return 1 - Fraction(2 * work, _generated(self, forward=1, backward=1))

    @property
    def place(self) -> tuple[Fraction, int, bool]:
        """The paper's order of preference; of one shape that with weight gradients apart."""
        return self.bubble, self.least, not self.is_split


def mepipe_choice(given: PaperInput) -> PaperChoice:
    """What MEPipe would run, or its repair."""
    shapes = tuple(_variants(given))
    fitting = [one for one in shapes if one.forwards >= one.least]
    chosen = _chosen(shapes)
    own = None if chosen is None else printed_run(chosen)
    nearest = None if chosen is None else largest_that_runs(chosen)
    ours = [run for one in fitting if (run := largest_that_runs(one)) is not None]
    shortest = min(ours, key=lambda run: run.measured.makespan, default=None)
    run = own if isinstance(own, AcceptedSchedule) else nearest or shortest
    return PaperChoice(
        paper=PAPER,
        choice=_told(chosen),
        executable=isinstance(own, AcceptedSchedule),
        note="; ".join(_sentences(shapes, chosen, own, shortest)),
        value=None if run is None else run.measured.makespan,
        run=run,
    )


def predicted_ticks(given: PaperInput) -> int | None:
    """The paper's count of a step of its choice; None where nothing fits on paper.

    The work of the slowest stage over what the bubble leaves: n v s forwards and backwards.
    """
    chosen = _chosen(tuple(_variants(given)))
    if chosen is None:
        return None
    ticks = chosen.pipeline.ticks
    backward = ticks.backward
    if chosen.is_split:
        backward = ticks.input_backward + ticks.weight_backward
    each = int((ticks.forward + backward).max())
    work = chosen.pipeline.num_microbatches * chosen.least * each
    return -(-work // (1 - chosen.bubble))


def _chosen(shapes: tuple[Variant, ...]) -> Variant | None:
    fitting = [one for one in shapes if one.forwards >= one.least]
    return min(fitting, key=lambda one: one.place, default=None)


def table_3_slots(pipeline: Pipeline) -> int:
    """n v s + p - 1 + (v-1) max(p - s n, 0): forwards and backwards of a step (Table 3)."""
    p, n = pipeline.num_ranks, pipeline.num_microbatches
    v, s = pipeline.num_chunks, pipeline.num_slices
    return n * v * s + p - 1 + (v - 1) * max(p - s * n, 0)


def printed_run(one: Variant) -> AcceptedSchedule | str:
    """The paper's order where it runs as counted; or what it does instead."""
    if one.is_split:
        program = SVPPWeights(forwards=one.forwards).program(one.pipeline)
        return verified_run(one.pipeline, program, one.candidate)
    ticks = one.pipeline.ticks
    forward, backward = int(ticks.forward.max()), int(ticks.backward.max())
    if one.is_largest:
        counted = table_3_slots(one.pipeline) * (forward + backward)
        generated = _generated(one, forward=forward, backward=backward)
        if generated > counted:
            return f"section 4.3's order takes {generated} ticks, Table 3 counts {counted}"
    program = PrintedSVPP(forwards=one.forwards).program(one.pipeline)
    return verified_run(one.pipeline, program, one.candidate)


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
    schedule = PrintedSVPP(forwards=one.of_table_3).schedule(plain, problem)
    return measure(problem, schedule).makespan


def largest_that_runs(one: Variant) -> AcceptedSchedule | None:
    """Our order with the largest f that the checker accepts."""
    for forwards in range(one.forwards, one.least - 1, -1):
        chosen = (SVPPWeights if one.is_split else SVPP)(forwards=forwards)
        run = verified_run(one.pipeline, chosen.program(one.pipeline), one.candidate)
        if isinstance(run, AcceptedSchedule):
            return run
    return None


def _variants(given: PaperInput) -> Iterator[Variant]:
    """The shapes of SVPP that the space lists and the file can be divided into."""
    beside = TemporaryMemory(**given.table)  # type: ignore[arg-type]  # the layout has checked it
    for one in given.space.candidates():
        is_even = len(set(one.layers or (1,))) == 1
        if one.placement != "loop" or one.backward not in (WHOLE, SPLIT) or not is_even:
            continue
        try:
            pipeline = shaped(given.space, one).pipeline
        except NotLegalError:
            continue
        yield Variant(
            candidate=one, pipeline=pipeline, forwards=_forwards(pipeline, beside.temporary)
        )


def _forwards(pipeline: Pipeline, temporary: int) -> int:
    """The largest f that section 4.5's memory allows, and for whole backwards Table 3.

    With weight gradients apart f bounds what a rank holds, up to all it runs (section 5).
    """
    most = pipeline.num_microbatches * least_forwards(pipeline)
    if pipeline.split_backward is False:
        most = most_forwards(pipeline)
    activation = int(pipeline.per_stage.activation.min())
    if pipeline.least_capacity is None or not activation:
        return most
    left = pipeline.least_capacity - temporary - min(_static_of_ranks(pipeline))
    return max(0, min(most, left // activation))


def _static_of_ranks(pipeline: Pipeline) -> list[int]:
    totals = [0] * pipeline.num_ranks
    for rank, static in zip(pipeline.stage_ranks, pipeline.per_stage.static.tolist(), strict=True):
        totals[rank] += static
    return totals


def _told(chosen: Variant | None) -> dict[str, object]:
    """The choice for a report; ``bubble`` is that of whole backwards."""
    if chosen is None:
        return dict.fromkeys(("chunks", "slices", "f", "weights_apart", "bubble"))
    return {
        "chunks": chosen.candidate.chunks,
        "slices": chosen.candidate.slices,
        "f": chosen.forwards,
        "weights_apart": chosen.is_split,
        "bubble": str(chosen.bubble),
    }


def _sentences(
    shapes: tuple[Variant, ...],
    chosen: Variant | None,
    own: AcceptedSchedule | str | None,
    shortest: AcceptedSchedule | None,
) -> Iterator[str]:
    for one in shapes:
        if one.forwards < one.least and (not one.is_split or len(shapes) == 1):
            yield f"{one}: needs room for {one.least} forwards before the first backward"
    if chosen is None:
        yield "nothing fits on paper"
    elif isinstance(own, str):
        yield f"{chosen} does not run as printed: {own}"
    if shortest is not None and not (
        isinstance(own, AcceptedSchedule) and own.measured.makespan <= shortest.measured.makespan
    ):
        yield f"shortest of ours: {shortest.candidate}, {shortest.measured.makespan} ticks"
