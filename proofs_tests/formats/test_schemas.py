"""The committed schemas are those of the code, and `import bubbleproof` stays light."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from functools import reduce
from itertools import pairwise
from operator import or_
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from bubbleproof.formats.certificate_layouts import LAYOUTS, CasesLayout
from bubbleproof.formats.layouts.cluster_layout import ClusterFileLayout
from bubbleproof.formats.layouts.problem_file_layout import problem_layout
from bubbleproof.formats.schedule_json import VERSIONS
from bubbleproof.formats.validation import Layout
from proofs_tests.report.replay_layout import ReplayLayout

SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schemas"
CERTIFICATE: Any = Annotated[
    reduce(or_, [*LAYOUTS.values(), CasesLayout]), Field(discriminator="kind")
]


class DescribedSchema(GenerateJsonSchema):
    """The schema of layouts, in which each field is described by the text below it.

    Pydantic's ``use_attribute_docstrings`` reads the source whenever a layout is made, which takes
    longer than reading a small file.
    """

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """That of one layout."""
        made, layout = super().model_schema(schema), schema["cls"]
        for each in layout.__mro__[: layout.__mro__.index(Layout)]:
            for name, text in _texts_below(each).items():
                made["properties"][name].setdefault("description", text)
        return made


def _texts_below(layout: type) -> dict[str, str]:
    """What stands below the fields of a class in its source, where it has one."""
    try:
        [made] = ast.parse(dedent(inspect.getsource(layout))).body
    except OSError:
        return {}
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(made.body if isinstance(made, ast.ClassDef) else ())
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("schedule-1", VERSIONS[1]),
        ("schedule-2", VERSIONS[2]),
        ("problem-1", problem_layout()),
        ("certificate-1", CERTIFICATE),
        ("replay-1", ReplayLayout),
        ("cluster-1", ClusterFileLayout),
    ],
)
def test_schema_is_up_to_date(name: str, layout: Any) -> None:
    path, dialect = SCHEMAS / f"{name}.json", "https://json-schema.org/draft/2020-12/schema"
    schema = {
        "$schema": dialect,
        **TypeAdapter(layout).json_schema(schema_generator=DescribedSchema),
    }
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
