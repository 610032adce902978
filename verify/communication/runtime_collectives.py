"""Rule 6 for the collectives of a PyTorch table: what its runtime would run into.

A table with messages is run as it stands (``theory.pipelines.programs.pytorch_runtime``). Where it
has any

- REDUCE_GRAD, each stage has one, behind its last B or W: before that it reduces what is not there
  yet, twice it divides twice, and where there is none nothing divides or reduces;
- WAIT_REDUCE_GRAD, each REDUCE_GRAD has one, before the next REDUCE_GRAD of its rank begins;
- UNSHARD or RESHARD of a stage, they stand by turns, UNSHARD first, all that the stage computes
  between the two, and the last is a RESHARD.
"""

from __future__ import annotations

from collections.abc import Iterator

from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import parts_of
from bubbleproof.verify.explain.programs import ProgramFault, violation
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import SHOWN, RuleDecision

COLLECTIVES = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD)
_COMPUTED = (Kind.F, Kind.B, Kind.I, Kind.W)


def check_runtime_collectives(problem: Problem, program: Program) -> RuleDecision:
    """Whether the collectives of a table stand where PyTorch's runtime can run them."""
    rows = _Rows(program)
    faults = [*rows.reductions(problem), *rows.waits(), *rows.shards()]
    told = tuple(violation(problem, program, Rule.COMMUNICATION, fault) for fault in faults[:SHOWN])
    return RuleDecision(
        rule=Rule.COMMUNICATION, count=len(faults), violations=told, detail="collectives"
    )


class _Rows:
    """The rows of a table: each stage's computations, and each collective."""

    def __init__(self, program: Program) -> None:
        self.rank = program.resource.tolist()
        self.actions = list(program.actions)
        self.computed: dict[int, list[int]] = {}
        self.of: dict[Kind, dict[int, list[int]]] = {kind: {} for kind in COLLECTIVES}
        for row, action in enumerate(self.actions):
            if action.kind in COLLECTIVES:
                self.of[action.kind].setdefault(action.stage, []).append(row)
            for part in parts_of(action):
                if part.kind in _COMPUTED:
                    self.computed.setdefault(part.stage, []).append(row)

    def reductions(self, problem: Problem) -> Iterator[ProgramFault]:
        reduced = self.of[Kind.REDUCE_GRAD]
        for stage in sorted(problem.stage_to_rank) if reduced else ():
            rows, last = reduced.get(stage, []), self._last_backward(stage)
            if len(rows) != 1:
                yield f"{stage}REDUCE_GRAD stands {len(rows)} times, must stand once", rows
            elif rows[0] < last:
                sentence = (
                    f"{stage}REDUCE_GRAD stands before {self.actions[last]}, which adds to it"
                )
                yield sentence, [rows[0], last]

    def _last_backward(self, stage: int) -> int:
        return max(
            (
                row
                for row in self.computed.get(stage, ())
                for part in parts_of(self.actions[row])
                if part.stage == stage and part.kind in (Kind.B, Kind.W)
            ),
            default=-1,
        )

    def waits(self) -> Iterator[ProgramFault]:
        pending: dict[int, int] = {}  # the reduction under way, by rank
        if not self.of[Kind.WAIT_REDUCE_GRAD]:
            return
        for row, action in enumerate(self.actions):
            rank = self.rank[row]
            if action.kind is Kind.REDUCE_GRAD:
                if rank in pending:
                    other = self.actions[pending[rank]]
                    yield f"{action} begins on rank {rank} before {other} is waited for", [row]
                pending[rank] = row
            elif action.kind is Kind.WAIT_REDUCE_GRAD:
                begun = pending.pop(rank, None)
                if begun is None or self.actions[begun].stage != action.stage:
                    yield (
                        f"{action} on rank {rank} waits for no REDUCE_GRAD that is under way",
                        [row],
                    )
        for rank, row in pending.items():
            yield f"{self.actions[row]} on rank {rank} is never waited for", [row]

    def shards(self) -> Iterator[ProgramFault]:
        stages = self.of[Kind.UNSHARD].keys() | self.of[Kind.RESHARD].keys()
        for stage in sorted(stages):
            events = [*self.of[Kind.UNSHARD].get(stage, ()), *self.of[Kind.RESHARD].get(stage, ())]
            is_there = False
            for row in sorted({*events, *self.computed.get(stage, ())}):
                action = self.actions[row]
                wanted = action.kind is not Kind.UNSHARD  # else its parameters are to be away
                if is_there != wanted:
                    state = "gathered" if is_there else "not gathered"
                    yield f"{action} comes where stage {stage} is {state}", [row]
                if action.kind in (Kind.UNSHARD, Kind.RESHARD):
                    is_there = action.kind is Kind.UNSHARD
            if is_there:
                yield f"stage {stage} is gathered and not freed as the step ends", events[-1:]
