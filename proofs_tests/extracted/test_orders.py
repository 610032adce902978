"""The families order the tasks of a rank as Coq's theorems do; all of it is on ``orders.md``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proofs_tests.extracted.judge import needs_judge
from proofs_tests.extracted.orders_page import THEOREMS, built, compared, page, printed
from proofs_tests.sized import sized

PAGE = Path(__file__).resolve().parents[2] / "records" / "orders.md"
SIZE = sized((4, 8, 2), full=(16, 64, 3))


@pytest.fixture(scope="module")
def lines(coq_library: tuple[Path, dict[str, str]]) -> list[str]:
    return list(printed(built(coq_library[0]), *SIZE))


@needs_judge
def test_every_rank_has_the_theorems_order(lines: list[str]) -> None:
    tallies = compared(iter(lines))
    assert {name: tally.differ for name, tally in tallies.items()} == {
        name: [] for name in THEOREMS
    }
    ranks, microbatches, _ = SIZE
    per_size = ranks * microbatches
    assert len(tallies["1f1b"].sizes) == len(tallies["gpipe"].sizes) == per_size
    assert tallies["1f1b"].ranks == microbatches * ranks * (ranks + 1) // 2


@needs_judge
def test_two_tasks_in_turn_are_told(lines: list[str]) -> None:
    wrong = "1f1b 2 2 1 0 0F0 0B0 0F1 0B1"
    assert "1f1b 2 2 1 0 0F0 0F1 0B0 0B1" in lines
    tallies = compared(iter([wrong]))
    assert tallies["1f1b"].differ == ["1f1b p=2 m=2 v=1, rank 0"]
    assert "- 1f1b p=2 m=2 v=1, rank 0" in page("", tallies, (0, 0))


def test_the_page_is_of_the_whole_grid() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| [^|]* \| (\d+) \| (\d+) \| \d+ \| (\d+) \|$",
        PAGE.read_text("utf-8"),
        re.MULTILINE,
    )
    found = {name: (int(sizes), int(ranks), int(differ)) for name, sizes, ranks, differ in rows}
    grid = [(p, m) for p in range(1, 17) for m in range(1, 65)]
    some = {"zb-h1": [(p, m) for p, m in grid if m >= p]}
    some["interleaved"] = [(p, m) for p, m in grid if m % p == 0] * 2  # 2 and 3 chunks
    for name in THEOREMS:
        of_it = some.get(name, grid)
        assert found[name] == (len(of_it), sum(p for p, _ in of_it), 0)
