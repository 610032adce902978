"""Gradients: which contributions each stage's gradient sums so far.

B adds the whole contribution of its microbatch and slice as it ends, W that of its piece, to the
gradient on the rank where they run. ``REDUCE_GRAD`` takes what its rank has summed by its start, or
all that its stage's ranks have where it runs on none, and adds it to the reduced gradient at its
end. ``STEP`` needs the whole gradient: the
reduced one where the problem reduces, the one that OFFLOAD took to the host where the stage is
hosted, else the one on its rank. At the end of the run each contribution stands in the sum of
everything exactly once, and where the problem reduces nothing is left unreduced.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.verify.dataflow.mistakes import Fault, Supply, SymbolicAction, Thing, said
from bubbleproof.verify.dataflow.training_step import Contribution, TrainingStep

GradientSum = Counter[Contribution]
_WHOLE = "the whole gradient of stage {stage}"


class Gradients:
    """The contributions summed on each rank, in reduction, reduced, and on the host."""

    def __init__(self, step: TrainingStep, num_ranks: int) -> None:
        self._step, self._num_ranks = step, num_ranks
        self._on_rank: dict[int, dict[int, GradientSum]] = defaultdict(lambda: defaultdict(Counter))
        self._moving: dict[SymbolicAction, GradientSum] = {}
        self._moved: dict[int, GradientSum] = defaultdict(Counter)  # reduced, or on the host
        self.added_by: dict[tuple[int, Contribution], SymbolicAction] = {}

    def of_step(self, work: SymbolicAction) -> Iterator[Fault]:
        """OFFLOAD of a hosted stage and STEP need every contribution once."""
        stage = work.part[0]
        found = self._seen_by(work)
        whole = self._step.contributions[stage]
        wrong = sorted(c for c in whole if found[c] != 1) + sorted(found.keys() - whole)
        if not wrong:
            return
        needed = said(_WHOLE.format(stage=stage))
        yield self._fault(needed, stage, wrong[0], found[wrong[0]], len(wrong))

    def _seen_by(self, work: SymbolicAction) -> GradientSum:
        stage = work.part[0]
        if stage in self._step.reduced or (stage in self._step.hosted and work.kind is Kind.STEP):
            return self._moved[stage]
        sums = self._on_rank[stage]
        if work.kind is Kind.STEP and work.resource < self._num_ranks:
            return sums[work.resource]
        return sum(sums.values(), Counter())

    def _fault(self, needed: Thing, stage: int, one: Contribution, times: int, count: int) -> Fault:
        microbatch, slice_, piece = one
        part = (stage, microbatch, slice_)
        kind = Kind.B if self._step.backward.get(part) is Kind.B else Kind.W
        more = f" (and {count - 1} more)" if count > 1 else ""
        by = self.added_by.get((stage, one))
        which = "" if piece == NONE else f" as piece {piece}"
        phrase = f"it lacks what {{}} adds{which}"
        if times:
            phrase = f"{{}} has added to it {times} times{which}"
        return Fault(
            needed=needed,
            found=(phrase + more, kind, part),
            origin=NONE if by is None else by.row,
            awaited=self._supply(kind, part, piece),
        )

    @staticmethod
    def _supply(kind: Kind, part: tuple[int, int, int], piece: int) -> Supply:
        return (kind, *part) if kind is Kind.B else (kind, *part, piece)

    def begin(self, work: SymbolicAction) -> None:
        """REDUCE_GRAD, and OFFLOAD of a hosted stage, take what is there."""
        if work.kind in (Kind.REDUCE_GRAD, Kind.OFFLOAD):
            sums = self._on_rank[work.part[0]]
            ranks = (work.resource,) if work.resource < self._num_ranks else tuple(sums)
            self._moving[work] = sum((sums.pop(r, Counter()) for r in ranks), Counter())

    def end(self, work: SymbolicAction) -> None:
        """B and W have added, REDUCE_GRAD and OFFLOAD have moved."""
        stage, microbatch, slice_ = work.part
        if work.kind in (Kind.B, Kind.W):
            contribution = (microbatch, slice_, work.piece)
            self._on_rank[stage][work.resource][contribution] += 1
            self.added_by[stage, contribution] = work
        elif work in self._moving:
            self._moved[stage] += self._moving.pop(work)

    def left_over(self) -> Iterator[Fault]:
        """What is wrong with the sum of everything when the run has ended."""
        for stage, whole in sorted(self._step.contributions.items()):
            unmoved = sum(self._on_rank[stage].values(), Counter())
            total = unmoved + self._moved[stage]
            wrong = sorted(c for c in whole if total[c] != 1) + sorted(total.keys() - whole)
            subject, needed = f"the gradient of stage {stage}", said("every contribution once")
            for one in wrong:
                fault = self._fault(needed, stage, one, total[one], 1)
                yield replace(fault, subject=subject, awaited=None)
            if stage in self._step.reduced and not wrong and unmoved:
                one = min(unmoved)
                by = self.added_by[stage, one]
                found: Thing = ("what {} added is never reduced", by.kind, by.part)
                yield Fault(
                    needed=said("all of it reduced"), found=found, origin=by.row, subject=subject
                )
