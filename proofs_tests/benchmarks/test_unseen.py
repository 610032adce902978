"""The benchmark of unseen instances, on a few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.unseen import EVERY_NUMBER, KINDS, RESTS, instance, main, page, solved
from bubbleproof.solvers import ProofOrigin
from bubbleproof.verify.certificates.index_order import index_order
from proofs_tests.patience import PATIENCE

PAGE = Path(__file__).parents[2] / "records" / "unseen.md"


def test_it_writes_what_each_optimum_rests_on(tmp_path: Path) -> None:
    target = tmp_path / "unseen.md"
    assert main(["1", "--time-limit", f"{PATIENCE}", "--write", str(target)]) == 0
    text = target.read_text()
    assert "| a certificate | 1 | 1 | 0 | 0 | 0 |" in text
    assert "| 0 | plain |" in text


@pytest.mark.parametrize("number", [1, 2, 11])
def test_each_kind_has_groups_and_a_certificate(number: int) -> None:
    kind, problem = instance(number)
    assert kind == KINDS[number % len(KINDS)]
    assert len(index_order(problem).groups) > 1
    row = solved(number, PATIENCE)
    assert row.rests == RESTS[ProofOrigin.CERTIFICATE]
    assert f"| {number} | {kind} |" in page([row], PATIENCE)


def test_the_page_has_every_instance_and_few_rest_on_an_engines_word() -> None:
    lines = [line.split(" | ") for line in PAGE.read_text().splitlines()]
    rows = [line for line in lines if line[0].removeprefix("| ").isdigit()]
    assert [int(line[0].removeprefix("| ")) for line in rows] == [*range(EVERY_NUMBER)]
    # At most 3 % of them.
    assert sum(line[5] != RESTS[ProofOrigin.CERTIFICATE] for line in rows) <= 0.03 * EVERY_NUMBER
