"""MEPipe's planner on the ranks of a problem file, as printed and as it should be.

Symbols: p stages, n samples (microbatches), v chunks per stage, s slices, f forwards of the first
stage before its first backward, A activations of a sample through all layers: one action keeps
A/(vsp), which is a rank's activation of a microbatch over v s.

*Memory* (section 4.5): static (weights, gradients, optimizer), temporary, and f A/(vsp). So within
a rank's capacity M

    f <= floor((M - static - temporary) v s / (A/p)),    v s <= f <= v max(p,s) + min(p,s) - 1

(sections 4.2 and 4.4, Table 3); below v s nothing runs. The paper's stages are alike. Where a
file's differ, a rank's own room bounds f as far as it comes to hold that many: rank r of SVPP holds
min(f, h(r)) actions, h(r) those of it with Table 3's f. With weight gradients apart a rank may hold
all that it has room for, and h(r) are those that it must. ``[paper.mepipe]`` may tell ``temporary``
in memory units.

*As printed*, of the (v, s) that the file lists the one with the lowest bubble ratio is chosen, with
the largest f that fits, among equals the fewest pieces v s. With the f of Table 3 the bubble is
Table 3's: a step takes n v s + p - 1 + (v-1) max(p - s n, 0) forwards and backwards. Of a smaller
f the paper has no formula; what section 4.3's generator gives at equal ticks is taken. Where the
file lists split backwards, weight gradients run apart and f is what the memory allows, up to all
that a rank runs (section 5). An f whose order does not keep a rank's memory gives way to the next
below that does, which is the f told and timed. The order is executable where it keeps every rank's
memory and, f being Table 3's, has no more bubble than counted, at the file's ticks without latency.
Section 4.3 prints the order of whole backwards; section 5 leaves its own to run time, and
``svpp-w`` is taken.

*As it should be*: our order for the largest f whose schedule the checker accepts with the memory of
every rank, and its makespan at the file's own ticks. That of the chosen (v, s) is the repair; the
shortest of all shapes is the repair where that has none, and is named.

Source: Sun et al., "MEPipe" (EuroSys 2025) sections 4 and 5, Table 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from bubbleproof.papers.planning.paper_choice import (
    AcceptedSchedule,
    PaperChoice,
    PaperInput,
    verified_run,
)
from bubbleproof.papers.planning.unmet import lacking
from bubbleproof.theory.families.printed import PrintedSVPP
from bubbleproof.theory.families.svpp import SVPP, SVPPWeights, least_forwards, most_forwards
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
    def lacks(self) -> tuple[int, str] | None:
        """What the least f lacks on the fullest rank, and how that reads."""
        pipeline, found = self.pipeline, []
        for store in pipeline.problem().stores:
            if store.capacity is None:
                continue
            held = store.base + self.least * int(pipeline.per_stage.activation.max())
            told = f"{store.name} would hold {lacking(held, store.capacity, pipeline.memory_unit)}"
            found.append((held - store.capacity, told))
        return max(found, default=None)

    @property
    def counts_less(self) -> bool:
        """Whether Table 3 counts fewer ticks than section 4.3's order takes."""
        if self.is_split or not self.is_largest:
            return False
        each = self.slowest
        counted = table_3_slots(self.pipeline) * sum(each)
        return _generated(self, forward=each[0], backward=each[1]) > counted

    @property
    def slowest(self) -> tuple[int, int]:
        """The longest forward and backward."""
        ticks = self.pipeline.ticks
        return int(ticks.forward.max()), int(ticks.backward.max())

    @property
    def place(self) -> tuple[Fraction, int, bool]:
        """The paper's order of preference; of one shape that with weight gradients apart."""
        return self.bubble, self.least, not self.is_split


FoundVariant = tuple[Variant, AcceptedSchedule]


def mepipe_choice(given: PaperInput) -> PaperChoice:
    """What MEPipe would run, or its repair."""
    shapes = tuple(_variants(given))
    fitting = [one for one in shapes if one.forwards >= one.least]
    paper = _chosen(shapes)
    chosen, own = (None, None) if paper is None else _within_memory(paper)
    ours = [found for one in fitting if (found := largest_that_runs(one)) is not None]
    shortest = min(ours, key=_makespan, default=None)
    nearest = next((found for found in ours if paper and _is_shape(found[0], paper)), shortest)
    run = own if isinstance(own, AcceptedSchedule) else None if nearest is None else nearest[1]
    told = [*_sentences(shapes, chosen, own)]
    told += _lowered(paper, chosen)
    told += _ours(own, nearest, shortest)
    return PaperChoice(
        paper=PAPER,
        choice=_told(chosen),
        executable=isinstance(own, AcceptedSchedule),
        note="; ".join(told),
        value=None if run is None else run.measured.makespan,
        run=run,
    )


def _makespan(found: FoundVariant) -> int:
    return found[1].measured.makespan


def _is_shape(one: Variant, other: Variant) -> bool:
    return one.candidate == other.candidate


def _within_memory(paper: Variant) -> tuple[Variant, AcceptedSchedule | str]:
    """The choice with the largest f whose printed order keeps every rank's memory."""
    own = printed_run(paper)
    if isinstance(own, AcceptedSchedule) or paper.counts_less:
        return paper, own
    for forwards in range(paper.forwards - 1, paper.least - 1, -1):
        lower = replace(paper, forwards=forwards)
        if isinstance(run := printed_run(lower), AcceptedSchedule):
            return lower, run
    return paper, own


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
    if one.counts_less:
        forward, backward = one.slowest
        counted = table_3_slots(one.pipeline) * (forward + backward)
        generated = _generated(one, forward=forward, backward=backward)
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


def largest_that_runs(one: Variant) -> FoundVariant | None:
    """Our order with the largest f that the checker accepts, and that f."""
    for forwards in range(one.forwards, one.least - 1, -1):
        chosen = (SVPPWeights if one.is_split else SVPP)(forwards=forwards)
        run = verified_run(one.pipeline, chosen.program(one.pipeline), one.candidate)
        if isinstance(run, AcceptedSchedule):
            return replace(one, forwards=forwards), run
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
    for held, room in zip(held_of_ranks(pipeline), _rooms(pipeline, temporary), strict=True):
        if room is not None and held > room:
            most = min(most, room)
    if pipeline.split_backward is not False:
        rooms = [room for room in _rooms(pipeline, temporary) if room is not None]
        most = min([most, *rooms[:1]])
    return max(0, most)


def held_of_ranks(pipeline: Pipeline) -> tuple[int, ...]:
    """The actions that each rank of SVPP holds with Table 3's f."""
    return _held(
        pipeline.num_ranks,
        pipeline.num_microbatches,
        pipeline.num_chunks,
        pipeline.num_slices,
    )


@lru_cache(maxsize=256)
def _held(p: int, m: int, v: int, s: int) -> tuple[int, ...]:
    plain = Pipeline(num_ranks=p, num_microbatches=min(m, p + 1), num_chunks=v, num_slices=s)
    problem = plain.problem()
    return measure(problem, SVPP().schedule(plain, problem)).peak_activations


def _rooms(pipeline: Pipeline, temporary: int) -> list[int | None]:
    """The actions that each rank has room for; None where it has room for any number."""
    static, most = [0] * pipeline.num_ranks, [0] * pipeline.num_ranks
    numbers = pipeline.per_stage
    for rank, held, kept in zip(
        pipeline.stage_ranks, numbers.static.tolist(), numbers.activation.tolist(), strict=True
    ):
        static[rank] += held
        most[rank] = max(most[rank], kept)
    capacities = [store.capacity for store in pipeline.problem().stores]
    return [
        None if capacity is None or not kept else max(0, (capacity - temporary - held) // kept)
        for capacity, held, kept in zip(capacities, static, most, strict=False)
    ]


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
    shapes: tuple[Variant, ...], chosen: Variant | None, own: AcceptedSchedule | str | None
) -> Iterator[str]:
    for one in shapes:
        if one.forwards < one.least and (not one.is_split or len(shapes) == 1):
            yield f"{one}: {_lacks(one)}"
    if chosen is None:
        yield "nothing fits on paper"
    elif isinstance(own, str):
        yield f"{chosen} does not run as printed: {own}"


def _lacks(one: Variant) -> str:
    """What section 4.2's least f would take of the rank that has least room for it."""
    told = f"section 4.2 needs room for {one.least} forwards before the first backward"
    return f"{told}{', ' if (lacks := one.lacks) else ''}{lacks and lacks[1]}"


def why_nothing_fits(grid: Sequence[PaperInput]) -> str:
    """What the shape that lacks least would take, of deployments in which nothing fits."""
    shapes = [one for given in grid for one in _variants(given)]
    if not shapes:
        return (
            "section 4.1 cuts samples and ranks into even pieces, and no listed chunks and slices "
            "do; use plan.chunks and plan.slices that divide the layers and the sequence"
        )
    lacks = [(one.lacks or (0, ""), one) for one in shapes]
    (_, told), nearest = min(lacks, key=lambda each: each[0][0])
    return f"v={nearest.candidate.chunks} s={nearest.candidate.slices} on " + (
        f"{nearest.pipeline.num_ranks} ranks, the nearest to fitting: section 4.2's least f, "
        f"{nearest.least}, needs {told}"
    )


def _lowered(paper: Variant | None, chosen: Variant | None) -> Iterator[str]:
    """Which f fits by the stages' own numbers and not when it is built."""
    if paper is not None and chosen is not None and chosen.forwards < paper.forwards:
        yield f"f={paper.forwards} does not fit: {printed_run(paper)}"
        yield f"f={chosen.forwards} is the largest that does"


def _ours(
    own: AcceptedSchedule | str | None,
    nearest: FoundVariant | None,
    shortest: FoundVariant | None,
) -> Iterator[str]:
    """Which of our orders runs in place of the choice, and which is shorter; each with its f."""
    if isinstance(own, str) and nearest is not None:
        yield f"what is timed is ours: {nearest[0]}"
    if shortest is not None and not (
        isinstance(own, AcceptedSchedule) and own.measured.makespan <= _makespan(shortest)
    ):
        one, ticks = shortest[0], _makespan(shortest)
        yield f"shortest of ours: {one.candidate} f={one.forwards}, {ticks} ticks of the pipeline"
