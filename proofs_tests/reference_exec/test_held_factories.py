"""A model of one's own at the door, by the function that makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import bubbleproof as bp
from bubbleproof.reference_exec.models.model_spec import HELD, held_factory, name_of
from bubbleproof.reference_exec.models.own import OwnModel
from examples.model import own_model

pytestmark = pytest.mark.torch
MEMBER = bp.family("1f1b")(p=4, m=4)


def test_a_function_of_a_module_is_named_so_that_others_find_it() -> None:
    assert name_of(own_model.build) == "examples.model.own_model:build"
    assert held_factory("examples.model.own_model:build") is None


def test_a_function_its_name_and_a_closure_train_the_same_model() -> None:
    def inside() -> OwnModel:
        return own_model.build()

    path = str(Path(str(own_model.__file__)))
    reports = [bp.replay(MEMBER, model=each) for each in (own_model.build, f"{path}:build", inside)]
    assert all(report.ok for report in reports)
    assert len({report.loss for report in reports}) == 1
    assert name_of(inside).startswith(HELD)
    assert name_of(inside) == name_of(inside)


def test_a_name_of_another_process_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="put it into a module or a file"):
        held_factory(f"{HELD} (99):inside")


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a function that makes a model, or .*, got int 3"):
        bp.replay(MEMBER, model=3)  # type: ignore[arg-type]  # wrong on purpose
