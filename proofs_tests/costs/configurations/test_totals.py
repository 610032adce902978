"""Numbers of parameters of configurations, read by transformers and without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bubbleproof.costs import parameters
from bubbleproof.costs.configurations.config_file import read_configuration
from proofs_tests.costs.configurations.published import FOLDER, TOTALS, configuration

NAMES = sorted(TOTALS)


def test_every_file_has_its_total() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == NAMES
    assert len(NAMES) >= 48


@pytest.mark.parametrize("name", NAMES)
def test_total_and_active_parameters(name: str) -> None:
    found = read_configuration(configuration(name), with_library=False)
    counted = parameters(found.model)
    assert (counted.total, counted.active) == TOTALS[name]


@pytest.mark.parametrize("name", NAMES)
def test_transformers_reads_the_same_model(name: str) -> None:
    pytest.importorskip("transformers")
    own = read_configuration(configuration(name), with_library=False)
    read = read_configuration(configuration(name), with_library=True)
    assert read.reader.startswith("transformers")
    assert own.reader == "own"
    assert (read.model, read.sequence) == (own.model, own.sequence)
    assert read.notes == own.notes


@pytest.mark.parametrize("name", NAMES)
def test_transformers_builds_as_many(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    kind = content.pop("model_type")
    config = transformers.CONFIG_MAPPING[kind](**content)
    made = getattr(transformers, (content.get("architectures") or ["AutoModelForCausalLM"])[0])
    with torch.device("meta"):
        model = made(config)
    assert sum(each.numel() for each in model.parameters()) == TOTALS[name][0]
