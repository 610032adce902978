"""Which public functions say what they take: the door's standard, NumPy sections, counted by room.

A parameter is *worth telling* where its type does not say what it means: a number, a text, a flag,
an array, or a container of these, whose units, bounds and shape only words can tell. One of a class
of ours (``problem: Problem``) says so itself. A function lacks its docstring where it has a
parameter worth telling that no ``Parameters`` section names, or where it has no docstring, or one
whose first sentence only repeats its name. A method has what a base class of ours says of it, too.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from proofs_tests.structure import files

ROOMS = ("theory", "verify", "solvers", "costs", "planners")
# What is told of these types in one place is not told again at each function.
PLAIN = {"int", "str", "bool", "float", "complex", "bytes", "Ints", "Bools", "Floats", "Fraction"}
CONTAINERS = {
    *("list", "tuple", "dict", "set", "frozenset", "Sequence", "Mapping", "Collection", "Iterable"),
    *("Iterator", "Callable", "None", "Literal", "Set", "Any", "object"),
}
SAYS_NOTHING = {"the", "a", "an", "of", "it", "its", "this", "that", "is", "are", "whether", "for"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> Iterator[tuple[str, Function]]:
    """The public functions of a file, and the public methods of its public classes, by name.

    Properties, overloads and methods that Python calls (``__add__``) are none of them.
    """
    yield from functions_of(ast.parse(source))


def functions_of(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """As ``functions``, of what a file was read as."""
    for node in tree.body:
        if isinstance(node, Function) and is_public(node):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                if isinstance(inner, Function) and is_public(inner):
                    yield f"{node.name}.{inner.name}", inner


@cache
def trees() -> dict[str, ast.Module]:
    """The files of these rooms as they are read."""
    found = {name: path for name, path in files().items() if name.partition("/")[0] in ROOMS}
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in found.items()}


@cache
def inherited() -> dict[str, tuple[frozenset[str], dict[str, str]]]:
    """Of every class of these rooms its bases, and the docstrings of its methods by name.

    No name of a class stands twice in the package (``test_structure``).
    """
    found = {}
    for tree in trees().values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                bases = (ast.unparse(base).partition("[")[0] for base in node.bases)
                methods = (each for each in node.body if isinstance(each, Function))
                told = {each.name: ast.get_docstring(each) or "" for each in methods}
                found[node.name] = frozenset(bases), {n: text for n, text in told.items() if text}
    return found


def told_by_bases(name: str) -> list[str]:
    """The docstrings that base classes of ours have for a method (``Class.method``)."""
    owner, _, method = name.rpartition(".")
    nothing: tuple[frozenset[str], dict[str, str]] = (frozenset(), {})
    waiting, found = list(inherited().get(owner, nothing)[0]), []
    while waiting:
        bases, docstrings = inherited().get(waiting.pop(), nothing)
        found += [docstrings[method]] if method in docstrings else []
        waiting += bases
    return found


def is_public(function: Function) -> bool:
    """Whether others call it by name, with arguments of their own."""
    marks = {ast.unparse(each).rpartition(".")[2] for each in function.decorator_list}
    is_called = not marks & {"property", "cached_property", "overload", "setter", "override"}
    return is_called and not function.name.startswith("_")


def worth_telling(function: Function) -> list[str]:
    """The names of the parameters whose types do not say what they mean."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return [each.arg for each in every if each.annotation and _is_plain(each.annotation)]


def _is_plain(annotation: ast.expr) -> bool:
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(annotation) if isinstance(node, ast.Attribute)}
    return bool(names & PLAIN) and names <= PLAIN | CONTAINERS


def told(docstring: str) -> set[str]:
    """The parameters that a docstring's ``Parameters`` section names."""
    found: set[str] = set()
    section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", docstring, re.S | re.M)
    for line in section[1].splitlines() if section else ():
        if line and not line[0].isspace():
            found |= {name.strip(" *`") for name in line.partition(" : ")[0].split(",")}
    return found


def repeats_its_name(name: str, docstring: str) -> bool:
    """Whether the first sentence has no word that the name has not."""
    sentence = re.split(r"\.(?:\s|$)", docstring, maxsplit=1)[0]
    words = {word.lower().rstrip("s") for word in re.findall(r"[A-Za-z]+", sentence)}
    own = {word.lower().rstrip("s") for word in re.findall(r"[A-Z]?[a-z]+", name)}
    return words <= own | SAYS_NOTHING


def lacks(name: str, function: Function) -> str:
    """What the docstring of a function lacks; nothing where it lacks nothing."""
    docstring, bases = ast.get_docstring(function), told_by_bases(name)
    if docstring is None and not bases:
        return "a docstring"
    if docstring is not None and repeats_its_name(name, docstring):
        return "a word that is not its name"
    known = set[str]().union(*map(told, filter(None, [docstring, *bases])))
    missing = sorted(set(worth_telling(function)) - known)
    return f"Parameters: {', '.join(missing)}" if missing else ""


def without() -> dict[str, list[tuple[str, str]]]:
    """By room, the public functions that lack something, and what."""
    found: dict[str, list[tuple[str, str]]] = {room: [] for room in ROOMS}
    for place, tree in trees().items():
        for name, function in functions_of(tree):
            if what := lacks(name, function):
                found[place.partition("/")[0]].append((f"{place}:{name}", what))
    return found


def swallows_its_example(docstring: str) -> bool:
    """Whether an example stands in a section of something else: a site would take it for a name."""
    sections = re.split(r"^(\w+)\n-+$", docstring, flags=re.MULTILINE)
    told = zip(sections[1::2], sections[2::2], strict=True)
    return any(head != "Examples" and re.search("^>>>", text, re.M) for head, text in told)


def main() -> None:
    """Print what is lacking, room by room."""
    for room, rows in without().items():
        for name, what in rows:
            print(f"{name}: {what}")  # noqa: T201 - what it is for
        print(f"{room}: {len(rows)}", Counter(what.partition(":")[0] for _, what in rows))  # noqa: T201 - the command prints


if __name__ == "__main__":
    main()
