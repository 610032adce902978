"""The named instances of the solver benchmark, each a pipeline and an objective.

``u(p,m)``: unsplit, tF = 1, tB = 2, room for ``cap`` activations per rank; with ``c=1`` tF = 2,
tB = 4, and messages take a tick. ``z(p,m) F/I/W c``: split, released at W; H1 has room for p
activations and H2 for 2p; ``H1part`` releases half of each at I. These 49 are the table. Beside
them stand several chunks per rank (Megatron's interleaving, V shapes of the zero-bubble papers),
split ones under span_idle, links that carry one message at a time, slices, and pipelines that
leave recomputation or evictions to the solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bubbleproof.solvers.encoding import Objective
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.pipeline import Pipeline

EQUAL, UNEVEN = (1, 1, 1), (10, 11, 8)


@dataclass(frozen=True, slots=True)
class Instance:
    """A problem to solve; with ``allowed``, the choices of ``pipeline`` that are left open.

    ``group`` is ``unsplit``, ``split``, ``span``, ``chunks`` or ``extension``; ``in_table``: one
    of the 49.
    """

    name: str
    group: str
    pipeline: Pipeline
    objective: Objective = "makespan"
    in_table: bool = False
    allowed: AllowedChoices | None = None

    def problem(self) -> Problem:
        """The problem, without any of the open choices."""
        return self.pipeline.problem()


def instances() -> list[Instance]:
    """All of them, the 49 of the table first."""
    return [*unsplit(), *split(), *chunked(), *spans(), *extensions()]


def unsplit() -> Iterator[Instance]:
    """The 31 unsplit instances of the table."""
    sizes = ((2, 4), (4, 4), (4, 8), (4, 16), (8, 8), (8, 16), (8, 32), (16, 32))
    for p, m in sizes:
        for cap in [2, 1] if p == 2 else [p, 3 * p // 4, p // 2]:
            pipeline = Pipeline(num_ranks=p, num_microbatches=m, capacity=cap)
            yield Instance(f"u({p},{m}) cap{cap}", "unsplit", pipeline, in_table=True)
        late = Pipeline(
            num_ranks=p, num_microbatches=m, capacity=p, forward=2, backward=4, latency=1
        )
        yield Instance(f"u({p},{m}) c=1 cap{p}", "unsplit", late, in_table=True)


def split_pipeline(
    p: int, m: int, times: tuple[int, int, int], cap: int, num_chunks: int = 1
) -> Pipeline:
    """Split with the given ticks of F, I, W; uneven ones with a tick of latency."""
    forward, inputs, weights = times
    return Pipeline(
        num_ranks=p,
        num_microbatches=m,
        split_backward=True,
        capacity=cap,
        forward=forward,
        input_backward=inputs,
        weight_backward=weights,
        latency=0 if times == EQUAL else 1,
        num_chunks=num_chunks,
        placement="loop" if num_chunks == 1 else "wave",
    )


def split() -> Iterator[Instance]:
    """The 18 split instances of the table."""
    for p, m in ((4, 8), (4, 12), (8, 24), (8, 32)):
        for times, text in ((EQUAL, "1/1/1 c=0"), (UNEVEN, "10/11/8 c=1")):
            for name, cap in (("H1", p), ("H2", 2 * p)):
                pipeline = split_pipeline(p, m, times, cap)
                yield Instance(f"z({p},{m}) {text} {name}", "split", pipeline, in_table=True)
    for p, m in ((4, 8), (8, 24)):
        whole = split_pipeline(p, m, UNEVEN, 2 * p)
        part = whole.with_changes(activation=2, released_at_input=1)
        yield Instance(f"z({p},{m}) 10/11/8 c=1 H1part", "split", part, in_table=True)


def chunked() -> Iterator[Instance]:
    """Several chunks per rank: interleaved, and V shapes."""
    for p, m, v, cap in ((4, 8, 2, 11), (4, 8, 2, 8), (4, 8, 2, 6), (4, 8, 4, None),
                         (8, 16, 2, 16)):  # fmt: skip
        pipeline = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v, capacity=cap)
        text = "no cap" if cap is None else f"cap{cap}"
        yield Instance(f"interleaved({p},{m}) v{v} {text}", "chunks", pipeline)
    for p, m, times, cap in ((4, 8, EQUAL, 8), (4, 8, UNEVEN, 8), (4, 8, EQUAL, 5),
                             (8, 16, EQUAL, 16)):  # fmt: skip
        pipeline = split_pipeline(p, m, times, cap, num_chunks=2)
        ticks = "/".join(map(str, times))
        yield Instance(f"V({p},{m}) {ticks} c={pipeline.latency} cap{cap}", "chunks", pipeline)
    whole = Pipeline(num_ranks=4, num_microbatches=8, num_chunks=2, placement="wave", capacity=5)
    yield Instance("V(4,8) unsplit cap5", "chunks", whole)


def spans() -> Iterator[Instance]:
    """Split ones under the zero-bubble papers' objective."""
    for p, m in ((4, 8), (8, 24), (8, 32)):
        for times, text in ((EQUAL, "1/1/1 c=0"), (UNEVEN, "10/11/8 c=1")):
            for name, cap in (("H1", p), ("H2", 2 * p)):
                pipeline = split_pipeline(p, m, times, cap)
                yield Instance(f"span z({p},{m}) {text} {name}", "span", pipeline, "span_idle")


def extensions() -> Iterator[Instance]:
    """Links that carry one message at a time, slices, and open choices; p = 4, tF = 2, tB = 4."""
    base = Pipeline(num_ranks=4, num_microbatches=8, capacity=4, forward=2, backward=4)
    for ticks, duplex in ((1, "full"), (2, "half")):
        linked = base.with_changes(message=ticks, bandwidth=1, duplex=duplex)
        yield Instance(f"link({duplex} duplex) u(4,8) c={ticks}", "extension", linked)
    for s in (2, 4):
        cut = Pipeline(num_ranks=4, num_microbatches=4, num_slices=s, forward=2, backward=4)
        yield Instance(f"slices(4,4) s={s}", "extension", cut)
    late = base.with_changes(latency=1, activation=4)
    for text, per_microbatch in (("stage", False), ("microbatch", True)):
        recompute = AllowedRecompute(stages=(0, 1, 2, 3), kept=1, per_microbatch=per_microbatch)
        name, roomy = f"recompute per {text} u(4,8) c=1 cap2", late.with_changes(capacity=8)
        yield Instance(name, "extension", roomy, allowed=AllowedChoices(recompute=recompute))
    pairs = tuple((rank, 3 - rank) for rank in range(4))
    tight, evict = (
        base.with_changes(latency=1, capacity=3),
        AllowedEvictions(pairs=pairs, duration=1),
    )
    yield Instance("evict u(4,8) c=1 cap3", "extension", tight, allowed=AllowedChoices(evict=evict))
