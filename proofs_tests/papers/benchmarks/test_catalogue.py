"""The catalogue of families is what its command writes, and shows no formula that fails."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.catalogue import standing_formulas, vocabulary_page
from benchmarks.catalogue.__main__ import row
from benchmarks.catalogue.family_page import FIGURES, draw, page, shown
from benchmarks.catalogue.standing_formulas import CLAIMS, formulas, theorem_rows
from bubbleproof.papers.registry import claims
from bubbleproof.papers.theorems.theorem_library import theorems
from bubbleproof.theory.families import families, make_parameters
from bubbleproof.theory.model.measures import measure
from proofs_tests.sized import sized

FOLDER = Path(__file__).parents[3] / "docs" / "catalogue"
REDUCED = ("1f1b", "adapipe")  # with formulas and theorems; with neither


@pytest.mark.parametrize("name", sized(REDUCED, full=tuple(families())))
def test_a_page_is_what_the_command_writes(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text("utf-8") == page(name)


def test_every_family_has_its_page_and_its_line() -> None:
    text = (FOLDER / "index.md").read_text("utf-8")
    listed = re.findall(r"^\| \[`([\w-]+)`\]\(([\w-]+)\.md\)", text, re.MULTILINE)
    assert listed == [(name, name) for name in families()]
    files = {path.stem for path in FOLDER.glob("*.md")}
    assert files == {*families(), "index", "vocabulary"}
    drawn = {path.stem for path in (FOLDER / "pictures").glob("*.svg")}
    assert drawn == {*families(), "vocabulary-1", "vocabulary-2"}


@pytest.mark.parametrize("name", sized(REDUCED, full=tuple(families())))
def test_a_line_of_the_index_is_what_the_command_writes(name: str) -> None:
    line = "| " + " | ".join(map(str, row(name))) + " |"
    assert line in (FOLDER / "index.md").read_text("utf-8").splitlines()


def bars(path: Path) -> dict[str, list[str]]:
    """Of each kind of action (and chunk) its bars: where each begins, in the picture's points."""
    groups = re.findall(r'<g id="(bars-[^"]+)">(.*?)</g>', path.read_text("utf-8"), re.DOTALL)
    return {name: re.findall(r"\bM ([-\d.]+ [-\d.]+)", text) for name, text in groups}


@pytest.mark.parametrize("name", sized(("gpipe",), full=tuple(families())))
def test_a_picture_has_the_bars_that_the_command_draws(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(families()[name], tmp_path)
    made = bars(tmp_path / "pictures" / f"{name}.svg")
    assert made == bars(FOLDER / "pictures" / f"{name}.svg")
    found, _ = shown(families()[name])
    assert sum(map(len, made.values())) >= len(found.schedule)


def test_what_the_formulas_name_is_there() -> None:
    assert CLAIMS.keys() <= {*families(), vocabulary_page.NAME}
    assert {each for names in CLAIMS.values() for each in names} <= claims(None).keys()
    told = {row[0] for name in families() for row in theorem_rows(name)}
    assert told <= set(theorems())
    assert {"1f1b", "zb-h1", "interleaved-starts"} <= told
    of_svpp = ["svpp-largest", "svpp-few-slices", "svpp-frontier"]
    assert [row[0] for row in theorem_rows("svpp")] == of_svpp


def test_a_formula_that_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "field.gpipe.peak"
    claim = claims(None)[name]
    wrong = replace(claim.readings[0], predicted=lambda at: at["m"] + 1)
    false = replace(claim, readings=(wrong,))
    monkeypatch.setattr(standing_formulas, "claims", lambda _: {name: false})
    monkeypatch.setitem(standing_formulas.CLAIMS, "gpipe", (name,))
    with pytest.raises(ValueError, match=r"field\.gpipe\.peak does not stand at p="):
        formulas("gpipe")


def test_both_sides_of_a_formula_are_shown() -> None:
    ((claim, _, sizes), *_) = formulas("gpipe")
    assert claim.id == "field.gpipe.makespan"
    for each in sizes:
        at = dict(word.split("=") for word in each.at.split())
        p, m, forward, backward = (int(at[key]) for key in ("p", "m", "tF", "tB"))
        # GPipe section 2.3: (m + p - 1)(tF + tB)
        assert each.predicted == each.measured == (m + p - 1) * (forward + backward)


def test_what_is_drawn_is_small_and_named() -> None:
    for family in families().values():
        made, words = shown(family)
        assert words.startswith(f"{family.name} p=")
        assert made.pipeline.num_ranks == 4


@pytest.mark.sweep
def test_the_page_of_vocabulary_parallelism_is_what_the_command_writes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert (FOLDER / "vocabulary.md").read_text("utf-8") == vocabulary_page.page()
    vocabulary_page.draw(tmp_path)
    for name in ("vocabulary-1.svg", "vocabulary-2.svg"):
        assert bars(tmp_path / "pictures" / name) == bars(FOLDER / "pictures" / name)


def test_what_a_figure_shows_is_what_is_measured() -> None:
    for name, drawn in FIGURES.items():
        for place, size, ticks, peak in drawn:
            made = families()[name].member(make_parameters(size))
            found = measure(made.problem, made.schedule)
            assert found.peak_activations[0] == peak, (name, place)
            assert ticks in (None, found.makespan), (name, place)


def test_its_gain_by_flops_is_that_of_the_closed_forms() -> None:
    row = vocabulary_page.printed_rows()[3]  # 8 cards, 2048 tokens, 256k words
    (_, flops, _), _ = row.gains()
    # Table 4, over b s h: four layers a stage take 4 (72 * 3072 + 12 * 2048), the head 6 * 256000;
    # 128 passes of the last stage and a ramp of the 7 others; of an eighth of the head instead.
    stage, head = 4 * (72 * 3072 + 12 * 2048), 6 * 256_000
    ended, spread = 128 * (stage + head) + 7 * stage, 128 * (stage + head // 8) + 7 * stage
    assert flops == ended / spread
    # Table 5: MFU of 25.23 per cent, with Vocab-1 of 50.12
    assert (row.told["baseline_mfu"], row.told["vocab_1_mfu"]) == (25.23, 50.12)
