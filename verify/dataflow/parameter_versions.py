"""Parameters: which copies of a stage's parameters lie on the device, and of which version.

The step starts with version 0 everywhere; STEP makes the next one. A stage whose parameters stay on
its ranks has one copy there. A gathered stage has the copies that its UNSHARDs made (``UNSHARD.n``
makes copy n, ``RESHARD.n`` frees it), a hosted one the copy that RELOAD brought and OFFLOAD drops.
Where an UNSHARD stands in a rank's program its copy lies on that rank, else on all that hold the
stage. F, R, B and I use version 0, so all of one microbatch use the same (W needs none: it
multiplies activations and output gradients). A copy that is there when a work begins must last
until it ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.verify.dataflow.mistakes import Fault, SymbolicAction, Thing, said
from bubbleproof.verify.dataflow.training_step import TrainingStep

PARAMETER_USERS = (Kind.F, Kind.R, Kind.B, Kind.I)


class ParameterVersions:
    """The copies of each stage's parameters (copy number to version) and who changed them last."""

    def __init__(self, step: TrainingStep, num_ranks: int) -> None:
        self._step, self._num_ranks = step, num_ranks
        stages = range(step.num_stages)
        self._version = dict.fromkeys(stages, 0)
        self._copies: dict[int, dict[int, int]] = {
            g: {} if g in step.gathered | step.hosted else {NONE: 0} for g in stages
        }
        self._made_by: dict[tuple[int, int], SymbolicAction] = {}
        self._changed_by: dict[int, SymbolicAction] = {}
        self._stepped_by: dict[int, SymbolicAction] = {}
        self._freed_by: dict[int, SymbolicAction] = {}
        self._in_use: dict[SymbolicAction, set[int]] = {}

    def of_use(self, work: SymbolicAction) -> Iterator[Fault]:
        """The rank holds the stage, and a copy of the step's parameters lies there."""
        stage = work.part[0]
        if work.resource not in self._step.holders[stage]:
            needed = said(f"the parameters of stage {stage} on rank {work.resource}")
            ranks = ", ".join(map(str, sorted(self._step.holders[stage])))
            yield Fault(needed=needed, found=said(f"they are on rank {ranks}"))
            return
        if self._fresh(work):
            return
        needed = said(f"the parameters of stage {stage} of this step")
        if self._copies[stage] and stage in self._stepped_by:
            by = self._stepped_by[stage]
            found: Thing = ("{} has updated them", by.kind, by.part)
            yield Fault(needed=needed, found=found, origin=by.row)
            return
        kind = Kind.UNSHARD if stage in self._step.gathered else Kind.RELOAD
        supply = (kind, stage)
        if (last := self._changed_by.get(stage)) is None:
            found = said(f"no {kind.name} has brought them")
            yield Fault(needed=needed, found=found, awaited=supply)
        elif last.kind is Kind.UNSHARD:
            found = (f"{{}} has brought them to rank {last.resource}", last.kind, last.part)
            yield Fault(needed=needed, found=found, origin=last.row, awaited=supply)
        else:
            found = ("{} has freed them", last.kind, last.part)
            yield Fault(needed=needed, found=found, origin=last.row, awaited=supply)

    def of_end_of_use(self, work: SymbolicAction) -> Iterator[Fault]:
        """One of the copies that were there when the work began still is."""
        stage, used = work.part[0], self._in_use.pop(work, set())
        if not used or used & self._fresh(work):
            return
        last, verb = self._freed_by.get(stage), "freed"
        if last is None:
            last, verb = self._stepped_by[stage], "updated"
        found: Thing = (f"{{}} has {verb} them", last.kind, last.part)
        needed = said(f"the parameters of stage {stage} until it ends")
        yield Fault(needed=needed, found=found, origin=last.row)

    def _fresh(self, work: SymbolicAction) -> set[int]:
        """The copies of version 0 that are where the work runs."""
        stage = work.part[0]
        return {
            n
            for n, version in self._copies[stage].items()
            if version == 0 and self._is_at(stage, n, work.resource)
        }

    def _is_at(self, stage: int, number: int, rank: int) -> bool:
        by = self._made_by.get((stage, number))
        return by is None or by.resource >= self._num_ranks or by.resource == rank

    def begin_use(self, work: SymbolicAction) -> None:
        """What a work uses from now on."""
        if work.resource in self._step.holders[work.part[0]]:
            self._in_use[work] = self._fresh(work)

    def of_change(self, work: SymbolicAction) -> Iterator[Fault]:
        """A copy is made once and freed while it is there."""
        stage, _, number = work.part
        is_there = number in self._copies[stage]
        by = self._made_by.get((stage, number))
        if work.kind in (Kind.UNSHARD, Kind.RELOAD) and by is not None:
            found: Thing = ("{} has brought it", by.kind, by.part)
            yield Fault(needed=said("to bring a copy for the first time"), found=found)
        elif work.kind in (Kind.RESHARD, Kind.OFFLOAD) and not is_there:
            needed = said(f"the gathered parameters of stage {stage}")
            if by is None:
                kind = Kind.UNSHARD if work.kind is Kind.RESHARD else Kind.RELOAD
                found = said(f"no {kind.name} has brought them")
                yield Fault(needed=needed, found=found, awaited=(kind, stage))
            else:
                last = self._changed_by[stage]
                found = ("{} has freed them", last.kind, last.part)
                yield Fault(needed=needed, found=found, origin=last.row)

    def begin(self, work: SymbolicAction) -> None:
        """RESHARD and OFFLOAD free their copy as they start."""
        stage, _, number = work.part
        if work.kind in (Kind.RESHARD, Kind.OFFLOAD):
            self._copies[stage].pop(number, None)
            self._changed_by[stage] = work
            self._freed_by[stage] = work

    def end(self, work: SymbolicAction) -> None:
        """UNSHARD and RELOAD have brought the current version; STEP has made the next."""
        stage, _, number = work.part
        if work.kind is Kind.STEP:
            self._version[stage] += 1
            self._stepped_by[stage] = work
            if NONE in self._copies[stage]:
                self._copies[stage][NONE] = self._version[stage]
        elif work.kind in (Kind.UNSHARD, Kind.RELOAD):
            self._copies[stage][number] = self._version[stage]
            self._made_by[stage, number] = work
            self._changed_by[stage] = work

    def left_over(self) -> Iterator[Fault]:
        """Stages that the problem steps and the run does not, once; copies that are not freed."""
        for stage in sorted(self._step.stepped):
            if (version := self._version[stage]) != 1:
                subject, needed = f"stage {stage}", said("one STEP")
                found = said(f"it has had {version}")
                origin = self._stepped_by[stage].row if version else NONE
                yield Fault(needed=needed, found=found, origin=origin, subject=subject)
        for (stage, number), by in self._made_by.items():
            if (stage, number) in self._step.freed and number in self._copies[stage]:
                subject = f"copy {number} of the parameters of stage {stage}"
                needed, found = said("to be freed"), said("no RESHARD has freed it")
                yield Fault(needed=needed, found=found, origin=by.row, subject=subject)
