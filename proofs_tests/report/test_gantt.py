"""The SVG's geometry against the schedule worked out by hand, and the file itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

from bubbleproof.report.gantt import draw
from bubbleproof.theory.families import member
from proofs_tests.report.small import BARS, GAPS, sliced_bytes, small
from proofs_tests.sized import sized

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}"
Box = tuple[float, float, float, float]


def _box(path: str) -> Box:
    numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", path)]
    xs, ys = numbers[::2], numbers[1::2]
    return min(xs), min(ys), max(xs), max(ys)


class Drawing:
    """An SVG read back: boxes in data units, by the frame of the chart's background."""

    def __init__(self, path: Path, *, ticks: int, rows: int) -> None:
        self.text = path.read_text()
        self.groups = {g.get("id"): g for g in ElementTree.fromstring(self.text).iter(f"{SVG}g")}
        self.left, self.top, right, bottom = self.boxes("chart")[0]
        self.per_tick, self.per_row = (right - self.left) / ticks, (bottom - self.top) / rows

    def boxes(self, group: str) -> list[Box]:
        """The rectangles of a group: its paths, and the uses of those that only have a name."""
        paths = {p.get("id"): _box(p.get("d", "")) for p in self.groups[group].iter(f"{SVG}path")}
        drawn = [
            _box(p.get("d", "")) for p in self.groups[group].iter(f"{SVG}path") if not p.get("id")
        ]
        for use in self.groups[group].iter(f"{SVG}use"):
            left, top, right, bottom = paths[use.get(f"{XLINK}href", "").removeprefix("#")]
            x, y = float(use.get("x", "0")), float(use.get("y", "0"))
            drawn.append((left + x, top + y, right + x, bottom + y))
        return drawn

    def bars(self, group: str) -> set[tuple[int, float, float]]:
        """(row, start, end) of a group's rectangles, in rows and ticks rounded to 1/1000."""
        found = set()
        for left, top, right, bottom in self.boxes(group):
            row = ((top + bottom) / 2 - self.top) / self.per_row - 0.5
            assert row == pytest.approx(round(row), abs=1e-3)  # centred on its row
            found.add((round(row), self._ticks(left), self._ticks(right)))
        return found

    def _ticks(self, x: float) -> float:
        return round((x - self.left) / self.per_tick, 3)

    def numbers(self) -> list[tuple[str, int, float]]:
        """(text, row, tick) of the numbers inside bars."""
        found = []
        for name, group in self.groups.items():
            if name is not None and name.startswith("number-"):
                (text,) = group.iter(f"{SVG}text")
                x, y = float(text.get("x", "nan")), float(text.get("y", "nan"))
                found.append((text.text or "", int((y - self.top) / self.per_row), self._ticks(x)))
        return found


def texts(svg: str) -> list[str]:
    return [t.text or "" for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_bars_lie_where_the_schedule_says(tmp_path: Path) -> None:
    path = draw(small().problem, small().schedule, tmp_path / "a.svg", title="small")
    drawing = Drawing(path, ticks=9, rows=2)
    assert drawing.bars("bars-F-0") == BARS["F"]
    assert drawing.bars("bars-B-0") == BARS["B"]
    assert drawing.bars("idle") == GAPS


def test_each_bar_holds_its_microbatch_in_its_middle(tmp_path: Path) -> None:
    path = draw(small().problem, small().schedule, tmp_path / "a.svg")
    # middles of BARS: microbatch 0 runs first on each rank, forward and backward
    assert sorted(Drawing(path, ticks=9, rows=2).numbers()) == [
        ("0", 0, 0.5),
        ("0", 0, 5.0),
        ("0", 1, 1.5),
        ("0", 1, 3.0),
        ("1", 0, 1.5),
        ("1", 0, 8.0),
        ("1", 1, 4.5),
        ("1", 1, 6.0),
    ]


def test_the_head_states_makespan_and_bubble_and_the_legend_the_kinds(tmp_path: Path) -> None:
    svg = draw(small().problem, small().schedule, tmp_path / "a.svg", title="T").read_text()
    assert {"T", "makespan 9 ticks,  idle_ratio 1/3 (33.3 %)", "time (ticks)"} <= set(texts(svg))
    assert {"F forward", "B full backward", "idle"} <= set(texts(svg))
    assert "W weight gradient" not in texts(svg)


def test_memory_panels_name_peak_capacity_and_unit(tmp_path: Path) -> None:
    capped = small().problem.with_capacity(1)
    found = texts(draw(capped, small().schedule, tmp_path / "a.svg").read_text())
    assert {"peak 2 activations", "peak 1 activation", "Memory (activations)"} <= set(found)
    assert found.count("cap 1") == 2


def test_bytes_are_shown_in_gib_and_slices_as_j_k(tmp_path: Path) -> None:
    path = draw(*sliced_bytes(), tmp_path / "a.svg")
    found = set(texts(path.read_text()))
    assert {"peak 3 GiB", "cap 3", "Memory (GiB)", "0.0", "0.1"} <= found


def test_the_peak_lies_on_the_curve_and_here_on_the_capacity(tmp_path: Path) -> None:
    drawing = Drawing(draw(*sliced_bytes(), tmp_path / "a.svg"), ticks=6, rows=1)
    (_, top, _, bottom), *_ = drawing.boxes("memory-0")
    (_, cap, _, _), *_ = drawing.boxes("capacity-0")
    (left, high, right, low), *_ = drawing.boxes("peak-0")
    assert (high + low) / 2 == pytest.approx(top, abs=0.01) == pytest.approx(cap, abs=0.01)
    # the peak comes at tick 1 of 6
    across = ((left + right) / 2 - drawing.left) / drawing.per_tick
    assert across == pytest.approx(1, abs=0.01)
    # 3 GiB stand as high above zero as the panel's height allows: 3 / (3 x 1.12) of 0.38 inches
    assert bottom - top == pytest.approx(0.38 * 72 / 1.12, abs=0.01)


def test_narrow_bars_stay_empty(tmp_path: Path) -> None:
    long = member("1f1b", p=2, m=400)  # 1203 ticks over about 8 inches: half a point per tick
    path = draw(long.problem, long.schedule, tmp_path / "a.svg")
    assert Drawing(path, ticks=1203, rows=2).numbers() == []


def test_a_large_schedule_is_drawn_with_its_note(tmp_path: Path) -> None:
    large = member("1f1b", p=4, m=3000)
    found = texts(draw(large.problem, large.schedule, tmp_path / "a.svg").read_text())
    assert any(text.startswith("24,000 actions are too many") for text in found)


def test_bytes_are_reproducible_and_undated(tmp_path: Path) -> None:
    first = draw(small().problem, small().schedule, tmp_path / "a.svg").read_bytes()
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"lines.linewidth": 7, "font.size": 30}):
        again = draw(small().problem, small().schedule, tmp_path / "b.svg").read_bytes()
    assert first == again
    assert b"dc:date" not in first
    assert dict(matplotlib.rcParams) == before


def test_a_window_draws_only_its_part(tmp_path: Path) -> None:
    path = draw(small().problem, small().schedule, tmp_path / "a.svg", window=(4, 6))
    drawing = Drawing(path, ticks=2, rows=2)
    assert drawing.bars("bars-F-0") == {(1, 0.0, 1.0)}  # 1F1 4-5, counted from the window's start
    assert any("3 of 8 bars" in text for text in texts(drawing.text))


def test_png_has_the_size_of_a_page(tmp_path: Path) -> None:
    data = draw(small().problem, small().schedule, tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 2000  # 10 inches at 200 dots each


def test_titles_are_text(tmp_path: Path) -> None:
    title = "<script>$x_1$</script>" + "y" * 300
    found = texts(
        draw(small().problem, small().schedule, tmp_path / "a.svg", title=title).read_text()
    )
    assert any(t.startswith("<script>$x_1$</script>yyy") and t.endswith("\u2026") for t in found)


@pytest.mark.sweep
@pytest.mark.parametrize("width", sized([85], full=[85, 180]))
def test_a_pdf_has_its_width_and_its_letters(tmp_path: Path, width: int) -> None:
    drawn = member("1f1b", p=4, m=8)
    path = draw(drawn.problem, drawn.schedule, tmp_path / "a.pdf", width_mm=width)
    content = path.read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", content)
    assert box is not None
    assert float(box[1]) == pytest.approx(width / 25.4 * 72, abs=0.01)  # 72 points an inch
    assert b"/FontFile2" in content  # TrueType letters are in the file
    again = draw(drawn.problem, drawn.schedule, tmp_path / "b.pdf", width_mm=width)
    assert again.read_bytes() == content


@pytest.mark.parametrize("width", [59, 601, float("nan")])
def test_a_width_that_no_picture_has_is_refused(tmp_path: Path, width: float) -> None:
    with pytest.raises(ValueError, match="width must be 60 to 600 mm"):
        draw(small().problem, small().schedule, tmp_path / "a.svg", width_mm=width)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a picture ends in \.svg, \.pdf or \.png, got '.*gif'"):
        draw(small().problem, small().schedule, tmp_path / "a.gif")


def test_a_missing_library_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(ValueError, match="matplotlib") as error:
        draw(small().problem, small().schedule, tmp_path / "a.svg")
    assert str(error.value) == (
        "this picture needs matplotlib, which is not installed; "
        'run: pip install "bubbleproof[report]"'
    )
    assert list(tmp_path.iterdir()) == []


def test_importing_the_room_loads_no_drawing_library() -> None:
    modules = "report, report.gantt, report.page, report.text, report.timeline"
    code = f"import sys; from bubbleproof import {modules.split(',')[0]}; " + "; ".join(
        f"import bubbleproof.{name.strip()}" for name in modules.split(",")
    )
    code += "; print(sorted({'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
