"""Rule 7 over the passes of a training: the right parameter version, every contribution once.

A training runs the orders of its ranks once per optimizer step, each pass with STEPs. Pass i
(counted from 0) is right when on every rank

- each F, R, B, I and W uses version i of its stage's parameters: those after i STEPs;
- the i-th STEP of a stage takes each contribution of pass i to the stage's gradient exactly once,
  and nothing else: what is added later is missing from it. Where two ranks hold the stage, they
  have added up all of it by a REDUCE_GRAD of the stage, on both; where stages share a
  parameter, as a tied embedding and head do, the sum of all these stages, by
  ``0REDUCE_GRAD.1`` on all their ranks;
- with a barrier, no rank takes its first STEP of a pass before every contribution of the pass has
  been added on all ranks that step.

After the last pass every stage has had one STEP per pass, on each of its ranks.

The rows are walked as ranks run them. Ranks wait for each other here at exchanges and at the
barrier alone: activations and messages are those of one pass (``check_dataflow_of_program``), and
nothing of theirs is left when a pass ends. What STEPs stand for, and where, is read from the orders
and from no rule that put them there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import parts_of
from bubbleproof.verify.dataflow.model_state import ModelState
from bubbleproof.verify.dataflow.training_step import TrainingStep
from bubbleproof.verify.explain.programs import violation
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.verdict import SHOWN, RuleDecision, Violation

TIE = 1  # the number of the REDUCE_GRAD of stage 0 that adds tied gradients
_USERS = (Kind.F, Kind.R, Kind.B, Kind.I, Kind.W)
_MODEL_KINDS = (Kind.STEP, Kind.REDUCE_GRAD, Kind.UNSHARD, Kind.RESHARD)


class _Row(NamedTuple):
    number: int  # of the pass
    row: int
    action: Action


class _Mistake(NamedTuple):
    row: _Row | None
    sentence: str


def check_training(
    problem: Problem,
    programs: Sequence[Program],
    *,
    has_barrier: bool = False,
    tied: tuple[int, ...] = (),
) -> RuleDecision:
    """Rule 7 of a training whose pass i runs ``programs[i]`` on the ranks, as ranks run them.

    Rows of SEND, RECV and of activations on the move are passed over.

    Parameters
    ----------
    programs
        One program of computation for each pass, 1 or more.
    has_barrier
        Whether all ranks wait for each other before the first STEP.
    tied
        The stages that share a parameter, such as those of a tied embedding and head.

    Raises
    ------
    NoTrainingStep
        For a problem that rule 7 does not speak of.
    """
    walk = _Walk(problem, programs, has_barrier=has_barrier, tied=tied)
    mistakes = walk.mistakes()
    violations = tuple(_violation(problem, programs, mistake) for mistake in mistakes[:SHOWN])
    return RuleDecision(
        rule=Rule.DATAFLOW, count=len(mistakes), violations=violations, detail="training"
    )


@dataclass(frozen=True, slots=True)
class _JointWait:
    """Where the ranks that must all have come to it go on together."""

    ranks: frozenset[int]
    exchange: Action | None  # None: the barrier


class _Walk:
    """All ranks on their way through the passes."""

    def __init__(
        self,
        problem: Problem,
        programs: Sequence[Program],
        *,
        has_barrier: bool,
        tied: tuple[int, ...],
    ) -> None:
        self._step = step = TrainingStep.of(problem)
        self._state = ModelState(step, tied)
        self._passes, self._has_barrier, self._ends = len(programs), has_barrier, tied
        self._queues: dict[int, deque[_Row]] = {r: deque() for r in range(problem.num_ranks)}
        for number, program in enumerate(programs):
            for row, rank in enumerate(program.resource.tolist()):
                if rank in self._queues:
                    self._queues[rank].append(_Row(number, row, program.actions[row]))
        self._through: set[tuple[int, int]] = set()  # (rank, pass): the barrier lies behind it
        self._stepping = [
            (rank, stage)
            for stage, ranks in step.holders.items()
            for rank in sorted(ranks)
            if stage not in step.hosted
        ]
        self._found: list[_Mistake] = []

    def mistakes(self) -> list[_Mistake]:
        """Everything wrong, in the order in which it was met."""
        while any(self._queues.values()):
            moved = [self._advance(rank) for rank in self._queues]
            if not any(moved) and not self._meet():
                self._found.append(_Mistake(None, self._standstill()))
                return self._found
        for (rank, stage), version in self._versions():
            if version != self._passes:
                needed = f"stage {stage} on rank {rank} needs {self._passes} STEPs, one per pass"
                self._found.append(_Mistake(None, f"{needed}: it has had {version}"))
        return self._found

    def _versions(self) -> Iterator[tuple[tuple[int, int], int]]:
        for stage, ranks in sorted(self._step.holders.items()):
            for rank in sorted(ranks):
                yield (rank, stage), self._state.version[rank, stage]

    def _advance(self, rank: int) -> bool:
        """Run a rank to where it waits for others; whether it ran at all."""
        queue, has_moved = self._queues[rank], False
        while queue and self._joint_wait(rank, queue[0]) is None:
            self._run(rank, queue.popleft())
            has_moved = True
        return has_moved

    def _joint_wait(self, rank: int, row: _Row) -> _JointWait | None:
        """What a rank waits for before it runs a row."""
        action = row.action
        if self._is_exchange(action) and len(ranks := self._parties(action)) > 1 and rank in ranks:
            return _JointWait(ranks, action)
        is_step = action.kind is Kind.STEP and not self._state.is_twice(action)
        if self._has_barrier and is_step and (rank, row.number) not in self._through:
            return _JointWait(frozenset(r for r, _ in self._stepping), None)
        return None

    def _is_exchange(self, action: Action) -> bool:
        return action.kind is Kind.REDUCE_GRAD and not self._state.is_twice(action)

    def _parties(self, action: Action) -> frozenset[int]:
        """The ranks that an exchange brings together; one rank, or none, adds nothing of others."""
        holders = self._step.holders
        if action.slice == 0:
            return holders.get(action.stage, frozenset())
        if (action.stage, action.slice) != (0, TIE) or not self._ends:
            return frozenset()
        held = {holders[stage] for stage in self._ends}
        return frozenset() if len(held) == 1 else frozenset[int]().union(*held)

    def _meet(self) -> bool:
        """Let the first ranks go on that all wait for the same; whether there were any."""
        heads = {rank: queue[0] for rank, queue in self._queues.items() if queue}
        waits = {rank: self._joint_wait(rank, row) for rank, row in heads.items()}
        for rank, wait in waits.items():
            if wait is None or any(waits.get(r) != wait for r in wait.ranks):
                continue
            if wait.exchange is None:
                self._pass_barrier(rank, heads[rank], wait)
                return True
            self._exchange(wait.exchange, wait.ranks)
            for each in wait.ranks:
                self._queues[each].popleft()
            return True
        return False

    def _pass_barrier(self, rank: int, row: _Row, wait: _JointWait) -> None:
        stages = sorted({stage for _, stage in self._stepping})
        for sentence in self._state.incomplete(row.number, iter(stages)):
            where = f"{row.action} on rank {rank} in pass {row.number}, behind the barrier,"
            self._found.append(_Mistake(row, f"{where} {sentence}"))
        self._through |= {(r, self._queues[r][0].number) for r in wait.ranks}

    def _exchange(self, action: Action, ranks: frozenset[int]) -> None:
        if action.slice == TIE:
            self._state.tie(ranks)
        else:
            self._state.exchange(action.stage, ranks)

    def _run(self, rank: int, row: _Row) -> None:
        for work in parts_of(row.action):
            for sentence in self._sentences(rank, row.number, work):
                where = f"{work} on rank {rank} in pass {row.number}"
                self._found.append(_Mistake(row, f"{where} {sentence}"))

    def _sentences(self, rank: int, number: int, work: Action) -> Iterator[str]:
        state, is_model_kind = self._state, work.kind in (*_USERS, *_MODEL_KINDS)
        if work.stage not in self._step.holders or (
            is_model_kind and rank not in self._step.holders[work.stage]
        ):
            yield f"is not of rank {rank}: it does not hold stage {work.stage}"
        elif work.kind in _USERS:
            yield from state.use(rank, number, work.stage) if _is_used(self._step, work) else ()
            if work.kind in (Kind.B, Kind.W):
                state.add(rank, number, work)
        elif state.is_twice(work):
            yield from state.run_twice(rank, work)
        elif work.kind is Kind.STEP:
            yield from state.step(rank, work.stage)
        elif work.kind is Kind.RESHARD:
            state.free(rank, work)
        elif work.kind is Kind.REDUCE_GRAD:
            yield from self._alone(rank, work)

    def _alone(self, rank: int, work: Action) -> Iterator[str]:
        """An exchange that brings nobody together: of a tie whose ends are on the same ranks."""
        if self._ends and (work.stage, work.slice) == (0, TIE):
            self._state.tie(frozenset({rank}))
        else:
            yield "adds nothing: no other rank has a part of this gradient"

    def _standstill(self) -> str:
        waits = []
        for rank, queue in self._queues.items():
            wait = self._joint_wait(rank, queue[0]) if queue else None
            if wait is not None:
                others = ", ".join(str(r) for r in sorted(wait.ranks - {rank}))
                waits.append(f"{queue[0].action} on rank {rank} waits for rank {others}")
        return f"the training stops: {'; '.join(waits[:SHOWN])}"


def _is_used(step: TrainingStep, work: Action) -> bool:
    """W multiplies activations and output gradients: a stage may have left the rank by then."""
    return work.kind is not Kind.W or work.stage not in step.gathered | step.hosted


def _violation(problem: Problem, programs: Sequence[Program], mistake: _Mistake) -> Violation:
    number, rows = (0, []) if mistake.row is None else (mistake.row.number, [mistake.row.row])
    return violation(problem, programs[number], Rule.DATAFLOW, (mistake.sentence, rows))
