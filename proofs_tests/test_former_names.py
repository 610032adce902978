"""Names that changed: the old one is taken with a warning, wherever it is given."""

from __future__ import annotations

from typing import Annotated

import pytest
from typer.testing import CliRunner

import bubbleproof as bp
from bubbleproof.arguments import door_function
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.validation import Layout, validate
from bubbleproof.former_names import Former, FormerNameWarning


class Wheel(Layout):
    """A table with a key that was called otherwise."""

    size: Annotated[int, Former("radius")]
    spokes: int = 0


class Cart(Layout):
    """A list of such tables."""

    wheels: list[Wheel]


def test_a_key_of_a_file_is_taken_by_its_former_name() -> None:
    given = {"wheels": [{"size": 1}, {"radius": 2, "spokes": 3}]}
    with pytest.warns(FormerNameWarning, match="^radius is called size now; the old name goes"):
        found = validate(Cart, given)
    assert found == validate(Cart, {"wheels": [{"size": 1}, {"size": 2, "spokes": 3}]})
    assert given["wheels"][1] == {"radius": 2, "spokes": 3}  # what is given stays as it is
    with pytest.raises(UnusableInput, match=r"wheels\[0\].*radius is the old name of size"):
        validate(Cart, {"wheels": [{"size": 1, "radius": 2}]})
    with pytest.raises(UnusableInput, match="'hub'"):
        validate(Cart, {"wheels": [{"size": 1, "hub": 2}]})


def test_an_argument_at_the_door_is_taken_by_its_former_name() -> None:
    @door_function
    def turned(*, angle: Annotated[int, Former("degrees")] = 0, speed: int = 1) -> tuple[int, int]:
        return angle, speed

    with pytest.warns(FormerNameWarning, match="degrees is called angle now") as warned:
        assert turned(degrees=90, speed=2) == (90, 2)  # type: ignore[call-arg]  # the old name
    assert warned[0].filename == __file__
    with pytest.raises(bp.Error, match="degrees is the old name of angle: give angle alone"):
        turned(degrees=90, angle=2)  # type: ignore[call-arg]  # both names
    with pytest.raises(TypeError, match="no argument 'angel'"):
        turned(angel=2)  # type: ignore[call-arg]  # no name of it


def test_an_option_is_taken_by_its_former_name() -> None:
    """Of the command itself, whose warning is a line on standard error, ``test_extras`` says so."""
    with pytest.raises(FormerNameWarning, match=r"^--cluster is called --scheduler now"):
        bp_command("pareto", "x.toml", "--cluster", "127.0.0.1:1")


def bp_command(*words: str) -> None:
    from bubbleproof.cli import app

    CliRunner().invoke(app, words, catch_exceptions=False)
