"""The plain model says what ``solve`` proves, on small instances of every kind."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import typer

from benchmarks import drawn_instances
from benchmarks.drawn_instances import KINDS, Found, cells, faults, is_better, main, ours, plain
from bubbleproof.solvers.choices.pipeline_variants import PipelineVariants


@pytest.mark.parametrize("kind", KINDS)
def test_both_find_the_same_optimum(kind: str) -> None:
    random, compared = Random(f"small {kind}"), 0
    while compared < 2:
        drawn = KINDS[kind](random)
        if drawn.pipeline.problem().num_tasks > 36:
            continue
        variants = PipelineVariants(drawn.pipeline, drawn.allowed).variants
        found, beside = ours(drawn, 1), plain(variants, 1)
        if found.is_optimal and beside.is_optimal:
            assert found.value == beside.value == found.bound
        compared += 1


def test_behind_is_longer_lower_or_later() -> None:
    short, long = Found(9, 8, False, 1.0), Found(10, 8, False, 1.0)
    assert list(faults(long, short)) == ["longer"]
    assert not list(faults(short, long))
    assert list(faults(Found(None, 8, False, 1.0), short)) == ["longer"]
    assert not list(faults(short, Found(None, 0, False, 1.0)))
    assert list(faults(Found(9, 7, False, 1.0), short)) == ["lower bound"]
    proved = Found(9, 9, True, 1.0)
    assert list(faults(proved._replace(work=2.1), proved)) == ["later"]  # 1.5 * 1.0 + 0.5 = 2.0
    assert not list(faults(proved._replace(work=1.9), proved))


def test_better_is_shorter_or_as_long_and_surer() -> None:
    found = Found(9, 8, False, 1.0)
    assert is_better(found, found._replace(value=10, bound=9))
    assert is_better(found, found._replace(bound=7))
    assert is_better(found, found._replace(value=None))
    assert not is_better(found, found)


def test_a_row_names_the_seeds_behind() -> None:
    short, long = Found(9, 9, True, 1.0), Found(10, 8, False, 1.0)
    solved = {"0": (short, long), "1": (short, short), "2": (long, short)}
    row = ["chunks", "3", "1", "1", "1", "2", "2", "2 (longer, lower bound)"]
    assert cells("chunks", solved) == row


def test_what_is_recorded_is_not_solved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[tuple[str, str, float]] = []
    records, written = tmp_path / "records.jsonl", tmp_path / "page.md"
    pair = Found(10, 8, False, 1.0), Found(9, 8, False, 1.0)

    def compared(kind: str, seed: str, work: float) -> tuple[Found, Found]:
        if len(solved) == 2:
            raise KeyboardInterrupt
        solved.append((kind, seed, work))
        return pair

    monkeypatch.setattr(drawn_instances, "compared", compared)
    with pytest.raises(KeyboardInterrupt):
        main(kind="wave", each=3, records=records, write=written)
    assert "| wave | 2 | 0 | 0 | 2 |" in written.read_text("utf-8")
    del solved[0]
    with pytest.raises(typer.Exit):
        main(kind="wave", each=3, records=records, write=written)
    assert solved == [("wave", "1.1", 4.0), ("wave", "1.2", 4.0)]
    assert "| wave | 3 | 0 | 0 | 3 |" in written.read_text("utf-8")
    assert set(drawn_instances.recorded(records).values()) == {pair}
