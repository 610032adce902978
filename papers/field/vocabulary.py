"""Vocabulary parallelism: 1F1B with the output layer on all ranks, a problem beyond its pipeline's.

Beside F and B of its stage, rank r runs two passes of its shard of the output layer for each
microbatch: S, which scores its words, and T, the gradient of its weights. The last stage's output
goes to all ranks, and all-reduces on a stream of their own, the *barriers*, join what shards find:

2   (Algorithm 1) one sums over all S what every T needs; T also has the shard's part of the
    gradient of the input, and the other sums that: the last stage's B waits for it
1   (Algorithm 2) S has that part up to a factor; every T and the last stage's B wait for one sum

A stage of a Pipeline has one stage before and one behind, so that no Pipeline has these passes; its
Problem with them has: rules 1 to 5, bounds and solvers take it. The broadcast and the all-reduces
are no messages between neighbours (rule 6), and rule 7 judges whole steps of a Pipeline alone. With
n stages S on rank r stands here as the F of stage n + 1 + r, T as its W, and the barriers as the F
and the B of stage n + p + 2: no neighbours of each other.

The order is 1F1B's with as many forwards more ahead as there are barriers. T and the S of the next
microbatch are one pass, which a rank runs after each B or after the F behind it. Left out: the
shards of the input layer, for which there is time whenever a rank waits.

Source: Yeung, Qi, Lin and Wan, "Balancing Pipeline Parallelism with Vocabulary Parallelism" (MLSys
2025, arXiv:2411.05288), Figure 10; the order is that of its code (sail-sg/VocabularyParallelism at
6191c3b, ``vocab_parallel_schedule.py``), which asks for tB >= tF >= the ticks of a barrier. With
one barrier the last T stands where the figure has it; the code runs it behind all else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np

from bubbleproof.papers.claims.claim import PaperClaim, stated
from bubbleproof.papers.claims.domain import Params, domain
from bubbleproof.theory.model.actions import ActionTable, Kind
from bubbleproof.theory.model.measures import Measures, measure
from bubbleproof.theory.model.problem import Problem, Resource
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.extension import backwards_of, extended
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift


def with_output_layer(
    pipeline: Pipeline, *, score: int, weight: int, barriers: int = 2, reduction: int = 0
) -> Problem:
    """The pipeline's problem with the passes of an output layer that lies on all ranks.

    Precondition: samples are whole.

    Parameters
    ----------
    score, weight
        Ticks of S and of T on a rank.
    barriers, reduction
        1 or 2 of them, and the ticks of one.
    """
    plain, p, m = pipeline.problem(), pipeline.num_ranks, pipeline.num_microbatches
    shard, joined = pipeline.num_stages + 1, pipeline.num_stages + p + 2  # as stages
    rank, microbatch = np.indices((p, m)).reshape(2, -1)
    each, shards = np.arange(m), plain.num_tasks + np.arange(2 * p * m).reshape(2, -1)
    sums = plain.num_tasks + 2 * p * m + np.arange(barriers * m).reshape(barriers, m)
    actions = [ActionTable.of(int(kind), shard + rank, microbatch) for kind in (Kind.F, Kind.W)]
    actions += [ActionTable.of(int(kind), joined, each) for kind in (Kind.F, Kind.B)[:barriers]]
    last, first = plain.locate(ActionTable.of(int(Kind.F), shard - 2, each)), sums[0, microbatch]
    waits = [(last[microbatch], shards[0]), (shards[0], first), (first, shards[1])]
    waits += [(shards[1], second[microbatch]) for second in sums[1:]]
    return extended(
        plain,
        actions=ActionTable.concatenate(actions),
        duration=np.repeat([score, weight, reduction], [p * m, p * m, barriers * m]),
        homes=[
            (shards.ravel(), np.tile(rank, 2)),
            (sums.ravel(), np.full(sums.size, len(plain.resources))),
        ],
        waits=[*waits, (sums[-1], backwards_of(plain, last))],
        resources=[Resource(name="all-reduces")],
    )


def vocabulary_order(pipeline: Pipeline, barriers: int = 2) -> Program:
    """The published order of ``with_output_layer``, on a pipeline that ``1f1b`` takes.

    Parameters
    ----------
    barriers
        1 or 2.
    """
    p, m = pipeline.num_ranks, pipeline.num_microbatches
    orders = []
    for rank, (is_late, ahead) in enumerate(_passes(pipeline)):
        forwards = [f"{rank}F{j}" for j in range(m)]
        joint = [[f"{p + 1 + rank}F0"]]
        joint += [[f"{p + 1 + rank}W{j}", f"{p + 1 + rank}F{j + 1}"] for j in range(m - 1)]
        joint += [[f"{p + 1 + rank}W{m - 1}"]]
        order, begun = forwards[: p - rank], p - rank
        for _ in range(barriers):
            order += [*joint.pop(0), *forwards[begun : begun + 1]]
            begun += 1
        for passes in joint[:ahead]:
            order += passes
        del joint[:ahead]
        for j in range(m):
            passes = joint.pop(0) if joint else []
            forward = forwards[begun + j : begun + j + 1]
            order += [f"{rank}B{j}", *(forward + passes if is_late else passes + forward)]
        orders.append(order + [name for passes in joint for name in passes])
    orders.append([f"{2 * p + 2}{kind}{j}" for j in range(m) for kind in "FB"[:barriers]])
    return Program.from_orders(orders)


def _passes(pipeline: Pipeline) -> list[tuple[bool, int]]:
    """Of each rank whether its joint passes come after the F, and how many before the first B.

    The source's rule: from the last rank up they move tF towards the B before them on each rank.
    Where that would be more than tB in all they come after the F, and move back by tB - tF.
    """
    ticks = pipeline.ticks
    forward, backward = int(ticks.forward.max()), int(ticks.backward.max())
    late, offset = [False], 0
    while len(late) < pipeline.num_ranks:
        if offset - forward >= -backward:
            offset -= forward
        else:
            late.append(True)
            offset += backward - forward
        late.append(False)
    late = late[: pipeline.num_ranks]
    ahead = [0]
    for behind, own in pairwise(late):
        ahead.append(ahead[-1] + (own or not behind))
    return list(zip(late, ahead, strict=True))[::-1]


@lru_cache(maxsize=4096)
def _measured(barriers: int, case: tuple[tuple[str, int], ...]) -> Measures:
    at = dict(case)
    pipeline = Pipeline(
        num_ranks=at["p"], num_microbatches=at["m"], forward=at["tF"], backward=at["tB"]
    )
    problem = with_output_layer(
        pipeline, score=at["tS"], weight=at["tT"], barriers=barriers, reduction=at["tC"]
    )
    return measure(problem, left_shift(problem, vocabulary_order(pipeline, barriers)))


def _of(barriers: int, read: Callable[[Measures], int]) -> Callable[[Params], int]:
    return lambda at: read(_measured(barriers, tuple(at.items())))


SOURCE = "Yeung et al., Vocabulary Parallelism (MLSys 2025)"
TICKS = "tF:tB in 1:1 1:2 2:3; tS, tT, tC in 1:1:0 1:1:1 2:1:1"
SHARDED = domain(
    f"2 <= p <= 6, 2 <= m <= 2p+2; {TICKS}",
    p=range(2, 7), m="range(2, 2*p + 3)", tF_tB=((1, 1), (1, 2), (2, 3)),
    tS_tT_tC=((1, 1, 0), (1, 1, 1), (2, 1, 1)),
).widened(f"2 <= p <= 6, 2 <= m <= 2p+2, and p = 16, m in 2 16 17 64; {TICKS}",
          p=(*range(2, 7), 16), m="range(2, 2*p + 3) if p < 16 else (2, 16, 17, 64)")  # fmt: skip
CLAIMS: tuple[PaperClaim, ...] = tuple(
    claim
    for barriers, word in ((2, "two barriers"), (1, "one barrier"))
    for claim in (
        stated(f"field.vocabulary.makespan-{barriers}", f"{SOURCE}, its README's table",
               f"With {word} the bubble is 1F1B's, (p-1)(tF+tB), and a barrier delays a step once"
               + ("." if barriers == 2 else "; its last T is not waited for."),
               "makespan (ticks)", _of(barriers, lambda found: found.makespan), "==",
               "m*(tF+tB+tS+tT) + (p-1)*(tF+tB) + tC" + ("" if barriers == 2 else " - tT"),
               SHARDED),
        stated(f"field.vocabulary.peak-{barriers}", f"{SOURCE} Figure 10",
               f"With {word} the first rank keeps p + {barriers} activations, or all m.",
               "peak activations (units)",
               _of(barriers, lambda found: max(found.peak_activations)), "==",
               f"min(p + {barriers}, m)", SHARDED),
    )
)  # fmt: skip
