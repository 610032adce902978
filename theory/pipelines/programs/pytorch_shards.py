"""Where PyTorch's runtime gathers and frees the parameters of stages that FSDP shards.

The collectives of a problem (``theory.pipelines.sharding``) stand on resources of their own; in
PyTorch's tables UNSHARD and RESHARD stand in the ranks' programs. An UNSHARD with a RESHARD serves
the visits of its stage, one without all that the stage does. The runtime has one copy of a stage's
parameters, so that visits that overlap or follow each other are one *span*, and a W, which reads
none, is in the span of its I. An UNSHARD is begun one computation ahead, which its gather runs
beside. REDUCE_GRAD is for ``pytorch_runtime``: the runtime takes one for each stage.
"""

from __future__ import annotations

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import parts_of

COMPUTED = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.OVERLAP_F_B)
Span = tuple[int, int]  # positions of its first and its last computation among a rank's


def with_shards(problem: Problem, program: Program) -> Program:
    """The programs of the ranks with the UNSHARDs and RESHARDs of a problem's sharded stages.

    Rows on other resources than ranks are left out.
    """
    on_ranks = program.take(program.resource < problem.num_ranks)
    served = _served(problem)
    orders = on_ranks.orders(problem.num_ranks)
    return Program.from_orders([_sharded(order, served) for order in orders])


def _served(problem: Problem) -> dict[int, list[set[Action]]]:
    """By sharded stage what each UNSHARD serves; nothing stands for all where it is never freed."""
    actions, edges = problem.actions, problem.edges
    freed = {action.stage for action in actions.take(actions.is_kind(Kind.RESHARD))}
    served: dict[int, list[set[Action]]] = {}
    for task in actions.is_kind(Kind.UNSHARD).nonzero()[0].tolist():
        stage, users = actions[task].stage, edges.after[edges.before == task].tolist()
        served.setdefault(stage, []).append(
            {actions[user] for user in users} if stage in freed else set()
        )
    return served


def _sharded(order: list[Action], served: dict[int, list[set[Action]]]) -> list[Action]:
    rows = [row for row, action in enumerate(order) if action.kind in COMPUTED]
    computed = [order[row] for row in rows]
    before: dict[int, list[Action]] = {}
    after: dict[int, list[Action]] = {}
    for stage, visits in served.items():
        free_from = 0
        for first, last in _spans(computed, stage, visits):
            begun = max(first - 1, free_from)
            before.setdefault(rows[begun], []).append(Action(stage=stage, kind=Kind.UNSHARD))
            after.setdefault(rows[last], []).append(Action(stage=stage, kind=Kind.RESHARD))
            free_from = last + 1
    return [
        one
        for row, action in enumerate(order)
        for one in (*before.get(row, ()), action, *after.get(row, ()))
    ]


def _spans(computed: list[Action], stage: int, visits: list[set[Action]]) -> list[Span]:
    """The spans of a stage, in order."""
    own = [
        (position, part)
        for position, action in enumerate(computed)
        for part in parts_of(action)
        if part.stage == stage
    ]
    spans: list[Span] = []
    for first, last in sorted(_span(own, users) for users in visits if own):
        if spans and first <= spans[-1][1] + 1:
            first, last = spans[-1][0], max(spans.pop()[1], last)
        spans.append((first, last))
    return spans


def _span(own: list[tuple[int, Action]], users: set[Action]) -> Span:
    """Where a visit begins and ends among a stage's own computations; of no users, all of them."""
    inputs = {(user.microbatch, user.slice) for user in users if user.kind is Kind.I}
    mine = [
        position
        for position, part in own
        if not users
        or part in users
        or (part.kind is Kind.W and (part.microbatch, part.slice) in inputs)
    ]
    return min(mine), max(mine)
