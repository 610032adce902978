"""The steps of a traced job: the same actions again and again, on every rank.

A rank's step ends where an action of it comes a second time; a SEND or RECV that comes again before
the rank has computed all, or at once, was tried again and is one span. All ranks must have run the
same step as often, and every step must have the actions of the others: the first and the last are
left out where the profiler cut them, and one between them on all ranks. What remains is one
pipeline (``formats.inference``), whose messages join the ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from bubbleproof.formats.errors import UnusableInput, about, one_line
from bubbleproof.formats.inference import infer_pipeline
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.traces.trace_spans import TracedRank, TraceSpan

COMPUTE = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R, Kind.OVERLAP_F_B)
RankSpans = dict[Action, TraceSpan]  # of one rank in one step, in order of begin
Step = tuple[RankSpans, ...]  # by rank


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedJob:
    """The whole steps of all ranks, the pipeline that they ran, and in which order they ran it.

    ``left_out`` says what of the traces is not in it.
    """

    traces: Sequence[TracedRank] = field(repr=False)
    steps: Sequence[Step] = field(repr=False)
    pipeline: Pipeline
    program: Program
    left_out: Sequence[str] = ()

    @property
    def num_ranks(self) -> int:
        return len(self.traces)

    def rank_of_stage(self) -> dict[int, int]:
        """The rank that ran each stage (the last, where several did)."""
        rows = zip(self.program.actions, self.program.resource.tolist(), strict=True)
        return {action.stage: rank for action, rank in rows}


def traced_job(traces: Sequence[TracedRank]) -> TracedJob:
    """Join the traces of a job. Raises ``UnusableInput`` where they are not of one.

    Parameters
    ----------
    traces
        One of each rank, in any order.
    """
    ranks = _by_rank(traces)
    cut = [_cut(trace) for trace in ranks]
    usual = [Counter(map(frozenset, steps)).most_common(1)[0][0] for steps in cut]
    pairs = list(zip(cut, usual, strict=True))
    kept = [[step for step in steps if step.keys() == whole] for steps, whole in pairs]
    left_out = [
        f"rank {rank}: {len(steps) - len(whole)} of {len(steps)} steps, which lack actions"
        for rank, (steps, whole) in enumerate(zip(cut, kept, strict=True))
        if len(steps) > len(whole)
    ]
    left_out += [f"rank {each.rank}: its file ends early" for each in ranks if each.is_truncated]
    rows = [_between(*pair) for pair in pairs]
    number, is_early = min(map(len, rows)), any(each.is_truncated for each in ranks)
    if any(len(steps) != number for steps in rows):
        told, which = ", ".join(str(len(steps)) for steps in rows), "first" if is_early else "last"
        left_out.append(f"the ranks have {told} whole steps; the {which} {number} are taken")
    rows = [each[:number] if is_early else each[len(each) - number :] for each in rows]
    steps = [
        step
        for step in zip(*rows, strict=True)
        if all(spans.keys() == whole for spans, whole in zip(step, usual, strict=True))
    ]
    if not steps:
        raise UnusableInput.of_values("", "no step is whole on all ranks; profile more steps")
    program = _program(steps[-1])
    with about("the traces"):
        pipeline = infer_pipeline(program)
    job = TracedJob(
        traces=ranks, steps=steps, pipeline=pipeline, program=program, left_out=left_out
    )
    _require_whole(job)
    return job


def _by_rank(traces: Sequence[TracedRank]) -> list[TracedRank]:
    """The traces of ranks 0, 1, ... of one job."""
    found: dict[int, TracedRank] = {}
    for trace in traces:
        if (other := found.setdefault(trace.rank, trace)) is not trace:
            raise UnusableInput.of_values(
                "",
                f"rank {trace.rank} stands in {other.path} and in {trace.path}; give the files "
                "of one run",
            )
    sizes = {trace.world_size: trace.path for trace in traces}
    if len(sizes) > 1:
        (first, one), (second, another) = list(sizes.items())[:2]
        raise UnusableInput.of_values(
            "",
            f"{one} is of a job with {first} ranks, {another} of one with {second}; give the "
            "files of one run",
        )
    size = max(*sizes, len(found))
    if missing := [str(rank) for rank in range(size) if rank not in found]:
        raise UnusableInput.of_values(
            "",
            f"no trace of rank {', '.join(missing[:5])} of {size}; what others waited for is "
            "not known without it: give its file",
        )
    return [found[rank] for rank in range(size)]


def _cut(trace: TracedRank) -> list[RankSpans]:
    """The steps of one rank."""
    steps: list[RankSpans] = [{}]
    computed = {span.action for span in trace.spans if span.action.kind in COMPUTE}
    for span in trace.spans:
        earlier = steps[-1].get(span.action)
        if earlier is not None and _is_retry(span.action, steps[-1], computed):
            span = _joined(earlier, span)
        elif earlier is not None:
            steps.append({})
        steps[-1][span.action] = span
    return steps


def _is_retry(action: Action, step: RankSpans, computed: Set[Action]) -> bool:
    """Whether an action that comes again was tried again, rather than begins the next step."""
    if action.kind not in COMMUNICATION_KINDS:
        return False
    latest = next(each for each in reversed(step) if each.kind is action.kind)
    return latest == action and (next(reversed(step)) == action or not computed <= step.keys())


def _joined(earlier: TraceSpan, again: TraceSpan) -> TraceSpan:
    """One span of both attempts."""
    received = earlier.received if again.received is None else again.received
    return replace(earlier, end=max(earlier.end, again.end), received=received)


def _between(steps: Sequence[RankSpans], whole: Set[Action]) -> Sequence[RankSpans]:
    """The steps of a rank from its first whole one to its last."""
    places = [place for place, step in enumerate(steps) if step.keys() == whole]
    return steps[places[0] : places[-1] + 1]


def _program(step: Step) -> Program:
    """The order of computations of each rank, as they began."""
    return Program.from_orders(
        [[action for action in spans if action.kind in COMPUTE] for spans in step]
    )


def _require_whole(job: TracedJob) -> None:
    """Every task of the pipeline once, or there are no whole steps in the traces."""
    problem = job.pipeline.problem()
    missing = set(problem.actions) - set(job.program.actions)
    if missing:
        named = one_line(", ".join(sorted(map(str, missing))), 60)
        raise UnusableInput.of_values(
            "",
            f"the traces hold no whole step: nobody ran {named}; profile at least one step "
            "from its begin to its end on all ranks",
        )
