"""What the house looks like, in numbers: ``python -m proofs_tests.structure [--before COMMIT]``.

Lines of code are lines that hold more than a docstring or a comment. What a module rests on are the
modules of the package that it imports, and those that these import, wherever in the file (imports
for annotations alone left out); a package's ``__init__`` counts where it is itself imported from. A
circle is a set of modules each of which names every other, annotations and functions included.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "bubbleproof"
# Rooms at the top of the repository; a wing may be left out.
WINGS = ("papers",)
BESIDE = (
    *("theory", "verify", "solvers", "reference_exec"),
    *(wing for wing in WINGS if (ROOT / wing).is_dir()),
)
MODEL = ("theory.model.actions", "theory.model.problem", "theory.model.schedule")
KERNEL = "verify.spec"
CERTIFICATES = (
    "verify.certificates.certificate",
    "verify.certificates.drup_replay",
    "verify.certificates.one_store",
    "verify.certificates.volume",
    "verify.certificates.crossings",
    "verify.certificates.tick_prices",
    "verify.certificates.microbatch_windows",
)
# What each sentence of a verdict rests on beyond the model: the modules whose word it is.
SENTENCES = {
    "the pipeline requires this problem": ("verify.required",),
    "sends and receives match; no deadlock (rule 6)": ("verify.communication.matching",),
    "each gradient sums every contribution once (rule 7)": ("verify.dataflow.dataflow_rule",),
    "optimal for this shape": ("verify.certificates.certificate_rule",),
    "optimal over these choices": ("verify.candidates.plan_rule",),
    "optimal over these choices, with layers cut in any way": (
        "verify.candidates.plan_rule", "verify.candidates.other_cuts",
    ),
    "optimal over these deployments and choices": (
        "verify.candidates.plan_rule", "verify.candidates.deployment_bundles",
        "formats.clusters.deployed_space",
    ),
}  # fmt: skip
_QUIET = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _QUIET:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - _docstring_lines(ast.parse(source)))


def _docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            first = node.body[0]
            found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


_INSIDE = ast.stmt | ast.excepthandler | ast.match_case  # where statements stand


@cache
def files() -> dict[str, Path]:
    """The package's files by their place in it (``theory/model/problem.py``)."""
    found = [(path, PACKAGE) for path in PACKAGE.rglob("*.py")]
    found += [(path, ROOT) for room in BESIDE for path in (ROOT / room).rglob("*.py")]
    return dict(sorted((path.relative_to(top).as_posix(), path) for path, top in found))


@cache
def modules() -> dict[str, Path]:
    """The package's files by their names within it (``theory.model.problem``)."""
    found = {}
    for file, path in files().items():
        parts = Path(file).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleSyntax:
    """What is asked of a module's syntax, so that it is parsed once.

    ``imported`` and ``named`` are modules of the package, the latter those for annotations alone
    too; ``public`` the capitalised names that it defines, each with whether it is a class.
    """

    imported: frozenset[str]
    named: frozenset[str]
    public: tuple[tuple[str, bool], ...]


@cache
def syntax(name: str) -> ModuleSyntax:
    """That of a module."""
    tree = ast.parse(modules()[name].read_text())
    without, every = (statements(tree, with_annotations=each) for each in (False, True))
    return ModuleSyntax(
        imported=_imports(without),
        named=_imports(every),
        public=tuple(_public_names(tree)),
    )


def imported(name: str) -> frozenset[str]:
    """The modules of the package that a module imports by name."""
    return syntax(name).imported


def named(name: str) -> frozenset[str]:
    """The modules of the package that a module imports by name, those for annotations alone too."""
    return syntax(name).named


def _imports(nodes: Iterable[ast.AST]) -> frozenset[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = inner.removeprefix("bubbleproof.") in modules()
                found.add(inner if is_module else node.module)
    ours = (module.partition("bubbleproof.")[2] for module in found if module != "bubbleproof")
    return frozenset(module for module in ours if module in modules() and module)


def statements(tree: ast.AST, *, with_annotations: bool = True) -> Iterator[ast.AST]:
    """All statements, or all but those below ``if TYPE_CHECKING``; no expression imports."""
    waiting = [tree]
    while waiting:
        yield (node := waiting.pop())
        for child in ast.iter_child_nodes(node):
            is_guard = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            if isinstance(child, _INSIDE) and (with_annotations or not is_guard):
                waiting.append(child)


def rests_on(name: str) -> frozenset[str]:
    """A module and all that it imports, over any number of steps."""
    return _reached(name, imported)


def _reached(name: str, step: Callable[[str], frozenset[str]]) -> frozenset[str]:
    seen, waiting = {name}, [name]
    while waiting:
        new = step(waiting.pop()) - seen
        seen |= new
        waiting.extend(new)
    return frozenset(seen)


def lines_of(names: frozenset[str]) -> int:
    """The lines of code of several modules."""
    return sum(map(_lines_of, names))


@cache
def _lines_of(name: str) -> int:
    return code_lines(modules()[name].read_text())


def model() -> frozenset[str]:
    """What a schedule is: the modules that the definition and every certificate speak of."""
    return frozenset().union(*(rests_on(name) for name in MODEL))


def sentence_rests_on(sentence: str) -> frozenset[str]:
    """The modules that one of ``SENTENCES`` rests on, beyond the model."""
    return frozenset().union(*(rests_on(name) for name in SENTENCES[sentence])) - model()


def circles() -> list[tuple[str, ...]]:
    """Sets of modules that name each other in a ring, be it inside functions or for annotations."""
    return _rings(named)


def circles_of_packages() -> list[tuple[str, ...]]:
    """Such sets by imports that run, each with the packages that it runs: none can be the first."""
    return _rings(run_by)


def run_by(name: str) -> frozenset[str]:
    """What importing a module runs: what it names, and the packages in which that lies."""
    found = imported(name)
    return found.union(*map(_packages, found)) - _packages(name) - {name}


def _packages(name: str) -> frozenset[str]:
    parts = name.split(".")
    return frozenset(".".join(parts[:count]) for count in range(1, len(parts))) & modules().keys()


def _rings(step: Callable[[str], frozenset[str]]) -> list[tuple[str, ...]]:
    left = {name: step(name) for name in modules()}
    while ends := [name for name, found in left.items() if found.isdisjoint(left)]:
        for name in ends:  # nothing that is left comes after it, so it is in no ring
            del left[name]
    reach = {name: _reached(name, lambda each: step(each) & left.keys()) for name in left}
    rings = {
        tuple(sorted(other for other in reach[name] if name in reach[other])) for name in reach
    }
    return sorted(ring for ring in rings if len(ring) > 1)


def files_of_choices() -> dict[str, list[str]]:
    """Of each field of ``Choices`` its module, and those that name it or a class of its values.

    A name counts as a variable, an attribute, a keyword, an import or a text of its own, so that a
    field whose name stands for other things too (``waits``) counts more than it is used.
    """
    from bubbleproof.theory.pipelines.choice_kind import ChoiceKind
    from bubbleproof.theory.pipelines.choices import Choices
    from bubbleproof.theory.pipelines.value_types import beside, declared

    named_in = {
        module: set(_words(ast.parse(path.read_text()))) for module, path in modules().items()
    }
    found = {}
    for field, hint in declared(Choices).items():
        words = {field, *(kind.__name__ for kind in _classes_in(hint))}
        kind = beside(hint, ChoiceKind)
        own = set() if kind is None else {kind.change.__module__.removeprefix("bubbleproof.")}
        found[field] = sorted(own | {name for name, told in named_in.items() if words & told})
    return found


def _classes_in(hint: object) -> Iterator[type]:
    """The dataclasses of the package's pipelines that an annotation names."""
    if isinstance(hint, type) and hint.__module__.startswith("bubbleproof.theory.pipelines."):
        yield hint
    for part in getattr(hint, "__args__", ()):
        yield from _classes_in(part)


def _words(tree: ast.Module) -> Iterator[str]:
    """The names that a module's code holds, and its texts."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "value"):
            word = getattr(node, field, None)
            if isinstance(word, str):
                yield word


def _public_names(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, True
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[:1].isupper() and not name.isupper() and "_" not in name:
                yield name, False


def twice() -> dict[str, list[str]]:
    """Base names of files that stand more than once in the package, with the files."""
    found: dict[str, list[str]] = {}
    for name, path in modules().items():
        if path.stem not in ("__init__", "__main__"):
            found.setdefault(path.stem, []).append(name)
    return {stem: names for stem, names in sorted(found.items()) if len(names) > 1}


def rooms(commit: str = "") -> Counter[str]:
    """Lines of code of each folder at the top of the repository, the package's room by room.

    Those of the work tree, or of a commit.
    """
    found: Counter[str] = Counter()
    command = ["ls-tree", "-r", "--name-only", commit] if commit else ["ls-files"]
    for name in _git(*command).split():
        if not name.endswith(".py"):
            continue
        parts = Path(name).parts
        parts = ("bubbleproof", *parts) if parts[0] in BESIDE else parts
        is_room = parts[0] == "bubbleproof" and len(parts) > 2
        source = _git("show", f"{commit}:{name}") if commit else (ROOT / name).read_text()
        found["/".join(parts[:2]) if is_room else parts[0]] += code_lines(source)
    return found


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def _by_room(before: str) -> list[str]:
    """Lines of code per room, and before a commit where one is named, with both sums."""
    columns = [rooms(), rooms(before)] if before else [rooms()]
    totals = [Counter(column) for column in columns]
    for column, total in zip(columns, totals, strict=True):
        total["all of it"] = sum(column.values())
        total["all but proofs_tests"] = total["all of it"] - column["proofs_tests"]
    names = sorted({name for column in columns for name in column})
    return [
        "  ".join([*(f"{total[name]:>7,}" for total in totals), name])
        for name in [*names, "all of it", "all but proofs_tests"]
    ]


def _in(names: frozenset[str], room: str) -> frozenset[str]:
    return frozenset(name for name in names if name.partition(".")[0] == room)


def report(before: str = "") -> str:
    """All figures as text; of each room also the lines at the commit ``before``."""
    import bubbleproof
    from proofs_tests.names import names_twice

    kernel = rests_on(KERNEL)
    lines = ["lines of code now" + (f", and at {before}" if before else "") + ":"]
    lines += _by_room(before)
    lines.append("and:")
    lines.append(
        f"{lines_of(kernel):>7,}  {KERNEL} with all it rests on: {' '.join(sorted(kernel))}"
    )
    for name in CERTIFICATES:
        beyond = rests_on(name) - model()
        lines.append(f"{lines_of(beyond):>7,}  {name} beyond the model ({len(beyond)} modules)")
    for sentence in SENTENCES:
        beyond = sentence_rests_on(sentence)
        of_rooms = {name.partition(".")[0] for name in beyond}
        told = ", ".join(f"{lines_of(_in(beyond, room)):,} {room}" for room in sorted(of_rooms))
        lines.append(f"{lines_of(beyond):>7,}  '{sentence}' beyond the model: {told}")
    lines.append(f"{len(circles()):>7,}  circles of imports")
    lines.append(f"{(ROOT / 'README.md').stat().st_size:>7,}  bytes of README.md")
    lines.append(f"{len(bubbleproof.__all__):>7,}  names at the door")
    lines.append(f"{len(names_twice()):>7,}  names that stand twice {' '.join(names_twice())}")
    lines.append(f"{len(twice()):>7,}  base names that stand twice: {' '.join(twice())}")
    lines.append("files that a kind of choice touches:")
    lines += [f"{len(files):>7,}  {name}" for name, files in files_of_choices().items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{report(sys.argv[2] if sys.argv[1:2] == ['--before'] else '')}\n")
