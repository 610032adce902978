"""Schemas of what commands print with ``--json``: inferred from what the tests see, then kept.

``docs/reference/schemas/output/NAME-VERSION.json`` is JSON Schema (2020-12) of the object that a
command prints; ``verify-many``, ``claims-case``, ``claims-engine``, ``run-deployments`` and
``plan-...`` are the other shapes of ``verify``, ``claims``, ``run`` and ``plan``. Every ``--json``
answer of every command's test is held against its schema. To make them anew, with all that the
tests see:

    BUBBLEPROOF_SAMPLES=/tmp/samples python -m pytest proofs_tests/commands
    python -m proofs_tests.commands.output_schemas /tmp/samples

A key that is required stays so within a version: whoever removes one, or changes its type, writes
the schema of the next version beside the old one, and ``VERSIONS`` names it. New keys may come
within a version.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

Json = Any  # as ``json.loads`` gives it
Schema = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "schemas" / "output"
SAMPLES = "BUBBLEPROOF_SAMPLES"
VERSIONS: dict[str, int] = {}  # of the shapes that are not of version 1
PLANS = {  # what is answered in a plan's place, by a key that it alone has
    "jobs": "plan-jobs",
    "causes": "plan-side-by-side",
    "assumptions": "plan-assumptions",
}
# Tables by names of the user's or of a paper's, and what may be null though no test saw it so.
TABLES = {"params", "counterexample", "causes", "others", "paper"}
_OF_SEARCHES = {
    "value", "gap", "engine_bound", "lower_bound", "best", "bound", "makespan", "peak",
    "certificate", "measured", "proof", "f", "layers", "peak_memory", "winner", "expected", "p95",
    "least_capacity", "microbatches", "step_end", "chosen", "unrestricted",
}  # fmt: skip
_SEARCHES = ("solve", "repair", "run", "run-deployments", "plan", "pareto", "bench")
NULLABLE = {
    "measure": {
        "makespan", "work", "idle_ratio", "idle_over_work", "idle_ticks", "rank_spans", "span_idle",
        "peak_activations", "peak_fraction", "action", "of_action", "of_rank", "link", "bound",
    },
    "measure-layout": {"rank", "ranks", "chunk", "chunks"},
    "diff": {"a", "b"},
    "families": {"idle_ratio", "peak_activations", "example"},
    "models": {"published"},
    "frameworks": {"reads_torch", "costs"},
    "verify": {"at", "measured"},
    "verify-many": {"at", "measured", "name"},
    **dict.fromkeys(_SEARCHES, _OF_SEARCHES),
    "plan-jobs": {"value", "deployment", "best", "cards", "samples", "sequence"},
}  # fmt: skip
ENOUGH = 5  # objects of one place, for what all of them have to be required there
MANY_KEYS = 6  # an object of more keys, none of which is always there, is a table by names
TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def shape_of(words: Sequence[str], value: Json) -> str:
    """The name of the schema of a command line's answer."""
    name = words[0]
    if name == "verify" and "schedules" in value:
        return "verify-many"
    if name == "plan":
        return next((shape for key, shape in PLANS.items() if key in value), name)
    if name == "measure" and "stages" in value:
        return "measure-layout"
    if name == "run" and value.get("objective") == "iteration":
        return "run-deployments"
    if name == "claims" and "engine" in value:
        return "claims-engine"
    return "claims-case" if name == "claims" and "params" in value else name


def schema_of(name: str) -> Schema | None:
    """The schema of that shape; None where there is none."""
    path = FOLDER / f"{name}-{VERSIONS.get(name, 1)}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def seen(words: Sequence[str], out: str) -> None:
    """Hold an answer against its schema, or keep it as a sample where those are collected."""
    value = json.loads(out)
    name = shape_of(words, value)
    if folder := os.environ.get(SAMPLES):
        path = Path(folder) / name / f"{sha256(out.encode()).hexdigest()[:16]}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(out, "utf-8")
        return
    if (schema := schema_of(name)) is not None:
        wrong = list(mismatches(schema, value))
        assert not wrong, f"{name} --json: {wrong[0]}"


def mismatches(schema: Schema, value: Json, at: str = "$") -> Iterable[str]:
    """What of a value is not as its schema says, each with its place."""
    if "type" not in schema:  # anything, as no test saw any
        return
    kinds, kind = schema["type"], TYPES[type(value)]
    allowed = {*([kinds] if isinstance(kinds, str) else kinds)}
    if "number" in allowed:
        allowed.add("integer")
    if kind not in allowed:
        yield f"{at} is {kind}, not {' or '.join(sorted(allowed))}"
    elif kind == "array":
        for number, item in enumerate(value):
            yield from mismatches(schema["items"], item, f"{at}[{number}]")
    elif kind == "object":
        yield from (f"{at} has no key {k!r}" for k in schema.get("required", ()) if k not in value)
        others = schema.get("additionalProperties", {})
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, others)
            yield from mismatches(inner, item, f"{at}.{key}")


def inferred(values: Sequence[Json], name: str = "") -> Schema:
    """The narrowest schema of these values, which stand under a name; objects are open."""
    kinds = {TYPES[type(value)] for value in values}
    if "number" in kinds:
        kinds.discard("integer")
    if kinds <= {"null"}:  # nothing is known of what it is where it is something
        return {}
    found: Schema = {"type": min(kinds) if len(kinds) == 1 else sorted(kinds)}
    items = [item for value in values if isinstance(value, list) for item in value]
    if "array" in kinds:
        found["items"] = inferred(items, f"each of {name}") if items else {}
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        keys = list(dict.fromkeys(key for each in objects for key in each))
        required = [key for key in keys if all(key in each for each in objects)]
        if name in TABLES or (not required and len(keys) > MANY_KEYS):
            inner = [value for each in objects for value in each.values()]
            found["additionalProperties"] = inferred(inner, f"each of {name}")
            return found
        found["properties"] = {
            key: inferred([each[key] for each in objects if key in each], key) for key in keys
        }
        found["required"] = required if not name or len(objects) >= ENOUGH else []
    return found


def with_nulls(schema: Schema, names: set[str], name: str = "") -> Schema:
    """The schema in which what stands under one of the names may be null as well."""
    found = dict(schema)
    if name in names and "type" in found:
        kinds = [found["type"]] if isinstance(found["type"], str) else found["type"]
        found["type"] = sorted({*kinds, "null"})
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = with_nulls(found[key], names)
    if "properties" in found:
        found["properties"] = {
            key: with_nulls(inner, names, key) for key, inner in found["properties"].items()
        }
    return found


def main() -> None:
    """Write the schemas of the samples in a folder."""
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        values = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
        version = VERSIONS.get(folder.name, 1)
        name = f"{folder.name}-{version}"
        head = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"what bubbleproof {folder.name} prints with --json, version {version}",
        }
        body = with_nulls(inferred(values), NULLABLE.get(folder.name, set()))
        text = json.dumps({**head, **body}, indent=2)
        (FOLDER / f"{name}.json").write_text(f"{text}\n", "utf-8")
        sys.stdout.write(f"{name}: {len(values)} samples\n")


if __name__ == "__main__":
    main()
