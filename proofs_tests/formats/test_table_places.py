"""Where the actions of a table stand: rows, columns and characters counted by hand."""

from __future__ import annotations

from pathlib import Path

from bubbleproof.formats.table_places import TablePlace, place_at, table_places

# Row 1 has an idle second cell and a blank before 0B0; row 2 a collective in its first cell.
TABLE = "0F0,, 0B0\n1UNSHARD,1F0,1B0\n"


def test_each_action_is_found_at_its_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    found = table_places(path)
    assert found["0F0"] == TablePlace(row=1, column=1, first=1, last=4)
    assert found["0B0"] == TablePlace(row=1, column=3, first=7, last=10)
    assert found["1UNSHARD"] == TablePlace(row=2, column=1, first=1, last=9)
    assert found["1B0"] == TablePlace(row=2, column=3, first=14, last=17)
    for place in found.values():  # the characters are those of the file
        text = TABLE.splitlines()[place.row - 1][place.first - 1 : place.last - 1]
        assert found[text] == place


def test_an_old_table_is_found_by_its_new_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("0F0,0BW0\n")
    assert table_places(path, "old")["0B0"] == TablePlace(row=1, column=2, first=5, last=9)


def test_the_first_of_two_cells_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("0F0,0F0,0B0\n")
    assert table_places(path)["0F0"].column == 1


def test_a_cell_that_no_reader_takes_has_a_place_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("0F0,0F0x\n")
    assert place_at(path, 1, 2) == TablePlace(row=1, column=2, first=5, last=9)
    assert place_at(path, 1, 3) is None
    assert place_at(path, 2, 1) is None
