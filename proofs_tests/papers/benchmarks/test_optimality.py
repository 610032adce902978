"""The optimality survey: what it calls optimal, beaten and capped, and which reasons it accepts."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.optimality import (
    Case,
    counts,
    decide,
    parameters,
    read_kept,
    sizes,
    survey,
    write_rows,
)
from benchmarks.optimality_page import markdown
from benchmarks.optimality_sources import REASONS, authors
from benchmarks.verdicts.judged import capped
from bubbleproof.theory.families import families, member
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized


def case(**changes: object) -> Case:
    made = Case(
        family="x",
        p=2,
        m=2,
        v=1,
        s=1,
        published=9,
        peak=2,
        known=None,
        source="",
        best=9,
        bound=9,
        verdict="optimal",
        reason="",
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


def test_1f1b_is_optimal_under_its_own_memory() -> None:
    found = decide(("1f1b", 3, 4, 1, 1), time_limit=PATIENCE)
    # (m + p - 1)(tF + tB) = 6 * 3, which is also what its paper says; rank 0 holds p.
    assert (found.published, found.best, found.bound, found.verdict) == (18, 18, 18, "optimal")
    assert (found.peak, found.known, found.reason) == (3, 18, "")


def test_capacities_are_the_schedules_own_peaks() -> None:
    small = member("1f1b", p=3, m=4)
    stores = capped(small.problem, small.schedule).stores
    assert [store.capacity for store in stores] == [3, 2, 1]


def test_a_longer_schedule_is_beaten_and_has_a_reason() -> None:
    # T-Pipe's 6(m+p-1) = 30 ticks at p = m = 3; an order of 27 needs no more memory.
    found = decide(("tpipe", 3, 3, 2, 1), time_limit=PATIENCE)
    assert (found.published, found.known, found.verdict) == (30, 30, "beaten")
    assert found.excess == Fraction(found.published - found.bound, found.bound) > 0
    assert found.reason == REASONS["tpipe"].text


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_holds_of_its_family_and_not_of_any_schedule(name: str) -> None:
    at = parameters((name, 4, 5, 2, 1))
    known = authors(name, 4, 5, 2, 1)
    if known is not None and name not in ("hanayo", "chimera", "svpp"):
        assert REASONS[name].holds(at, known[0])
        assert not REASONS[name].holds(at, known[0] + 1)
    else:
        assert REASONS[name].holds(at, 0)


def test_what_the_authors_say() -> None:
    # MEPipe Table 3: (9*3 + 8-1) * 3 ticks; zbv_greedy.py's 53; Megatron refuses m = 7.
    assert authors("svpp", 8, 9, 3, 1) == (102, "MEPipe Table 3")
    assert authors("v-half", 4, 8, 2, 1) == (53, "the authors' zbv_greedy.py")
    assert authors("interleaved", 4, 7, 2, 1) is None
    assert authors("v-half", 5, 5, 2, 1) is None


@pytest.mark.sweep
def test_the_sizes_are_those_of_the_page() -> None:
    ranks = sized(3, full=8)
    wanted = list(sizes(ranks))
    assert {name for name, *_ in wanted} == set(families())
    assert counts(3, is_thin=False) == list(range(1, 10))
    assert counts(8, is_thin=False) == counts(8, is_thin=True) == [1, 7, 8, 9, 16, 24]
    assert ("svpp", ranks, ranks + 1, 3, 1) in wanted
    assert len(wanted) == len(set(wanted))


def test_the_page_names_every_case_above_2_percent() -> None:
    cases = [
        case(),
        case(family="y", published=10, best=9, verdict="beaten", reason="so it is printed"),
        case(family="z", published=12, best=12, bound=10, verdict="open", known=11, source="A"),
        case(family="w", published=12, best=12, bound=10, verdict="claimed"),
    ]
    page = markdown(cases, 1, 5)
    assert "4 of 5 sizes" in page
    assert "| x | 1 | 1 | 0 | 0 | 0 | 0 |  |  |" in page
    assert "**y**: so it is printed." in page
    assert "**z**: **none known**." in page
    assert "| 2 2 1 1 | 12 | 2 | 11 | 12 | 10 | 20.0 %, open |" in page
    assert "| z | A | 1 | 0 | 0 | 1 |" in page
    assert "**w**" not in page  # nothing is shorter, by the engine's word


def test_a_sweep_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    keep = tmp_path / "cases.jsonl"
    done = case(family="1f1b", p=2, m=1, published=1234)
    keep.write_text(json.dumps(asdict(done)) + "\n", encoding="utf-8")
    wanted = [("1f1b", 2, 1, 1, 1), ("1f1b", 2, 2, 1, 1)]
    first, second = survey(wanted, PATIENCE, 1, keep)
    assert first == done  # taken from the file, not solved again
    assert second.published == 9  # (2 + 2-1) * 3
    assert read_kept(keep) == {first.size: first, second.size: second}
    write_rows([first, second], tmp_path / "rows.csv")
    rows = (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("family,p,m,v,s,published,peak,known,best,bound")
    assert rows[1].startswith("1f1b,2,1,1,1,1234,")
