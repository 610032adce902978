"""A model on a cluster that a program tells, as a file: it is read as the model that it was."""

from __future__ import annotations

import tomllib

import pytest

import bubbleproof as bp
from bubbleproof.costs import Transformer, known_models
from bubbleproof.formats.clusters.job_text import job_text
from bubbleproof.formats.clusters.model_toml import ModelLayout, model_of
from bubbleproof.formats.layouts.cluster_layout import ClusterLayout
from bubbleproof.formats.validation import validate
from proofs_tests.costs.configurations.published import TOTALS

CLUSTER = ClusterLayout(card="h100", cards=2)


def _plain(model: Transformer) -> tuple[object, ...]:
    """A model but for the names of its kinds."""
    return model.with_changes(runs=()), model.layer_runs


@pytest.mark.parametrize("name", sorted(set(TOTALS) & set(known_models())))
def test_a_shape_is_read_as_it_was(name: str) -> None:
    model = known_models()[name].model
    text = job_text(model, CLUSTER, 8, 2048)
    read, _ = model_of(validate(ModelLayout, tomllib.loads(text)["model"]))
    assert _plain(read) == _plain(model)


def test_layers_of_kinds_are_planned_from_a_shape_as_by_name() -> None:
    name = "gemma-3-1b"
    small = known_models()[name].model
    at = {"card": "h100", "cards": 1, "samples": 2, "sequence": 512, "work": 1.0}
    found, named = (bp.plan(model=model, **at) for model in (small, name))  # type: ignore[arg-type]  # by name
    assert repr(found) == repr(named)


def test_extras_stand_in_place_of_features() -> None:
    text = job_text(known_models()["gemma-3-1b"].model, CLUSTER, 8, 2048)
    table = {**tomllib.loads(text)["model"], "sinks": True}
    with pytest.raises(ValueError, match="extras stand in place of sinks; tell one of them"):
        model_of(validate(ModelLayout, table))
