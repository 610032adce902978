"""What ``pip install bubbleproof`` brings, why, and how large it is.

    python -m benchmarks.dependencies [--write docs/reference/dependencies.md]

The packages are those that pyproject.toml names and those that these ask for; sizes are those of
the files installed here, with the bytecode that pip compiles. What the page says around the tables
is kept.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.markdown import markdown_table

ROOT = Path(__file__).resolve().parent.parent
END = "<!-- end of the tables -->"
CORE = ""
MEGABYTE = 1_000_000

WHY = {
    "numpy": "problems and schedules are columns; the checkers and the bounds work on them",
    "ortools": "CP-SAT, the exact engine behind `auto` and behind choices; HiGHS, for `pulp`",
    "pulp": "writes the mixed-integer programs of engine `pulp`, and brings CBC for `pulp-cbc`",
    "pydantic": "refuses a file that is not of the form, with the place",
    "rich": "tables and progress on the terminal",
    "typer": "the command",
    "z3-solver": "the theorems for all sizes (`prove`), and engine `z3`",
    "cvc5": "a second prover, of the same obligations (`prove --cvc5`)",
    "distributed": "`--scheduler`: claims and fronts on other machines (Dask)",
    "torch": "`replay`: runs a schedule",
    "transformers": "`replay` of GPT-2, Llama, Qwen and Mixtral from their configurations",
    "peft": "`replay` of models with LoRA",
    "anywidget": "the viewer of the pages in a notebook",
    "matplotlib": "pictures: SVG, PDF and PNG",
    "sphinx": "`make site`: builds the site, and reads the docstrings",
    "myst-parser": "`make site`: Sphinx reads our Markdown",
    "pydata-sphinx-theme": "`make site`: how the site looks",
    "hypothesis": "`make site`: `bubbleproof.testing.strategies` is among what it shows",
    "python-sat": "engine `sat`, and DRUP certificates where propagation proves too little",
    "pandas": "nothing of ours: `ortools.sat.python.cp_model` imports it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package, what it is for or who asks for it, and its size in bytes; None: not here."""

    name: str
    version: str
    why: str
    size: int | None


def requirements() -> dict[str, list[str]]:
    """The packages that pyproject.toml names, for the core and for each extra but the tests'."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    groups = {CORE: project["dependencies"]}
    groups |= {name: extras[name] for name in sorted(extras) if name not in ("all", "test")}
    return {group: [Requirement(line).name for line in lines] for group, lines in groups.items()}


def packages(names: Sequence[str], known: frozenset[str] = frozenset()) -> list[Package]:
    """The packages of these names and all that they ask for, but the ``known`` ones."""
    found: dict[str, Package] = {}
    waiting = [(name, WHY.get(canonicalize_name(name), "")) for name in names]
    while waiting:
        name, why = waiting.pop(0)
        key = canonicalize_name(name)
        if key in found or key in known:
            continue
        here = _installed(name)
        found[key] = Package(
            name=name,
            version=here.version if here else "",
            why=WHY.get(key, why),
            size=_size(here) if here else None,
        )
        waiting += [(asked, f"asked for by {name}") for asked in _asked_by(here)]
    return list(found.values())


@cache
def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _asked_by(package: Distribution | None) -> Iterator[str]:
    for line in (package.requires or []) if package else []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


@cache
def _size(package: Distribution) -> int:
    paths = (Path(str(package.locate_file(file))) for file in package.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())


def tables() -> str:
    """One table for the core, and one for each extra, of what it adds."""
    groups = requirements()
    core = packages(groups.pop(CORE))
    known = frozenset(canonicalize_name(package.name) for package in core)
    lines = [f"## `pip install bubbleproof`: {_megabytes(core)} MB", "", _table(core)]
    for extra, names in groups.items():
        added = packages(names, known)
        title = f'## `pip install "bubbleproof[{extra}]"`: {_megabytes(added)} MB more'
        lines += [title, "", _table(added)]
    return "\n".join(lines)


def _megabytes(found: Sequence[Package]) -> str:
    return f"{sum(package.size or 0 for package in found) / MEGABYTE:.0f}"


def _table(found: Sequence[Package]) -> str:
    rows = [
        (package.name, package.version, f"{(package.size or 0) / MEGABYTE:.1f}", package.why)
        for package in found
    ]
    return markdown_table(("package", "version", "MB", "why"), rows)


def main(write: Path | None = None) -> None:
    """Print the tables, or replace those of the Markdown file ``write``."""
    if write is None:
        sys.stdout.write(tables())
        return
    text = write.read_text("utf-8")
    head, _, rest = text.partition("\n## `pip install")
    _, mark, tail = rest.partition(END)
    write.write_text(f"{head}\n{tables()}\n{mark}{tail}", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
