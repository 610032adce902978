"""T-Pipe's planner: whether the shallow chunk is recomputed and the deep chunk's state off-loaded.

Symbols: p ranks, m microbatches, two chunks per rank; F and B the ticks of a rank (both its
chunks), a the activation of one chunk, x and y rounds as in ``papers.tpipe.tpipe_formulas``. The
paper gives principles and no algorithm: recompute the chunk whose activations live longest (section
4.2), off-load the state of the chunk that is updated first (section 5) where bubbles hide it. So
there are four ways to run, and as printed they take and hold

    way                       ticks                 a rank holds, beside its static memory
    plain                     6(m+p-1) F/2          ceil(2/3 + x + y + p/2) a + ceil((3p-2)/6) a
    offload                   the same              the same, less half of the state
    recompute                 (6p + 7(m-1)) F/2     (floor(p/2) + 1) a
    recompute, offload        the same              the same, less half of the state

(Appendices A and C), and off-loading is open where Appendix D's conditions hold: the gradients'
off-load and the host's step of half a rank fit (p-y-1) B/2, the upload fits (p-x-1) F/2 (Eq. 6, 8).
The choice is the first way that is open and fits, the least ticks first.

Every way is then built and checked, off-loading also where the conditions do not hold: it may cost
some ticks and is then measured with them. What runs in place of a choice that does not fit is the
way of the least measured ticks, which is ``improved`` in any case. The paper's formulas leave out
what a recomputation keeps, count one activation too many for odd p, and take B = 2F.

The table ``[paper.tpipe]`` tells of a *rank*: ``state``, memory units of optimizer state, part of
its static memory; ``offload``, ``step`` and ``upload``, ticks to bring its gradients to the host,
to update there, and to bring weights back. Without ``state`` nothing can be off-loaded. What may be
recomputed is the file's ``[choices.recompute]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bubbleproof.papers.planning.paper_choice import (
    AcceptedSchedule,
    PaperChoice,
    PaperInput,
    even_candidate,
    verified_run,
)
from bubbleproof.papers.planning.unmet import UnmetPremiseError, lacking
from bubbleproof.papers.tpipe.tpipe_formulas import (
    backward_rounds,
    deep_peak,
    forward_rounds,
    printed_trecomp_makespan,
    shallow_peak,
    tpipe_makespan,
    trecomp_peak,
)
from bubbleproof.theory.families import family
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.recompute import Recompute
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.theory.pipelines.stage_numbers import column
from bubbleproof.theory.pipelines.state_offload import StateOffload
from bubbleproof.theory.pipelines.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNumbers:
    """The table ``[paper.tpipe]``; None where the file tells of no state."""

    state: int | None = None
    offload: int = 0
    step: int = 0
    upload: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TPipeVariant:
    """One of the four ways to run, and what the paper counts for it (ticks, memory units).

    ``open`` tells whether its conditions hold.
    """

    recompute: bool
    offload: bool
    open: bool
    ticks: int
    held: int

    def __str__(self) -> str:
        parts = ["T-Recomp"] * self.recompute + ["T-Offload"] * self.offload
        return f"T-Pipe with {' and '.join(parts)}" if parts else "T-Pipe alone"


def tpipe_choice(given: PaperInput) -> PaperChoice:
    """The paper's choice and what runs.

    Raises ``ValueError`` where a rank's work has no two halves.
    """
    candidate = even_candidate(given.space, 2)
    shape = _halves(given.space, candidate)
    host = HostNumbers(**given.table)  # type: ignore[arg-type]  # the layout has checked them
    _require_state(shape.pipeline, host)
    ways = printed_ways(given.space, shape, host)
    chosen = next((way for way in ways if way.open and fits(shape.pipeline, way)), None)
    runs = {way: _run(given.space, candidate, shape, host, way) for way in ways}
    return _answer(given, shape.pipeline, host, chosen, runs)


def predicted_ticks(given: PaperInput) -> int | None:
    """The paper's count of its choice; None where nothing fits on paper.

    Raises ``ValueError`` as ``tpipe_choice`` does.
    """
    shape = _halves(given.space, even_candidate(given.space, 2))
    host = HostNumbers(**given.table)  # type: ignore[arg-type]  # the layout has checked them
    ways = printed_ways(given.space, shape, host)
    return next((w.ticks for w in ways if w.open and fits(shape.pipeline, w)), None)


def _require_state(pipeline: Pipeline, host: HostNumbers) -> None:
    """Raise ``ValueError`` for a state beyond a rank, or beyond twice its first stage."""
    static, p = column(pipeline.static).tolist(), pipeline.num_ranks
    most = min(
        min(2 * first, first + second) for first, second in zip(static[:p], static[p:], strict=True)
    )
    if host.state is not None and host.state > most:
        raise ValueError(
            "paper.tpipe.state must be part of the static memory of every rank, half of it of the "
            f"first chunk's, got {host.state}; use {most} or less"
        )


def _halves(space: PlanSpace, candidate: Candidate) -> ShapedPipeline:
    try:
        return shaped(space, candidate)
    except NotLegalError as why:
        layers, stages = space.layers, 2 * space.pipeline.num_ranks
        if layers is not None:
            near = max(1, round(layers.number / stages)) * stages
            sizes = [n for n in range(1, layers.number) if layers.number % (2 * n) == 0] or [1]
            size = min(sizes, key=lambda n: abs(n - space.pipeline.num_ranks))
            hint = f"{near} layers, or such as {size} ranks"
        else:
            listed = [f"{name} = {value + 1}" for name, value in _odd_numbers(space)]
            hint = " and ".join(listed) or "numbers that 2 divides"
        raise UnmetPremiseError(
            "section 4.1 has two even chunks on each rank:", str(why), hint
        ) from None


def _odd_numbers(space: PlanSpace) -> list[tuple[str, int]]:
    """The numbers of a rank that have no half, each once, by the keys of a problem file."""
    given, allowed = space.pipeline, space.allowed or AllowedChoices()
    rows = [(name, getattr(given.ticks, name)[:, 0].tolist()) for name in ("forward", "backward")]
    rows.append(("activation", given.per_stage.activation.tolist()))
    rows.append(("released_at_input", given.per_stage.released.tolist()))
    if (again := allowed.recompute) is not None:
        rows.append(("choices.recompute.kept", [again.kept]))
        rows.append(("choices.recompute.duration", [again.duration or 0]))
    if (move := allowed.evict) is not None:
        rows.append(("choices.evict.duration", [move.duration]))
    if (away := allowed.offload) is not None:
        rows.append(("choices.offload.offload", [away.offload]))
        rows.append(("choices.offload.reload", [away.reload]))
    return [(name, value) for name, row in rows for value in dict.fromkeys(row) if value % 2]


def printed_ways(space: PlanSpace, shape: ShapedPipeline, host: HostNumbers) -> list[TPipeVariant]:
    """The ways that the file leaves, as the paper counts them, the least ticks first."""
    pipeline = shape.pipeline
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    unit = int(pipeline.ticks.forward.max())
    each, base = int(column(pipeline.activation).max()), _base(pipeline)
    half, is_hidden = (host.state or 0) // 2, is_offload_open(space.pipeline, host)
    peaks = {False: shallow_peak(p) + deep_peak(p), True: trecomp_peak(p)}
    spans = {False: tpipe_makespan(p, m), True: printed_trecomp_makespan(p, m)}
    return [
        TPipeVariant(
            recompute=again,
            offload=away,
            open=not away or is_hidden,
            ticks=spans[again] * unit,
            held=base + peaks[again] * each - away * half,
        )
        for again in (False, True)[: 1 + is_recomputing_open(shape)]
        for away in (False, True)[: 1 + (host.state is not None)]
    ]


def is_recomputing_open(shape: ShapedPipeline) -> bool:
    """Whether the file lets the whole shallow chunk be recomputed."""
    again = None if shape.allowed is None else shape.allowed.recompute
    return again is not None and {*range(shape.pipeline.num_ranks)} <= {*again.stages}


def is_offload_open(rank: Pipeline, host: HostNumbers) -> bool:
    """Whether a rank's state can be off-loaded as Appendix D has it, within the bubbles."""
    return host.state is not None and not unhidden(rank, host)


def unhidden(rank: Pipeline, host: HostNumbers) -> str:
    """What of Equations 6 and 8 does not hold of the rank's own numbers; both sides doubled.

    ``rank`` has one chunk.
    """
    p, ticks = rank.num_ranks, rank.ticks
    down = (p - backward_rounds(p) - 1) * int(ticks.backward.min())
    up = (p - forward_rounds(p) - 1) * int(ticks.forward.min())
    unit, over = plural(rank.unit), []
    if host.offload + host.step > down:
        over.append(f"Eq. 6: off-load and step take {host.offload + host.step:,} of {down:,}")
    if host.upload > up:
        over.append(f"Eq. 8: the upload takes {host.upload:,} of {up:,}")
    return f"{' and '.join(over)} {unit}" if over else ""


def fits(pipeline: Pipeline, way: TPipeVariant) -> bool:
    """Whether the paper's count of memory is within what every rank has."""
    return all(
        store.capacity is None or way.held <= store.capacity for store in pipeline.problem().stores
    )


def _base(pipeline: Pipeline) -> int:
    return max(store.base for store in pipeline.problem().stores)


def _run(
    space: PlanSpace,
    candidate: Candidate,
    shape: ShapedPipeline,
    host: HostNumbers,
    way: TPipeVariant,
) -> AcceptedSchedule | str:
    """The way as a checked schedule, or what is wrong with it."""
    pipeline = built(shape, host, way)
    name = "toffload" if way.offload else "trecomp" if way.recompute else "tpipe"
    is_listed = candidate in space.candidates() and not way.offload
    if (why := family(name).refusal(pipeline)) is not None:
        return why
    program = family(name).program(pipeline)
    return verified_run(pipeline, program, candidate if is_listed else None)


def built(shape: ShapedPipeline, host: HostNumbers, way: TPipeVariant) -> Pipeline:
    """The pipeline of a way. Precondition: it is open (``printed_ways``)."""
    pipeline, allowed = shape.pipeline, shape.allowed
    p = pipeline.num_ranks
    again = None if allowed is None else allowed.recompute
    if way.recompute and again is not None:
        choice = Recompute(stages=tuple(range(p)), kept=again.kept, duration=again.duration)
        pipeline = pipeline.with_changes(recompute=choice)
    if not way.offload:
        return pipeline
    half = (host.state or 0) // 2
    static = [units - half * (stage < p) for stage, units in enumerate(column(pipeline.static))]
    away = StateOffload(
        stages=tuple(range(p, 2 * p)),
        offload=-(-host.offload // 2),
        step=-(-host.step // 2),
        reload=-(-host.upload // 2),
        state=half,
    )
    return pipeline.with_changes(static=tuple(map(int, static)), state_offload=away)


def _answer(
    given: PaperInput,
    pipeline: Pipeline,
    host: HostNumbers,
    chosen: TPipeVariant | None,
    runs: Mapping[TPipeVariant, AcceptedSchedule | str],
) -> PaperChoice:
    timed = {way: run.ticks for way, run in runs.items() if isinstance(run, AcceptedSchedule)}
    best = min(timed, key=lambda way: timed[way], default=None)
    ran = chosen if chosen in timed else best
    return PaperChoice(
        paper="tpipe",
        choice=_choice(pipeline, chosen),
        executable=chosen is not None and ran is chosen,
        note=_note(given, pipeline, host, chosen, ran, runs, timed),
        value=None if ran is None else timed[ran],
        run=_run_of(runs, ran),
        improved=_run_of(runs, best),
    )


def _run_of(
    runs: Mapping[TPipeVariant, AcceptedSchedule | str], way: TPipeVariant | None
) -> AcceptedSchedule | None:
    run = None if way is None else runs[way]
    return run if isinstance(run, AcceptedSchedule) else None


def _choice(pipeline: Pipeline, chosen: TPipeVariant | None) -> dict[str, object]:
    p = pipeline.num_ranks
    if chosen is None:
        return {"chunks": 2, "recompute": [], "offload": [], "ticks": None, "memory": None}
    return {
        "chunks": 2,
        "recompute": [*range(p)] if chosen.recompute else [],
        "offload": [*range(p, 2 * p)] if chosen.offload else [],
        "ticks": chosen.ticks,
        "memory": chosen.held,
    }


def _no_way(given: PaperInput, pipeline: Pipeline, host: HostNumbers) -> str:
    """That no way fits by Appendices A and C, and what the one that holds least lacks."""
    ways = printed_ways(given.space, _halves(given.space, even_candidate(given.space, 2)), host)
    least = min(ways, key=lambda way: way.held)
    caps = [s.capacity for s in pipeline.problem().stores if s.capacity is not None]
    lacks = lacking(least.held, min(caps), pipeline.memory_unit)
    return f"by Appendices A and C no way of running fits: {least} holds {lacks}"


def _note(
    given: PaperInput,
    pipeline: Pipeline,
    host: HostNumbers,
    chosen: TPipeVariant | None,
    ran: TPipeVariant | None,
    runs: Mapping[TPipeVariant, AcceptedSchedule | str],
    timed: Mapping[TPipeVariant, int],
) -> str:
    told = []
    if chosen is None:
        told.append(_no_way(given, pipeline, host))
    elif ran is not chosen:
        told.append(f"{chosen} fits by the paper's count, and not when it is built: {runs[chosen]}")
    if ran is None:
        told.append("no way of running fits when it is built")
    elif ran is not chosen:
        told.append(f"{ran} runs in its place")
    elif timed[ran] > ran.ticks:
        told.append(f"it takes {timed[ran] - ran.ticks} more ticks than the paper counts")
    if host.state is not None and (why := unhidden(given.space.pipeline, host)):
        told.append(f"Appendix D's conditions for T-Offload do not hold ({why})")
    return "; ".join(told) or "it runs as the paper counts, or in less"
