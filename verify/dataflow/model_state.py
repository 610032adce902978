"""Model state over the passes of a training, on names: parameter versions and summed gradients.

The parameters of a stage on a rank have version v after v STEPs there. A contribution is what a B,
or a W (piece), of one pass adds to its stage's gradient. Where things lie, by (rank, stage):

    summed     what has been added and nothing has taken yet
    reduced    what a REDUCE_GRAD among replicas, or the OFFLOAD of a stage that the host updates,
               has made of it
    exchanged  of a stage on two ranks, the sum of both, as it was at their REDUCE_GRAD
    tied       for stages that share a parameter: the sum of all of them
    copies     of a gathered or hosted stage, the versions that UNSHARD and RELOAD have brought

What runs beside computation (UNSHARD, REDUCE_GRAD of replicas, the host's OFFLOAD, RELOAD and STEP)
stands twice in a rank's order: what it takes, it takes at the first row; what it makes is there
from the second on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from bubbleproof.theory.model.actions import NONE, Action, Kind
from bubbleproof.verify.dataflow.training_step import Contribution, TrainingStep, name

StateContribution = tuple[int, int, Contribution]  # (pass, stage, contribution)
StateSum = Counter[StateContribution]
StatePlace = tuple[int, int]  # (rank, stage)
_TWICE = {
    "gathered": (Kind.UNSHARD,),
    "hosted": (Kind.OFFLOAD, Kind.RELOAD, Kind.STEP),
}


class ModelState:
    """The model state of all ranks. ``ends`` are the stages that share a parameter, if any.

    Each method yields a sentence, without its subject, for what is wrong.
    """

    def __init__(self, step: TrainingStep, ends: tuple[int, ...]) -> None:
        self._step, self._ends = step, ends
        self.version: dict[StatePlace, int] = defaultdict(int)
        self._copies: dict[StatePlace, dict[int, int]] = defaultdict(dict)
        self._summed: dict[StatePlace, StateSum] = defaultdict(Counter)
        self._reduced: dict[StatePlace, StateSum] = defaultdict(Counter)
        self._exchanged: dict[StatePlace, StateSum] = defaultdict(Counter)
        self._tied: dict[StatePlace, StateSum] = defaultdict(Counter)
        self._begun: dict[tuple[int, Action], StateSum | int | None] = {}
        self.added: StateSum = Counter()

    def is_twice(self, action: Action) -> bool:
        """Whether an action stands twice: where it begins, and where it ends."""
        if action.kind is Kind.REDUCE_GRAD:
            return (action.stage, action.slice) in self._step.reductions
        return any(
            action.kind in kinds and action.stage in getattr(self._step, group)
            for group, kinds in _TWICE.items()
        )

    def use(self, rank: int, number: int, stage: int) -> Iterator[str]:
        """An F, R, B, I or W of pass ``number`` uses the parameters that it finds.

        Parameters
        ----------
        rank
            Who runs it.
        number
            The pass, from 0 on.
        stage
            Whose parameters they are.

        Returns
        -------
        Iterator[str]
            A sentence for each thing that is wrong.
        """
        if rank not in self._step.holders[stage]:
            ranks = ", ".join(map(str, sorted(self._step.holders[stage])))
            yield f"needs the parameters of stage {stage}: they are on rank {ranks}"
            return
        found = {self.version[rank, stage]}
        if stage in self._step.gathered | self._step.hosted:
            found = {*self._copies[rank, stage].values()}
        if number not in found:
            there = f"it finds version {max(found)}" if found else "none is there"
            yield f"needs version {number} of the parameters of stage {stage}: {there}"

    def add(self, rank: int, number: int, action: Action) -> None:
        """A B or W adds its contribution.

        Parameters
        ----------
        rank
            Who runs it.
        number
            The pass, from 0 on.
        """
        one = (number, action.stage, (action.microbatch, action.slice, action.part))
        self._summed[rank, action.stage][one] += 1
        self.added[one] += 1

    def step(self, rank: int, stage: int) -> Iterator[str]:
        """STEP takes the whole gradient of its pass, and makes the next version.

        Parameters
        ----------
        rank
            Who runs it.
        stage
            Whose parameters they are.

        Returns
        -------
        Iterator[str]
            A sentence for each thing that is wrong.
        """
        place, number = (rank, stage), self.version[rank, stage]
        taken = self._last_sums(stage).pop(place, Counter())
        yield from self._wrong(number, (stage,), taken)
        if stage in self._ends:
            tie = self._tied.pop(place, Counter())
            for sentence in self._wrong(number, self._ends, tie):
                yield f"{sentence}, of the tied matrix"
        self.version[place] += 1

    def is_replicated(self, stage: int) -> bool:
        """Whether two ranks hold a stage.

        Parameters
        ----------
        stage
            The stage's number.
        """
        return len(self._step.holders[stage]) > 1

    def exchange(self, stage: int, ranks: frozenset[int]) -> None:
        """Both ranks of a stage have the sum of what they have added so far.

        Parameters
        ----------
        stage
            The stage's number.
        ranks
            The ranks that hold it.
        """
        sums = self._own_sums(stage)
        total = sum((sums.pop((r, stage), Counter()) for r in ranks), Counter[StateContribution]())
        for rank in ranks:
            self._exchanged[rank, stage] = total.copy()

    def tie(self, ranks: frozenset[int]) -> None:
        """The ranks of stages that share a parameter have the sum, of their own where it is.

        Parameters
        ----------
        ranks
            Those of these stages.
        """
        for rank in ranks:
            total: StateSum = Counter()
            for stage in self._ends:
                sums, holders = self._last_sums(stage), self._step.holders[stage]
                total += sums[rank if rank in holders else min(holders), stage]
            for stage in self._ends:
                self._tied[rank, stage] = total.copy()

    def _own_sums(self, stage: int) -> dict[StatePlace, StateSum]:
        """Where a rank's own sum lies once all of it is there."""
        is_reduced = stage in self._step.reduced | self._step.hosted
        return self._reduced if is_reduced else self._summed

    def _last_sums(self, stage: int) -> dict[StatePlace, StateSum]:
        """Where a STEP finds its gradient."""
        return self._exchanged if self.is_replicated(stage) else self._own_sums(stage)

    def run_twice(self, rank: int, action: Action) -> Iterator[str]:
        """Begin an action that stands twice, or end it.

        Parameters
        ----------
        rank
            Who runs it.

        Returns
        -------
        Iterator[str]
            A sentence for each thing that is wrong.
        """
        place, key = (rank, action.stage), (rank, action)
        number = action.slice if action.kind is Kind.UNSHARD else NONE
        if key not in self._begun:
            if action.kind in (Kind.UNSHARD, Kind.RELOAD):
                self._begun[key] = self.version[place]
            elif action.kind is Kind.STEP:
                self._begun[key] = None
                yield from self.step(rank, action.stage)
            else:
                self._begun[key] = self._summed.pop(place, Counter())
                if action.kind is Kind.OFFLOAD:
                    self._copies[place].pop(NONE, None)
            return
        moved = self._begun.pop(key)
        if isinstance(moved, Counter):
            self._reduced[place] += moved
        elif moved is not None:
            self._copies[place][number] = moved

    def free(self, rank: int, action: Action) -> None:
        """RESHARD frees a copy.

        Parameters
        ----------
        rank
            Who runs it.
        """
        self._copies[rank, action.stage].pop(action.slice, None)

    def incomplete(self, number: int, stages: Iterator[int]) -> Iterator[str]:
        """What is not yet added of the gradients of a pass, by stage.

        Parameters
        ----------
        number
            The pass, from 0 on.
        stages
            The stages that are asked about.
        """
        for stage in stages:
            yield from self._wrong(number, (stage,), self.added, is_part=True)

    def _wrong(
        self, number: int, stages: tuple[int, ...], taken: StateSum, *, is_part: bool = False
    ) -> Iterator[str]:
        """One sentence where ``taken`` is not each contribution of the stages in a pass once."""
        whole = {(number, g, c) for g in stages for c in self._step.contributions[g]}
        wrong = sorted(one for one in whole if taken[one] != 1)
        wrong += [] if is_part else sorted(one for one in taken if one not in whole)
        if not wrong:
            return
        (found_in, stage, contribution), times = wrong[0], taken[wrong[0]]
        microbatch, slice_, piece = contribution
        part = (stage, microbatch, slice_)
        kind = Kind.B if self._step.backward.get(part) is Kind.B else Kind.W
        adds = f"what {name(kind, part, piece)} of pass {found_in} adds"
        has = f"it has {adds}" + ("" if times == 1 else f" {times} times")
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        of = " and ".join(map(str, stages))
        yield (
            f"needs each contribution of pass {number} to stage {of} once: "
            + (has if times else f"it lacks {adds}")
            + more
        )
