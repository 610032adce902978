"""Families of users and of installed packages: known everywhere, or refused."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint

import pytest

import bubbleproof as bp
from bubbleproof.cli import main
from bubbleproof.theory.families import Family, registration
from bubbleproof.theory.families.one_f_one_b import OneForwardOneBackward


class Mine(OneForwardOneBackward):
    """1F1B under a name of its own."""

    name = "my-own"
    title = "mine"


@pytest.fixture
def no_own_families(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "_own", {})


@pytest.mark.usefixtures("no_own_families")
def test_a_users_family_is_known_everywhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bp.register(Mine()).name == "my-own"
    assert bp.families()["my-own"].title == "mine"
    monkeypatch.setattr(sys, "argv", ["bubbleproof", "measure", "my-own", "p=2", "m=3", "--json"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert (stopped.value.code, json.loads(capsys.readouterr().out)["makespan"]) == (0, 12)


@pytest.mark.usefixtures("no_own_families")
def test_a_family_that_cannot_be_one_is_refused() -> None:
    class Taken(Mine):
        name = "gpipe"

    class Shouting(Mine):
        name = "My Own"

    bp.register(Taken())
    with pytest.raises(ValueError, match="the name 'gpipe' is taken"):
        bp.families()
    with pytest.raises(ValueError, match="a-z, 0-9 and hyphens, got 'My Own'"):
        bp.register(Shouting())


def test_installed_packages_announce_families(monkeypatch: pytest.MonkeyPatch) -> None:
    group = registration.GROUP
    points = {
        "good": EntryPoint("mine", "proofs_tests.test_own_families:Mine", group),
        "absent": EntryPoint("gone", "proofs_tests.test_own_families:Gone", group),
        "wrong": EntryPoint("wrong", "proofs_tests.test_door:SMALL", group),
    }
    announced = registration._announced.__wrapped__

    def use(name: str) -> None:
        monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [points[name]])

    use("good")
    assert isinstance(announced()["my-own"], Family)
    use("absent")
    with pytest.raises(ValueError, match=r"entry point gone = .* does not load: AttributeError"):
        announced()
    use("wrong")
    with pytest.raises(TypeError, match="expected an instance of"):
        announced()
