"""Faults put into the executor, one small patch each, and a sweep that runs them all.

A fault is *seen* where the replay is not ok, or ends with an error. Each says in its ``marks`` when
its code has run, so that one that was never reached counts as missed; and the same programs without
it must replay. Faults in programs, which the verification refuses, are elsewhere (``test_teeth``,
``test_training_faults``, ``test_collective_faults``, ``test_replica_faults``), those in what waits
for what on a GPU in ``test_race_faults``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from proofs_tests.reference_exec import hoarding, wrong_messages, wrong_numbers, wrong_sums
from proofs_tests.reference_exec.fault_cases import CASES

Marks = list[object]
Patch = Callable[[pytest.MonkeyPatch, Marks], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A patch of the executor and the case of ``fault_cases`` that it is run on."""

    patch: Patch
    case: str

    @property
    def name(self) -> str:
        return f"{self.patch.__name__} on {self.case}"

    def run(self) -> str:
        """What the replay says of the fault; empty where it says nothing.

        Raises ``RuntimeError`` where the patched code was never run.
        """
        marks: Marks = []
        with pytest.MonkeyPatch.context() as patch:
            self.patch(patch, marks)
            try:
                said = "; ".join(CASES[self.case]().failures)
            except RuntimeError as error:
                said = f"{type(error).__name__}: {error}"
        if not marks:
            raise RuntimeError(f"{self.name} was not injected")
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """The outcome of a sweep: counts, and the names of what was missed."""

    injected: int
    seen: int
    clean: int
    missed: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.injected} faults injected, {self.seen} seen, {len(self.missed)} missed"
        return f"{text}; {self.clean} cases without a fault replay"


INJECTED: tuple[Injected, ...] = tuple(
    Injected(patch=patch, case=case)
    for room in (wrong_numbers.FAULTS, wrong_sums.FAULTS, wrong_messages.FAULTS, hoarding.FAULTS)
    for patch, case in room
)


def sweep(progress: Callable[[str], None] | None = None) -> Swept:
    """Run every fault, and each case without one."""
    missed, clean = [], 0
    for name in sorted({fault.case for fault in INJECTED}):
        report: ReplayReport = CASES[name]()
        clean += report.ok
        if not report.ok:
            missed.append(f"{name} without a fault: {report}")
    for fault in INJECTED:
        said = fault.run()
        if not said:
            missed.append(fault.name)
        if progress is not None:
            progress(f"{fault.name}: {said or 'MISSED'}")
    seen = len(INJECTED) - sum(fault.name in missed for fault in INJECTED)
    return Swept(injected=len(INJECTED), seen=seen, clean=clean, missed=tuple(missed))
