"""The named instances of the solver benchmark, each a pipeline and an objective.

``u(p,m)``: unsplit, tF = 1, tB = 2, room for ``cap`` activations per rank; with ``c=1`` tF = 2,
tB = 4, and messages take a tick. ``z(p,m) F/I/W c``: split, released at W; H1 has room for p
activations and H2 for 2p; ``H1part`` releases half of each at I. These 49 are the table. Beside
them stand several chunks per rank (Megatron's interleaving, V shapes of the zero-bubble papers),
split ones under span_idle, links that carry one message at a time, slices, and pipelines that
leave recomputation or evictions to the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from bubbleproof.solvers.encoding import Objective
from bubbleproof.theory.model.actions import ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.pipelines.allowed import Allowed, AllowedEvictions, AllowedRecompute
from bubbleproof.theory.pipelines.extension import extended
from bubbleproof.theory.pipelines.pipeline import Pipeline

EQUAL, UNEVEN = (1, 1, 1), (10, 11, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    allowed: Allowed | None = None
    transform: Callable[[Problem], Problem] | None = None

    def problem(self) -> Problem:
        """The problem, without any of the open choices."""
        plain = self.pipeline.problem()
        return plain if self.transform is None else self.transform(plain)


def instances() -> list[Instance]:
    """All of them, the 49 of the table first."""
    return [*unsplit(), *split(), *chunked(), *spans(), *extensions()]


def unsplit() -> Iterator[Instance]:
    """The 31 unsplit instances of the table."""
    sizes = ((2, 4), (4, 4), (4, 8), (4, 16), (8, 8), (8, 16), (8, 32), (16, 32))
    for p, m in sizes:
        for cap in [2, 1] if p == 2 else [p, 3 * p // 4, p // 2]:
            pipeline = Pipeline(num_ranks=p, num_microbatches=m, capacity=cap)
            yield Instance(
                name=f"u({p},{m}) cap{cap}", group="unsplit", pipeline=pipeline, in_table=True
            )
        late = Pipeline(
            num_ranks=p, num_microbatches=m, capacity=p, forward=2, backward=4, latency=1
        )
        yield Instance(name=f"u({p},{m}) c=1 cap{p}", group="unsplit", pipeline=late, in_table=True)


def split_pipeline(
    p: int, m: int, times: tuple[int, int, int], cap: int, num_chunks: int = 1
) -> Pipeline:
    """Split with the given ticks of F, I, W; uneven ones with a tick of latency."""
    forward, inputs, weights = times
    return Pipeline(
        num_ranks=p, num_microbatches=m, split_backward=True, capacity=cap, forward=forward,
        input_backward=inputs, weight_backward=weights, latency=0 if times == EQUAL else 1,
        num_chunks=num_chunks, placement="loop" if num_chunks == 1 else "wave",
    )  # fmt: skip


def split() -> Iterator[Instance]:
    """The 18 split instances of the table."""
    for p, m in ((4, 8), (4, 12), (8, 24), (8, 32)):
        for times, text in ((EQUAL, "1/1/1 c=0"), (UNEVEN, "10/11/8 c=1")):
            for name, cap in (("H1", p), ("H2", 2 * p)):
                yield Instance(
                    name=f"z({p},{m}) {text} {name}", group="split",
                    pipeline=split_pipeline(p, m, times, cap), in_table=True,
                )  # fmt: skip
    for p, m in ((4, 8), (8, 24)):
        whole = split_pipeline(p, m, UNEVEN, 2 * p)
        yield Instance(
            name=f"z({p},{m}) 10/11/8 c=1 H1part", group="split", in_table=True,
            pipeline=whole.with_changes(activation=2, released_at_input=1),
        )  # fmt: skip


def chunked() -> Iterator[Instance]:
    """Several chunks per rank: interleaved, and V shapes."""
    for p, m, v, cap in ((4, 8, 2, 11), (4, 8, 2, 8), (4, 8, 2, 6), (4, 8, 4, None),
                         (8, 16, 2, 16)):  # fmt: skip
        pipeline = Pipeline(num_ranks=p, num_microbatches=m, num_chunks=v, capacity=cap)
        text = "no cap" if cap is None else f"cap{cap}"
        yield Instance(name=f"interleaved({p},{m}) v{v} {text}", group="chunks", pipeline=pipeline)
    for p, m, times, cap in ((4, 8, EQUAL, 8), (4, 8, UNEVEN, 8), (4, 8, EQUAL, 5),
                             (8, 16, EQUAL, 16)):  # fmt: skip
        pipeline = split_pipeline(p, m, times, cap, num_chunks=2)
        ticks = "/".join(map(str, times))
        yield Instance(
            name=f"V({p},{m}) {ticks} c={pipeline.latency} cap{cap}", group="chunks",
            pipeline=pipeline,
        )  # fmt: skip
    whole = Pipeline(num_ranks=4, num_microbatches=8, num_chunks=2, placement="wave", capacity=5)
    yield Instance(name="V(4,8) unsplit cap5", group="chunks", pipeline=whole)


def spans() -> Iterator[Instance]:
    """Split ones under the zero-bubble papers' objective."""
    for p, m in ((4, 8), (8, 24), (8, 32)):
        for times, text in ((EQUAL, "1/1/1 c=0"), (UNEVEN, "10/11/8 c=1")):
            for name, cap in (("H1", p), ("H2", 2 * p)):
                yield Instance(
                    name=f"span z({p},{m}) {text} {name}", group="span", objective="span_idle",
                    pipeline=split_pipeline(p, m, times, cap),
                )  # fmt: skip


def extensions() -> Iterator[Instance]:
    """Links that carry one message at a time, slices, and open choices; p = 4, tF = 2, tB = 4."""
    base = Pipeline(num_ranks=4, num_microbatches=8, capacity=4, forward=2, backward=4)
    for ticks, is_duplex in ((1, True), (2, False)):
        way = "full" if is_duplex else "half"
        yield Instance(
            name=f"link({way} duplex) u(4,8) c={ticks}", group="extension", pipeline=base,
            transform=partial(with_messages, ticks=ticks, is_duplex=is_duplex),
        )  # fmt: skip
    for s in (2, 4):
        cut = Pipeline(num_ranks=4, num_microbatches=4, num_slices=s, forward=2, backward=4)
        yield Instance(name=f"slices(4,4) s={s}", group="extension", pipeline=cut)
    late = base.with_changes(latency=1, activation=4)
    for text, per_microbatch in (("stage", False), ("microbatch", True)):
        recompute = AllowedRecompute(stages=(0, 1, 2, 3), kept=1, per_microbatch=per_microbatch)
        yield Instance(
            name=f"recompute per {text} u(4,8) c=1 cap2", group="extension",
            pipeline=late.with_changes(capacity=8), allowed=Allowed(recompute=recompute),
        )  # fmt: skip
    pairs = tuple((rank, 3 - rank) for rank in range(4))
    yield Instance(
        name="evict u(4,8) c=1 cap3", group="extension",
        pipeline=base.with_changes(latency=1, capacity=3),
        allowed=Allowed(evict=AllowedEvictions(pairs=pairs, duration=1)),
    )  # fmt: skip


def with_messages(problem: Problem, ticks: int, is_duplex: bool) -> Problem:
    """Every precedence between ranks also waits for a message that occupies the link of the two.

    A link carries one message at a time, in both directions or (``is_duplex``) in each.
    """
    edges, rank, actions = problem.edges, problem.rank_of_task, problem.actions
    crossing = np.flatnonzero(rank[edges.before] != rank[edges.after])
    before, after = edges.before[crossing], edges.after[crossing]
    ends = np.stack([rank[before], rank[after]])
    ways = ends if is_duplex else np.sort(ends, axis=0)
    links, link = np.unique(ways, axis=1, return_inverse=True)
    kind: Ints = np.where(actions.kind[before] == Kind.F, Kind.SEND_F, Kind.SEND_B)
    message = problem.num_tasks + np.arange(len(crossing))
    return extended(
        problem,
        actions=ActionTable.of(
            kind, actions.stage[before], actions.microbatch[before], actions.slice[before]
        ),
        duration=np.full(len(crossing), ticks, dtype=np.int64),
        homes=[(message, len(problem.resources) + link.ravel())],
        waits=[(before, message), (message, after)],
        resources=[Resource(name=f"link {a}-{b}") for a, b in links.T.tolist()],
    )
