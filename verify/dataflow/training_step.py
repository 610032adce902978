"""The training step of a problem, read from its tasks and where they run.

Precedences are not read: rule 7 states by itself what needs what, so it also finds a problem that
forgot one. The choices of a problem show in its tasks: a forward with an R is recomputed, a stage
with UNSHARD has its parameters gathered, one with REDUCE_GRAD has its gradient reduced. A stage is
*hosted* where it has OFFLOAD, RELOAD and a STEP that runs on no rank: OFFLOAD and RELOAD then move
its gradient and weights (``theory.pipelines.state_offload``); elsewhere they move activations.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from bubbleproof.theory.model.actions import NONE, Action, ActionTable, Ints, Kind
from bubbleproof.theory.model.problem import Problem

SamplePart = tuple[int, int, int]  # stage, microbatch, slice
Contribution = tuple[int, int, int]  # microbatch, slice, piece of W (NONE: all of it)


class NoTrainingStep(ValueError):  # noqa: N818 - a state of the problem, not of the caller
    """A problem that is no whole training step, or gives kinds of actions another meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """What a step must compute, by (stage, microbatch, slice), and where.

    ``backward`` says whether a backward is full (B) or split (I); ``home`` where the forward runs;
    ``holders`` the ranks with a stage's parameters; ``pieces`` the pieces of each W;
    ``contributions`` what the gradient of each stage sums; ``last_slice`` the highest slice of each
    microbatch; ``returns`` by what activations that are moved away come back; ``freed`` and
    ``reductions`` the (stage, number) of each RESHARD and REDUCE_GRAD; ``links`` has one number for
    the two directions of a link that moves activations, by the resource of each.
    """

    num_stages: int
    backward: dict[SamplePart, Kind]
    home: dict[SamplePart, int]
    holders: dict[int, frozenset[int]]
    pieces: dict[SamplePart, set[int]]
    contributions: dict[int, frozenset[Contribution]]
    last_slice: dict[int, int]
    recomputed: frozenset[SamplePart]
    returns: dict[SamplePart, frozenset[Kind]]
    gathered: frozenset[int]
    freed: frozenset[tuple[int, int]]
    reduced: frozenset[int]
    reductions: frozenset[tuple[int, int]]
    hosted: frozenset[int]
    stepped: frozenset[int]
    links: dict[int, int]

    @classmethod
    def of(cls, problem: Problem) -> TrainingStep:
        """Raises ``NoTrainingStep`` in one line for a problem that rule 7 does not speak of."""
        tasks = _Tasks(problem)
        backward = tasks.backwards()
        tasks.require_whole(backward)
        hosted = tasks.hosted()
        tasks.require_pairs(hosted)
        home = {part: rank for part, rank in tasks.of(Kind.F).items() if rank is not None}
        holders: dict[int, set[int]] = defaultdict(set)
        last_slice: dict[int, int] = {}
        for (stage, microbatch, slice_), rank in home.items():
            holders[stage].add(rank)
            last_slice[microbatch] = max(slice_, last_slice.get(microbatch, 0))
        return cls(
            num_stages=len(holders),
            backward=backward,
            home=home,
            holders={stage: frozenset(ranks) for stage, ranks in holders.items()},
            pieces=tasks.pieces,
            contributions=_contributions(backward, tasks.pieces),
            last_slice=last_slice,
            recomputed=frozenset(tasks.of(Kind.R)),
            returns=tasks.returns(hosted),
            gathered=tasks.stages(Kind.UNSHARD),
            freed=frozenset((stage, number) for stage, _, number in tasks.of(Kind.RESHARD)),
            reduced=tasks.stages(Kind.REDUCE_GRAD),
            reductions=frozenset(
                (stage, number) for stage, _, number in tasks.of(Kind.REDUCE_GRAD)
            ),
            hosted=hosted,
            stepped=tasks.stages(Kind.STEP),
            links=_links(problem),
        )


def _links(problem: Problem) -> dict[int, int]:
    """The lower of the resources on which something is evicted and loaded, by either."""
    used = problem.occupancy
    resource = dict(zip(used.task.tolist(), used.resource.tolist(), strict=True))
    over: dict[SamplePart, list[int]] = defaultdict(list)
    for task in np.flatnonzero(problem.actions.is_kind(Kind.EVICT, Kind.LOAD)).tolist():
        action = problem.actions[task]
        over[action.stage, action.microbatch, action.slice].append(resource.get(task, NONE))
    return {end: min(ends) for ends in over.values() for end in ends}


class _Tasks:
    """The tasks by kind and part, each with its rank (None where it runs on none)."""

    def __init__(self, problem: Problem) -> None:
        self._by_kind: dict[Kind, dict[SamplePart, int | None]] = defaultdict(dict)
        self.pieces: dict[SamplePart, set[int]] = defaultdict(set)
        actions = problem.actions
        columns = (*action_columns(actions), problem.rank_of_task)
        for k, g, j, slice_, piece, b_stage, b_microbatch, rank in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            kind = Kind(k)
            home = None if rank == NONE else rank
            if kind is Kind.OVERLAP_F_B:
                self._by_kind[Kind.B][b_stage, b_microbatch, slice_] = home
                kind = Kind.F
            elif kind is Kind.W:
                self.pieces[g, j, slice_].add(piece)
            self._by_kind[kind][g, j, slice_] = home

    def of(self, kind: Kind) -> dict[SamplePart, int | None]:
        return self._by_kind[kind]

    def stages(self, kind: Kind) -> frozenset[int]:
        return frozenset(stage for stage, _, _ in self.of(kind))

    def backwards(self) -> dict[SamplePart, Kind]:
        full, split = self.of(Kind.B), self.of(Kind.I)
        for part in full.keys() & split.keys():
            raise NoTrainingStep(f"it has both {name(Kind.B, part)} and {name(Kind.I, part)}")
        return dict.fromkeys(full, Kind.B) | dict.fromkeys(split, Kind.I)

    def require_whole(self, backward: dict[SamplePart, Kind]) -> None:
        """Every stage up to the last runs F and a backward of every slice of every microbatch.

        Of a step that trains nothing, which has forwards alone, each runs F.
        """
        forward = self.of(Kind.F)
        # Forwards and nothing else are a step that trains nothing.
        if not forward or (not backward and sum(map(bool, self._by_kind.values())) > 1):
            raise NoTrainingStep("it has no forwards or no backwards")
        parts = forward.keys() | backward.keys()
        num_stages = 1 + max(stage for stage, _, _ in parts)
        last: dict[int, int] = {}
        for _, microbatch, slice_ in parts:
            last[microbatch] = max(slice_, last.get(microbatch, 0))
        for stage in range(num_stages):
            for microbatch, top in last.items():
                for slice_ in range(top + 1):
                    part = (stage, microbatch, slice_)
                    if part not in forward:
                        raise NoTrainingStep(f"it has no {name(Kind.F, part)}")
                    if backward and part not in backward:
                        raise NoTrainingStep(f"it has no backward of {name(Kind.F, part)}")
        for part, rank in forward.items():
            if rank is None:
                raise NoTrainingStep(f"{name(Kind.F, part)} runs on no rank")

    def hosted(self) -> frozenset[int]:
        off_rank = {stage for (stage, _, _), rank in self.of(Kind.STEP).items() if rank is None}
        return frozenset(off_rank) & self.stages(Kind.OFFLOAD) & self.stages(Kind.RELOAD)

    def require_pairs(self, hosted: frozenset[int]) -> None:
        """What is moved away for a while also comes back."""
        for there, back in ((Kind.EVICT, Kind.LOAD), (Kind.OFFLOAD, Kind.RELOAD)):
            away, returned = (
                {p for p in self.of(k) if back is Kind.LOAD or p[0] not in hosted}
                for k in (there, back)
            )
            for part in sorted(away ^ returned):
                has, lacks = (there, back) if part in away else (back, there)
                raise NoTrainingStep(f"it has {name(has, part)} without {name(lacks, part)}")

    def returns(self, hosted: frozenset[int]) -> dict[SamplePart, frozenset[Kind]]:
        found: dict[SamplePart, set[Kind]] = defaultdict(set)
        for kind in (Kind.LOAD, Kind.RELOAD):
            for part in self.of(kind):
                if kind is Kind.LOAD or part[0] not in hosted:
                    found[part].add(kind)
        return {part: frozenset(kinds) for part, kinds in found.items()}


def action_columns(actions: ActionTable) -> tuple[Ints, ...]:
    """Kind, stage, microbatch, slice, part, and stage and microbatch of a partner.

    Parameters
    ----------
    actions
        Of a problem or a program.
    """
    whose = actions.partner_stage, actions.partner_microbatch
    return actions.kind, actions.stage, actions.microbatch, actions.slice, actions.part, *whose


def _contributions(
    backward: dict[SamplePart, Kind], pieces: dict[SamplePart, set[int]]
) -> dict[int, frozenset[Contribution]]:
    found: dict[int, set[Contribution]] = defaultdict(set)
    for part, kind in backward.items():
        stage, microbatch, slice_ = part
        own = pieces.get(part, {NONE}) if kind is Kind.I else {NONE}
        found[stage].update((microbatch, slice_, piece) for piece in own)
    return {stage: frozenset(each) for stage, each in found.items()}


def name(kind: Kind, part: SamplePart, piece: int = NONE, *, sliced: bool = False) -> str:
    """The text form of an action; a stage's own action leaves its microbatch out.

    Parameters
    ----------
    piece
        The part of a W; ``NONE`` where it is whole.
    sliced
        Whether a slice 0 is written out.
    """
    stage, microbatch, slice_ = part
    action = Action(stage=stage, kind=kind, microbatch=microbatch, slice=slice_, part=piece)
    return action.label(sliced=sliced and microbatch != NONE)
