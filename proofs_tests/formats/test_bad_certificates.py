"""Certificates that are none, of every kind alike: each is refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.formats import UnusableInput, read_certificate
from bubbleproof.formats.certificate_json import certificate_content
from bubbleproof.formats.certificate_layouts import LAYOUTS
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import Certificate, refusal
from bubbleproof.verify.certificates.crossings import Crossings
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindow, MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from bubbleproof.verify.certificates.volume import Volume

PROBLEM = Pipeline(num_ranks=2, num_microbatches=3, capacity=2).problem()
SMALLER = Pipeline(num_ranks=1, num_microbatches=1, capacity=2).problem()
LAST = PROBLEM.task("1F2")
KINDS: dict[str, Certificate] = {
    "one-machine": OneMachine(resource=1, tasks=(LAST,), bound=1),
    "one-store": OneStore(resource=1, store=1, begin=0, end=0, bound=1),
    "volume": Volume(store=1, bound=1),
    "crossings": Crossings(store=1, bound=1),
    "prices": TickPrices(
        resources=(Tariff(of=1, steps=((0, 1),)),),
        stores=(Tariff(of=1, steps=((0, 1),)),),
        bound=2,
    ),
    "windows": MicrobatchWindows(
        first=PROBLEM.task("1F0"),
        store=1,
        windows=(
            MicrobatchWindow(
                count=1, ranks=(1,), proof=OneMachine(resource=0, tasks=(0,), bound=1)
            ),
        ),
        bound=1,
    ),
    "drup": Drup(bound=2, lemmas=(Lemma(literals=((">=", LAST, 1),)), Lemma(literals=()))),
}
NUMBERS = ["1e30", "2.5", "1.0", "-1e400", "NaN", str(1 << 62), "9" * 5000, "true", '"9"']


def told(text: str, folder: Path) -> str:
    """What reading the text as a certificate of the problem is refused with."""
    path = folder / "c.json"
    path.write_text(text)
    with pytest.raises(UnusableInput) as error:
        read_certificate(path, PROBLEM)
    return str(error.value)


def text_of(kind: str) -> str:
    return json.dumps(certificate_content(PROBLEM, KINDS[kind]))


def test_every_kind_is_here() -> None:
    assert KINDS.keys() == LAYOUTS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_no_part_of_a_file_is_a_file(kind: str, tmp_path: Path) -> None:
    text = text_of(kind)
    for length in range(0, len(text), 7):
        assert "\n" not in told(text[:length], tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:9])
def test_a_bound_is_a_whole_number_within_reason(kind: str, number: str, tmp_path: Path) -> None:
    bound = f'"bound": {KINDS[kind].bound}'
    text = text_of(kind)
    assert bound in text
    found = told(text.replace(bound, f'"bound": {number}'), tmp_path)
    assert "\n" not in found
    assert len(found) < 400


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:9])
def test_so_is_a_price_and_its_tick(number: str, tmp_path: Path) -> None:
    text = text_of("prices")
    for step in (f"[[0, {number}]]", f"[[{number}, 0]]"):
        assert "\n" not in told(text.replace("[[0, 1]]", step), tmp_path)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:9])
def test_so_is_every_number_of_a_window(number: str, tmp_path: Path) -> None:
    text = text_of("windows")
    for key, usual in (("count", 1), ("times", 1)):
        assert f'"{key}": {usual}' in text
        found = told(text.replace(f'"{key}": {usual}', f'"{key}": {number}'), tmp_path)
        assert "\n" not in found
        assert len(found) < 400


def test_a_window_is_of_the_problem_and_its_proof_no_window(tmp_path: Path) -> None:
    """What is no excerpt, or proves by windows again, without end perhaps, is refused in a line."""
    content = certificate_content(PROBLEM, KINDS["windows"])
    window: dict[str, object] = content["windows"][0]  # type: ignore[index]  # a list of one
    proof: dict[str, object] = window["proof"]  # type: ignore[assignment]  # a file's content
    damage: tuple[dict[str, object], ...] = (
        {"count": 4},
        {"ranks": []},
        {"ranks": ["rank 0"]},
        {"ranks": ["rank 7"]},
        {"proof": {}},
        {"proof": content},
        {"proof": {**proof, "tasks": ["1F1"]}},
    )
    for changes in damage:
        found = told(json.dumps({**content, "windows": [{**window, **changes}]}), tmp_path)
        assert "windows[0]" in found.replace("windows, 0", "windows[0]")
        assert "\n" not in found
    assert "first" in told(json.dumps({**content, "first": "1F9"}), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_of_a_larger_problem_names_what_is_not_there(
    kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "c.json"
    path.write_text(text_of(kind))
    with pytest.raises(UnusableInput) as error:
        read_certificate(path, SMALLER)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_checker_refuses_a_bound_beyond_all_sums_in_one_line(kind: str) -> None:
    assert refusal(PROBLEM, KINDS[kind]) is None
    for bound in (1 << 62, 1 << 64, 10**40):
        why = refusal(PROBLEM, replace(KINDS[kind], bound=bound))
        assert why is not None
        assert "\n" not in why
