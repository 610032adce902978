"""The smallest size at which a generator goes wrong, with the checker's own picture of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.verdicts.generator_list import generators
from benchmarks.verdicts.judged import MATCHES, Judged
from bubbleproof.verify import Semantics, Violation, check_communication, check_program

ORDER = "order"  # in place of a placement: what rules 1 to 5 say


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """The smallest (p, then m) size of the sweep at which a placement is wrong, and what is told.

    ``semantics`` are those under which it is wrong there in this way for the first time.
    """

    source: str
    name: str
    placement: str
    p: int
    m: int
    semantics: tuple[str, ...]
    text: str

    @property
    def heading(self) -> str:
        """Of its section; no other has it."""
        return " ".join([self.source, self.name, self.placement, *self.semantics[:1]])


def smallest(found: Sequence[Judged], archives: tuple[Path, ...]) -> list[Smallest]:
    """Of each generator and placement every way of going wrong, once."""
    by_generator: dict[tuple[str, str], list[Judged]] = {}
    for each in sorted(found, key=lambda each: (each.p, each.m)):
        by_generator.setdefault((each.source, each.name), []).append(each)
    keys = [key for key in generators(archives) if key in by_generator]
    return [
        each
        for key in keys
        for each in (
            *_of_order(by_generator[key], archives),
            *_of_placements(by_generator[key], archives),
        )
    ]


def _of_order(cases: Sequence[Judged], archives: tuple[Path, ...]) -> Iterator[Smallest]:
    first = next((case for case in cases if case.broken), None)
    if first is not None:
        made = generators(archives)[first.source, first.name].make(first.p, first.m)
        verdict, _ = check_program(made.problem, made.order)
        yield _told(first, ORDER, (), verdict.violations[0])


def _of_placements(cases: Sequence[Judged], archives: tuple[Path, ...]) -> Iterator[Smallest]:
    names = dict.fromkeys(placed.placement for case in cases for placed in case.placed)
    for placement in names:
        ways: dict[tuple[int, int, str], tuple[Judged, Violation, list[str]]] = {}
        for semantics, case in _first_wrong(cases, placement).items():
            violation = _violation(case, placement, semantics, archives)
            key = (case.p, case.m, violation.message)
            ways.setdefault(key, (case, violation, []))[2].append(semantics)
        for case, violation, told in ways.values():
            yield _told(case, placement, tuple(told), violation)


def _first_wrong(cases: Sequence[Judged], placement: str) -> dict[str, Judged]:
    """The first case, by size, that is wrong under each semantics."""
    found: dict[str, Judged] = {}
    for case in cases:
        for placed in case.placed:
            if placed.placement == placement:
                for semantics, verdict in placed.verdicts.items():
                    if verdict != MATCHES:
                        found.setdefault(semantics, case)
    return {each.value: found[each.value] for each in Semantics if each.value in found}


def _violation(
    case: Judged, placement: str, semantics: str, archives: tuple[Path, ...]
) -> Violation:
    made = generators(archives)[case.source, case.name].make(case.p, case.m)
    verdict = check_communication(made.problem, made.placed[placement], (Semantics(semantics),))
    return verdict.violations[0]


def _told(
    case: Judged, placement: str, semantics: tuple[str, ...], violation: Violation
) -> Smallest:
    return Smallest(
        source=case.source,
        name=case.name,
        placement=placement,
        p=case.p,
        m=case.m,
        semantics=semantics,
        text=str(violation),
    )
