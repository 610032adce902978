"""Walks: which functions handle a value, on functions whose walk is known; the page is whole."""

from __future__ import annotations

from pathlib import Path

from proofs_tests.walk_followed import Walk, follow, is_number, is_of
from proofs_tests.walks import ROOT, THINGS, picture, room_of
from proofs_tests.walks import WalkedFiles as Walked

PAGE = ROOT / "docs" / "measured" / "walks.md"
TEXT = """
def reader():
    number = 7 * 6
    return passed(number)

def passed(number):
    return between([number])

def between(hidden):
    kept = {"a": hidden.pop()}
    hidden = None
    del hidden
    return last(kept.pop("a"))

def last(number):
    return number + 1

def stranger():
    return 41
"""


def _walk(tmp_path: Path) -> Walk:
    file = tmp_path / "theory" / "toy.py"
    names: dict[str, object] = {}
    exec(compile(TEXT, str(file), "exec"), names)
    walk = Walk(is_number(42), tmp_path)
    for name in ("reader", "stranger"):
        run = names[name]
        assert callable(run)
        follow(walk, run)
    return walk


def test_a_function_handles_what_it_has_at_its_end(tmp_path: Path) -> None:
    """``between`` emptied its variables before its end, ``stranger`` never had the number."""
    names = [name for _, name in _walk(tmp_path).functions]
    assert names == ["last", "passed", "reader"]


def test_a_value_comes_from_the_nearest_caller_that_handles_it(tmp_path: Path) -> None:
    steps = [(giver, taker) for (_, giver), (_, taker) in _walk(tmp_path).steps]
    assert steps == [("passed", "last"), ("reader", "passed")]


def test_containers_one_level_deep_and_objects_of_a_module() -> None:
    is_wanted = is_number(42)
    assert is_wanted({"a": 42})
    assert is_wanted((1, 42.0))
    assert not is_wanted([[42]])
    assert not is_wanted("42")
    assert is_of(r"^pathlib$")(Path("a"))
    assert not is_of(r"^pathlib$")(Path)  # a class is no object of it


def test_the_picture_has_every_file_of_both_walks() -> None:
    walk = Walked(functions={"theory/a.py": 2, "verify/b.py": 1}, steps={})
    other = Walked(functions={"door.py": 1}, steps={("door.py", "door.py"): 1})
    drawn = picture(THINGS[0], walk, other, "c0ffee")
    assert all(f"{name}</text>" in drawn for name in ("a.py  2", "b.py  1", "door.py  1"))
    assert room_of("door.py") == "door"


def test_the_page_shows_a_picture_of_each_thing() -> None:
    text = PAGE.read_text("utf-8")
    for thing in THINGS:
        assert f"| {thing.name} | {thing.told} |" in text
        assert (PAGE.parent / "pictures" / f"walk-{thing.name}.svg").is_file()
