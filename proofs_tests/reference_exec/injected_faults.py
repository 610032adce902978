"""Faults put into the executor, one small patch each, and the table of what each replay says.

    python -m proofs_tests.reference_exec.injected_faults --write records/injected-faults.md

Every module here that has ``FAULTS`` is taken in: pairs of a patch and the case of ``fault_cases``
that it is run on. A patch says in its ``marks`` when its code has run, so that one that was never
reached is an error; and every case without a fault must replay.

A fault is *seen* where a row of the report is violated, a failure is told that has no row, or the
run ends with an error. It is *disclosed* where its module has it under ``NOT_COUNTED``, with how a
line begins that the report of that very run must have, of what is not counted or not checked. Else
it is missed.

Faults in programs, which the verification refuses, are elsewhere (``test_teeth``,
``test_training_faults``, ``test_collective_faults``, ``test_replica_faults``), those in what waits
for what on a GPU in ``test_race_faults``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated

import pytest
import torch
import typer

from bubbleproof.reference_exec.evidence.replay_record import not_checked
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.report.document import replay_rows
from proofs_tests.reference_exec.fault_cases import CASES
from proofs_tests.reference_exec.patching import Marks

Patch = Callable[[pytest.MonkeyPatch, Marks], None]
HERE = Path(__file__).parent
CLASSES = {
    "hoarding": "bytes kept",
    "kept_from_birth": "bytes from birth, in one pass, on hosts",
    "uncounted_faults": "not counted, and said to be",
    "wrong_layers": "another model, other numbers",
    "wrong_messages": "messages",
    "wrong_moves": "moves to hosts and to other ranks, and back",
    "wrong_numbers": "data, weights, activations",
    "wrong_places": "work where there is none",
    "wrong_reports": "bits, shapes, samples, losses",
    "wrong_steps": "steps, shards, replicas",
    "wrong_sums": "sums of gradients",
    "wrong_work": "work",
}


class _Light(Marks):
    """Marks that keep no tensor alive: a fault is not to be seen by what notes it."""

    def append(self, mark: object) -> None:
        super().append(mark if isinstance(mark, int | str) else _name(mark))

    def extend(self, marks: object) -> None:
        for mark in marks:  # type: ignore[attr-defined]  # whatever a patch has several of
            self.append(mark)


def _name(mark: object) -> str:
    return type(mark).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the replay of a fault says: in ``seen_by`` the rows; in ``said`` all of it."""

    seen_by: tuple[str, ...] = ()
    said: str = ""
    is_disclosed: bool = False

    @property
    def verdict(self) -> str:
        """In a cell of the table."""
        if self.seen_by:
            return "; ".join(self.seen_by)
        return "not counted: the report's list says so" if self.is_disclosed else "MISSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A patch of the executor, the case that it is run on, and how a line begins that admits it."""

    patch: Patch
    case: str
    admitted: str = ""

    @property
    def name(self) -> str:
        return f"{self.patch.__name__} on {self.case}"

    @property
    def room(self) -> str:
        """The module that has it."""
        return self.patch.__module__.rpartition(".")[2]

    @property
    def what(self) -> str:
        """The patch in a sentence."""
        return (inspect.getdoc(self.patch) or self.patch.__name__).splitlines()[0].rstrip(".")

    def run(self) -> str:
        """What the replay says of the fault; empty where it says nothing.

        Raises ``RuntimeError`` where the patched code was never run.
        """
        return self.outcome().said

    def outcome(self) -> Outcome:
        """The replay's rows and sentences. Raises ``RuntimeError`` as ``run`` does."""
        marks: Marks = _Light() if self.room.startswith("wrong_") else []  # others keep in them
        with pytest.MonkeyPatch.context() as patch:
            self.patch(patch, marks)
            try:
                found = _judged(CASES[self.case](), self.admitted)
            except RuntimeError as error:
                kind = type(error).__name__
                found = Outcome(seen_by=(f"ends: {kind}",), said=f"{kind}: {error}")
        if not marks:
            raise RuntimeError(f"{self.name} was not injected")
        return found

    def places(self) -> tuple[str, ...]:
        """What the patch puts its code in the place of."""
        with pytest.MonkeyPatch.context() as patch:
            self.patch(patch, [])
            return tuple(dict.fromkeys(_place(owner, name) for owner, name, _ in patch._setattr))


def _place(owner: object, name: str) -> str:
    if isinstance(owner, ModuleType):
        return f"{owner.__name__.rpartition('.')[2]}.{name}"
    assert isinstance(owner, type)
    return f"{owner.__module__.rpartition('.')[2]}.{owner.__name__}.{name}"


def _judged(report: ReplayReport, admitted: str) -> Outcome:
    rows = [row for row in replay_rows(report) if row.verdict == "violated"]
    left = any("still holds" in failure for failure in report.failures)
    lines = (*report.not_counted, *report.not_counted_work, *not_checked(report))
    names = [*dict.fromkeys(_short(row.quantity) for row in rows), *["bytes left"] * left]
    if report.failures and not names:
        names = ["failures"]
    return Outcome(
        seen_by=tuple(names),
        said="; ".join(report.failures),
        is_disclosed=bool(admitted) and any(line.startswith(admitted) for line in lines),
    )


def _short(what: str) -> str:
    """A row of the report by its first words, without numbers."""
    name = what.partition(" (")[0].partition(" at each of ")[0].partition(" per ")[0]
    return name.partition(" to the ordinary")[0].partition(" to torch")[0].partition(" after ")[0]


def _rooms() -> Iterator[ModuleType]:
    """The modules of this folder that have faults."""
    for path in sorted(HERE.glob("*.py")):
        if "\nFAULTS = (" in path.read_text(encoding="utf-8"):
            yield importlib.import_module(f"proofs_tests.reference_exec.{path.stem}")


def _injected(rooms: Sequence[ModuleType]) -> tuple[Injected, ...]:
    found = []
    for room in rooms:
        found += [Injected(patch=patch, case=case) for patch, case in room.FAULTS]
        found += [
            Injected(patch=patch, case=case, admitted=admitted)
            for patch, case, admitted in getattr(room, "NOT_COUNTED", ())
        ]
    return tuple(found)


ROOMS = tuple(_rooms())
INJECTED = _injected(ROOMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """The outcome of a sweep: each fault's, and which cases do not replay without one."""

    outcomes: tuple[tuple[Injected, Outcome], ...]
    clean: int
    broken: tuple[str, ...] = ()

    @property
    def missed(self) -> tuple[str, ...]:
        """The names of what was missed and is not disclosed, and what is broken without a fault."""
        silent = (f.name for f, found in self.outcomes if found.verdict == "MISSED")
        return (*self.broken, *silent)

    def __str__(self) -> str:
        seen = sum(bool(found.seen_by) for _, found in self.outcomes)
        missed = sum(found.verdict == "MISSED" for _, found in self.outcomes)
        disclosed = len(self.outcomes) - seen - missed
        return (
            f"{len(self.outcomes)} faults injected, {seen} seen, {disclosed} disclosed as not "
            f"counted, {missed} missed; {self.clean} cases without a fault replay"
        )


def sweep(progress: Callable[[str], None] | None = None) -> Swept:
    """Run every fault, and each case without one."""
    broken, clean, outcomes = [], 0, []
    for name in sorted({fault.case for fault in INJECTED}):
        report: ReplayReport = CASES[name]()
        clean += report.ok
        if not report.ok:
            broken.append(f"{name} without a fault: {report}")
    for fault in INJECTED:
        found = fault.outcome()
        outcomes.append((fault, found))
        if progress is not None:
            progress(f"{fault.name}: {found.said or found.verdict}")
    return Swept(outcomes=tuple(outcomes), clean=clean, broken=tuple(broken))


def page(swept: Swept) -> str:
    """The page of a sweep."""
    lines = [
        "# Injected faults",
        "",
        "Made by `python -m proofs_tests.reference_exec.injected_faults --write "
        f"records/injected-faults.md` (torch {torch.__version__}).",
        "",
        f"{swept}. Each is one small patch of the executor, run on a small replay; that its code "
        "ran is",
        "made sure of. *Seen by* names the rows of the replay's table that are violated, or the "
        "error",
        "that ends the run; what is disclosed stands in that replay's own list of what is not "
        "counted.",
    ]
    for room in dict.fromkeys(fault.room for fault, _ in swept.outcomes):
        title = CLASSES.get(room, room.replace("_", " "))
        lines += ["", f"## {title[0].upper()}{title[1:]}", ""]
        lines += ["| fault | name and case | injected into | seen by |", "|---|---|---|---|"]
        for fault, found in swept.outcomes:
            if fault.room == room:
                where = ", ".join(f"`{place}`" for place in fault.places())
                lines.append(f"| {fault.what} | {fault.name} | {where} | {found.verdict} |")
    return "\n".join(lines) + "\n"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(write: Annotated[Path | None, typer.Option()] = None) -> None:
    """Run all, print what each says, and write the page; status 1 where one is missed."""
    swept = sweep(_say)
    _say(str(swept))
    if write is not None:
        write.write_text(page(swept), encoding="utf-8")
    for missed in swept.missed:
        _say(f"MISSED: {missed}")
    raise typer.Exit(bool(swept.missed))


if __name__ == "__main__":
    typer.run(main)
