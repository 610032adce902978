"""The schemas of ``--json``: they are JSON Schema and say where an answer departs from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs_tests.commands.output_schemas import (
    FOLDER,
    VERSIONS,
    inferred,
    mismatches,
    schema_of,
    seen,
    with_nulls,
)

KNOWN = {"null", "boolean", "integer", "number", "string", "array", "object"}
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json-output.md"


def parts(schema: dict[str, object]) -> list[dict[str, object]]:
    """A schema and all within it."""
    inner = [schema[key] for key in ("items", "additionalProperties") if key in schema]
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    found = [schema]
    for each in (*inner, *properties.values()):
        assert isinstance(each, dict)
        found += parts(each)
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_schema_is_well_formed_and_named_by_its_version(path: Path) -> None:
    schema = json.loads(path.read_text("utf-8"))
    name, _, version = path.stem.rpartition("-")
    assert schema["title"] == f"what bubbleproof {name} prints with --json, version {version}"
    assert int(version) <= VERSIONS.get(name, 1)
    for part in parts(schema):
        kinds = part.get("type", [])
        assert {*([kinds] if isinstance(kinds, str) else kinds)} <= KNOWN  # type: ignore[misc]  # a list
        required, properties = part.get("required", []), part.get("properties", {})
        assert set(required) <= set(properties)  # type: ignore[call-overload]  # two of JSON
    assert f"output/{path.name})" in PAGE.read_text("utf-8")


SAMPLES = [{"a": 1, "b": ["x"], "c": None}, {"a": 2.5, "b": [], "d": {"e": True}, "c": "z"}]


def test_a_schema_takes_what_it_was_made_of_and_nothing_that_lacks_a_key() -> None:
    schema = inferred(SAMPLES)
    assert [list(mismatches(schema, each)) for each in SAMPLES] == [[], []]
    assert schema["required"] == ["a", "b", "c"]
    assert list(mismatches(schema, {"a": 1, "b": []})) == ["$ has no key 'c'"]
    assert list(mismatches(schema, {**SAMPLES[0], "a": "1"})) == [
        "$.a is string, not integer or number"
    ]
    assert list(mismatches(schema, {**SAMPLES[0], "b": [3]})) == ["$.b[0] is integer, not string"]
    assert list(mismatches(schema, {**SAMPLES[0], "new": 3})) == []  # a key may be added
    assert list(mismatches(schema, [])) == ["$ is array, not object"]


def test_what_may_be_null_is_said_by_name() -> None:
    schema = with_nulls(inferred([{"a": {"b": 1}}]), {"b"})
    assert list(mismatches(schema, {"a": {"b": None}})) == []
    assert list(mismatches(schema, {"a": None})) == ["$.a is null, not object"]


def test_an_answer_that_departs_fails_its_own_test() -> None:
    assert schema_of("measure") is not None
    with pytest.raises(AssertionError, match=r"measure --json: \$ has no key 'family'"):
        seen(["measure", "--json"], "{}")
