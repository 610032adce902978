"""Who may import whom (docs/guide/design.md §5), read from the syntax tree of every file."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from proofs_tests import structure
from proofs_tests.structure import BESIDE, PACKAGE, ROOT, WINGS

HEAVY = ("torch", "ortools", "z3", "cvc5", "pulp", "highspy", "pysat", "matplotlib")

# Each room may import itself and these.
MAY_IMPORT: dict[str, set[str]] = {
    "theory": {"facts"},
    # Papers: claims may rest on an optimum, an audit is spread over workers, planners are compared.
    "papers": {
        "theory", "verify", "solvers", "parallel", "faults", "costs", "planners", "suggestions",
        "commands", "formats", "report", "version", "platforms", "arguments", "door_calls",
        "door_given", "facts",
    },
    "verify": {"theory"},
    "platforms": set(),
    "parallel": {"platforms"},
    "faults": {"error_base"},
    "facts": set(),
    "declared": set(),
    "error_base": set(),
    "frameworks": {"theory"},
    "engine_process": {"platforms"},
    "solvers": {
        "theory", "verify", "parallel", "platforms", "faults", "engine_process", "facts",
        "declared",
    },
    "costs": {"theory", "facts"},
    "planners": {
        "theory", "verify", "solvers", "parallel", "costs", "formats", "error_base", "frameworks",
        "facts", "report",
    },
    "reference_exec": {"theory", "verify", "platforms", "facts", "error_base"},
    "wings": {"error_base"},  # loads by entry points what it does not name
    "former_names": set(),
    "formats": {
        "theory", "verify", "solvers", "costs", "wings", "facts", "error_base",
        "parallel", "platforms", "frameworks", "former_names",
    },
    "report": {
        "theory", "verify", "solvers", "reference_exec", "formats", "facts", "torch_limits",
        "engine_process",
    },
    "hand_over": {"theory", "costs", "formats", "facts", "torch_limits", "frameworks"},
    "traces": {"theory", "verify", "formats", "report", "facts"},
    "commands": {
        "theory", "verify", "solvers", "planners", "reference_exec", "formats", "report",
        "parallel", "platforms", "faults", "costs", "hand_over", "traces", "version", "suggestions",
        "engine_process", "facts", "wings", "torch_limits", "frameworks", "declared",
        "former_names",
    },
    "version": set(),
    "reference_exec.__main__": {"__main__"},  # the command as torchrun starts it
    "testing": {
        "theory", "verify", "reference_exec", "formats", "arguments", "door_given",
    },
    "suggestions": {"theory"},
    "arguments": {"suggestions", "theory", "error_base", "faults", "declared", "former_names"},
    "door": {
        "arguments", "theory", "verify", "reference_exec", "report", "door_judge", "door_given",
        "door_types",
    },
    "door_classes": {"error_base", "faults", "suggestions", "formats"},
    "door_given": {"arguments", "theory", "formats", "faults"},
    "door_judge": {
        "arguments", "theory", "verify", "planners", "formats",
    },
    "door_search": {
        "arguments", "theory", "solvers", "formats", "report", "door_given", "door_types",
    },
    "door_plans": {"arguments", "theory", "costs", "planners", "formats", "faults"},
    "door_files": {
        "arguments", "theory", "costs", "formats", "door_judge", "door_given", "door_types",
        "faults",
    },
    "door_runs": {
        "arguments", "formats", "hand_over", "report", "traces", "door", "door_judge",
        "door_given", "door_types",
    },
    "door_types": {
        "arguments", "theory", "verify", "solvers", "planners", "formats", "reference_exec",
        "door_judge",
    },
    "torch_limits": set(),
    "__init__": {
        "door", "door_files", "door_plans", "door_runs", "door_search", "theory", "report",
        "verify", "costs", "formats", "reference_exec", "error_base",
        "version", "suggestions", "testing", "wings", "former_names", "door_classes",
    },
    "cli": {"commands", "formats", "reference_exec", "solvers", "version"},
    "__main__": {"cli", "version"},
}  # fmt: skip


def room_of(path: Path) -> str:
    """The room of a file of the package; files at its top are rooms by their own name."""
    if within(path).parts == ("reference_exec", "__main__.py"):
        return "reference_exec.__main__"
    first = within(path).parts[0]
    return first.removesuffix(".py")


def imported_modules(source: str, module: str) -> set[str]:
    """The absolute names of all modules a file imports, wherever in it."""
    found: set[str] = set()
    package = module.split(".")[:-1]
    for node in structure.statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


# The parts of the executor; each may import those before it.
EXECUTOR = (
    "bits",
    "broken",
    "flop_count",
    "ledger",
    "births",
    "saved",
    "models",
    "plans",
    "runtime",
    "evidence",
    "drivers",
    "replaying",
    "pytorch",
)


def files() -> list[Path]:
    return list(structure.files().values())


def within(path: Path) -> Path:
    """A file's place in the package, of which some rooms stand beside its folder."""
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT)


def module_of(path: Path) -> str:
    return ".".join(("bubbleproof", *within(path).with_suffix("").parts))


def file_of(module: str) -> Path | None:
    """The file of a module of the package; None for what is none."""
    parts = module.split(".")
    return structure.modules().get(".".join(parts[1:])) if parts[0] == "bubbleproof" else None


def forbidden(path: Path, source: str) -> list[str]:
    """The imports of a file that break the directions, or call a room by a second name."""
    room = room_of(path)
    allowed = MAY_IMPORT[room] | {room}
    wrong = []
    for name in sorted(imported_modules(source, module_of(path))):
        parts = name.split(".")
        if parts[0] in BESIDE:
            wrong.append(f"{name} is bubbleproof.{name}")
        if parts[0] == "proofs_tests":
            wrong.append(f"{name} is a test")
        if parts[0] == "bubbleproof" and len(parts) > 1 and parts[1] not in allowed:
            wrong.append(f"{room} must not import {name}")
        if room == "verify" and name.startswith("bubbleproof.theory.families"):
            wrong.append(f"verify must not reach schedule generators: {name}")
    return wrong


@pytest.mark.parametrize("room", sorted({within(path).parts[0] for path in files()}))
def test_imports_run_one_way(room: str) -> None:
    paths = [path for path in files() if within(path).parts[0] == room]
    found = {str(path): forbidden(path, path.read_text(encoding="utf-8")) for path in paths}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("theory/x.py", "from bubbleproof.verify import check"),
        ("theory/families/x.py", "import bubbleproof.solvers.result"),
        ("theory/families/x.py", "from bubbleproof.papers.claims import claims"),
        ("papers/claims/x.py", "from bubbleproof.reference_exec import replay"),
        ("cli.py", "from bubbleproof.papers.commands.claims_options import ClaimsRequest"),
        ("commands/x.py", "if TYPE_CHECKING:\n    import bubbleproof.papers.claims"),
        ("solvers/x.py", "from bubbleproof.papers.claims.any_order import makespan_of_any_order"),
        ("verify/x.py", "from bubbleproof.solvers import result"),
        ("verify/x.py", "from bubbleproof.theory import families"),
        ("verify/x.py", "from bubbleproof.theory.families.gpipe import GPipe"),
        ("verify/x.py", "from ..theory.families import member"),
        ("verify/x.py", "def f():\n    import bubbleproof.reference_exec"),
        ("solvers/x.py", "from bubbleproof.reference_exec import plan"),
        ("reference_exec/x.py", "from bubbleproof import solvers"),
        ("formats/x.py", "from bubbleproof.cli import main"),
        ("formats/x.py", "from bubbleproof.reference_exec.runtime.trace import RankTrace"),
        ("door_files.py", "from bubbleproof.commands.output import say"),
        ("door_given.py", "def f():\n    from bubbleproof.commands.solve import solve_input"),
        ("testing/x.py", "from bubbleproof.commands.verdicts import section_of"),
        ("report/x.py", "import theory.model.actions"),
        ("cli.py", "from proofs_tests import strategies"),
    ],
)
def test_a_wrong_import_is_found(where: str, line: str) -> None:
    assert forbidden(PACKAGE / where, line) != []


def test_the_core_names_no_wing() -> None:
    """No import, not for annotations either, and no text by which one is loaded."""
    assert not any({*WINGS} & rooms for room, rooms in MAY_IMPORT.items() if room not in WINGS)
    core = [path for path in files() if room_of(path) not in (*WINGS, "former_names")]
    wrong = {
        str(within(path)): found
        for path in core
        if (found := wings_named_in(path.read_text("utf-8")))
    }
    assert wrong == {}


def wings_named_in(source: str) -> list[str]:
    """The texts of a file that are names of a wing's modules."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    begins = tuple(f"{prefix}{wing}." for wing in WINGS for prefix in ("", "bubbleproof."))
    return [text for text in texts if isinstance(text, str) and text.startswith(begins)]


def test_the_name_of_a_module_of_a_wing_is_found() -> None:
    assert wings_named_in('@runs("papers.commands.prove.run_prove")\ndef f(): ...') != []
    assert wings_named_in('"""Told in ``papers.planning``."""\nx = "papers"') == []


PAPERS = ("bpipe", "mepipe", "pipemesh", "tpipe", "field")


def test_what_decides_claims_knows_no_particular_paper() -> None:
    """Claims join in one list, ``papers.registry``; functions of formulas by ``formula.offer``."""
    for path in [
        *(ROOT / "papers" / "claims").glob("*.py"),
        *(ROOT / "papers" / "audit").glob("*.py"),
    ]:
        names = imported_modules(path.read_text("utf-8"), module_of(path))
        assert not {name.split(".")[2] for name in names if name.count(".") > 1} & {*PAPERS}, path


def too_early(path: Path, source: str) -> list[str]:
    """The imports of a file of the executor that lead to a later part."""
    own = EXECUTOR.index(within(path).relative_to("reference_exec").parts[0].removesuffix(".py"))
    names = (name.split(".") for name in sorted(imported_modules(source, module_of(path))))
    ours = ["bubbleproof", "reference_exec"]
    parts = {name[2] for name in names if name[:2] == ours and name[2:]}
    return [part for part in parts if EXECUTOR.index(part) > own]


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in files()
        if within(path).parts[0] == "reference_exec" and len(within(path).parts) == 3
    ],
    ids=lambda p: str(within(p)),
)
def test_the_parts_of_the_executor_are_in_order(path: Path) -> None:
    assert too_early(path, path.read_text(encoding="utf-8")) == []


def test_an_import_of_a_later_part_is_found() -> None:
    where = PACKAGE / "reference_exec" / "plans" / "x.py"
    later = "from bubbleproof.reference_exec.runtime.rank import Rank"
    assert too_early(where, later) == ["runtime"]
    assert too_early(where, "from bubbleproof.reference_exec.models import model_spec") == []


def reached(module: str) -> set[str]:
    """All modules of ours that importing a module brings in, followed through the files."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        path = file_of(name)
        if name in seen or path is None:
            continue
        seen.add(name)
        todo += _imported_by(path, name + ".__init__" if path.name == "__init__.py" else name)
    return seen


@cache
def _imported_by(path: Path, module: str) -> frozenset[str]:
    return frozenset(imported_modules(path.read_text(encoding="utf-8"), module))


def test_verify_never_reaches_a_schedule_generator_or_a_solver() -> None:
    modules = [module_of(path) for path in (ROOT / "verify").rglob("*.py")]
    for module in modules:
        names = reached(module)
        generators = ("bubbleproof.theory.families", "bubbleproof.solvers", "bubbleproof.papers")
        assert not [n for n in names if n.startswith(generators)], module


# The parts of verify whose word decides something, and what each may rest on, beside the model and
# itself: whatever else a reader of a verdict or of a certificate would have to believe.
JUDGES = {
    "certificates": {"verify.finding", "verify.verdict"},
    "candidates": {"theory.pipelines", "verify.certificates", "verify.finding", "verify.verdict"},
    "communication": {"theory.pipelines", "verify.finding", "verify.verdict", "verify.explain"},
    "dataflow": {"theory.pipelines", "verify.finding", "verify.verdict", "verify.explain"},
}


def beyond_trust(module: str, part: str) -> set[str]:
    """What a module of a part of verify rests on and must not: modules of ours, and libraries."""
    rooms = {"theory.model", f"verify.{part}", *JUDGES[part]}
    allowed = tuple(f"bubbleproof.{room}" for room in rooms)
    names = reached(module)
    found = {name for name in names if not name.startswith(allowed)}
    for name in names:
        path = structure.modules()[name.partition(".")[2]]
        libraries = {each.split(".")[0] for each in _imported_by(path, name)}
        found |= libraries & {*HEAVY, "subprocess"}
    return found


@pytest.mark.parametrize("part", JUDGES)
def test_what_judges_rests_on_what_is_trusted(part: str) -> None:
    modules = [module_of(path) for path in (ROOT / "verify" / part).rglob("*.py")]
    assert len(modules) > 3
    assert {module: found for module in modules if (found := beyond_trust(module, part))} == {}


def test_what_judges_on_less_trusted_things_is_found() -> None:
    families = "bubbleproof.theory.families"
    assert families in beyond_trust("bubbleproof.formats.problem_toml", "dataflow")
    assert beyond_trust("bubbleproof.verify.check", "certificates") >= {"bubbleproof.verify.rows"}
    assert "z3" in beyond_trust("bubbleproof.solvers.engines.z3_difference", "certificates")


def loaded_by(statement: str) -> set[str]:
    """The top-level modules in a fresh interpreter after a statement."""
    code = (
        f"import sys\n{statement}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "bubbleproof",
        "bubbleproof.theory",
        "bubbleproof.verify",
        "bubbleproof.commands.replaying.replay",  # which starts what loads torch beside it
        "bubbleproof.solvers.solving",  # each engine is loaded when a problem needs it
        "bubbleproof.planners.planning",
    ],
)
def test_importing_the_package_loads_neither_torch_nor_a_solver(module: str) -> None:
    assert loaded_by(f"import {module}").isdisjoint(HEAVY)


def test_families_load_neither_torch_nor_a_solver() -> None:
    assert loaded_by("import bubbleproof.theory.families").isdisjoint(HEAVY)
    assert "json" in loaded_by("import json")  # the probe sees what is loaded
