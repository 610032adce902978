"""The committed schemas are those of the code, and `import bubbleproof` stays light."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bubbleproof.formats import (
    certificate_schema,
    problem_schema,
    replay_schema,
    schedule_schema,
)
from bubbleproof.formats.layouts.cluster_layout import cluster_schema

SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schemas"


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("schedule-1", schedule_schema(1)),
        ("schedule-2", schedule_schema()),
        ("problem-1", problem_schema()),
        ("certificate-1", certificate_schema()),
        ("replay-1", replay_schema()),
        ("cluster-1", cluster_schema()),
    ],
)
def test_schema_is_up_to_date(name: str, schema: dict[str, object]) -> None:
    path = SCHEMAS / f"{name}.json"
    wanted = json.dumps(schema, indent=2) + "\n"
    assert path.read_text() == wanted, f"write json.dumps(schema, indent=2) to {path.name}"


def test_formats_load_neither_torch_nor_a_solver() -> None:
    code = "import sys; from bubbleproof.formats import *; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(out.stdout.split())
    assert "bubbleproof.formats.schedule_json" in loaded
    assert not loaded & {"torch", "ortools", "pulp", "z3", "bubbleproof.solvers"}


def test_import_of_the_package_loads_no_room() -> None:
    code = "import bubbleproof, sys; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(out.stdout.split()) & {"pydantic", "numpy", "bubbleproof.formats"}
