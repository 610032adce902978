"""The API's pages: one for each name at the door, one for each room's face, made from docstrings.

A *face* is a package that says in ``__all__`` what it offers. Nothing is listed by hand: the door's
names, their one line and the faces are read from the package.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType

import bubbleproof
from bubbleproof.wings import NAMES, present
from proofs_tests.structure import modules

TESTING = ("assertions", "strategies", "same_step", "plugin")  # modules of bubbleproof.testing


def _names() -> list[str]:
    """The package's own names, and those that wings give it."""
    return [*bubbleproof.__all__, *present(NAMES)]


def faces() -> dict[str, ModuleType]:
    """Every package below the door with an ``__all__``, by its name."""
    packages = [name for name, path in modules().items() if path.name == "__init__.py" and name]
    found = {f"bubbleproof.{name}": import_module(f"bubbleproof.{name}") for name in packages}
    return {
        name: face
        for name, face in found.items()
        if getattr(face, "__all__", ()) and name != "bubbleproof.testing"
    }


def api_pages() -> dict[str, str]:
    """The pages by their place in the site, as reStructuredText but for the index."""
    pages = {f"api/{name}.rst": _page(f"bubbleproof.{name}") for name in _names()}
    pages["api/testing.rst"] = _testing()
    pages |= {f"api/{name.partition('.')[2]}.rst": _face(name, face) for name, face in _faces()}
    pages["api/index.md"] = _index()
    return pages


def _faces() -> Iterator[tuple[str, ModuleType]]:
    yield from sorted(faces().items())


def _heading(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _page(name: str) -> str:
    return _heading(name) + _described(name, getattr(bubbleproof, name.partition(".")[2]))


def _described(name: str, thing: object) -> str:
    """The directive that describes a thing under this name."""
    if inspect.isclass(thing):
        return f".. autoclass:: {name}\n   :members:\n\n"
    if callable(thing):
        return f".. autofunction:: {name}\n\n"
    kind = type(thing).__name__.replace("mappingproxy", "Mapping")
    return f".. py:data:: {name}\n   :type: {kind}\n\n"


def _face(name: str, face: ModuleType) -> str:
    text = _heading(name) + f".. automodule:: {name}\n   :no-members:\n\n"
    described = (_offered(name, each, getattr(face, each)) for each in face.__all__)
    return text + "".join(described)


def _offered(face: str, name: str, thing: object) -> str:
    """A name of a face; of one that stands at the door, too, where it is described."""
    if getattr(bubbleproof, name, None) is not thing or name not in _names():
        return _described(f"{face}.{name}", thing)
    return f"``{face}.{name}`` is :py:obj:`bubbleproof.{name}`.\n\n"


def _testing() -> str:
    text = _heading("bubbleproof.testing") + ".. automodule:: bubbleproof.testing\n\n"
    for name in TESTING:
        full = f"bubbleproof.testing.{name}"
        text += f"{full}\n{'-' * len(full)}\n\n.. automodule:: {full}\n   :members:\n\n"
    return text


def _index() -> str:
    """The list of all, with the first line of each docstring."""
    lines = ["# Python API", "", "`import bubbleproof as bp`: every name at the door.", ""]
    lines += [_entry(name, getattr(bubbleproof, name)) for name in _names()]
    lines += ["## For test suites", "", _entry("testing", bubbleproof.testing)]
    lines += ["## The rooms' faces", ""]
    lines += [_entry(name.partition(".")[2], face) for name, face in _faces()]
    names = [*_names(), "testing", *(each.partition(".")[2] for each, _ in _faces())]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *_short(names), "```", ""])


def _short(names: Iterable[str]) -> list[str]:
    """Entries of a table of contents, by their names at the door."""
    return [f"{name} <{name}>" for name in names]


def _entry(name: str, thing: object) -> str:
    first = (inspect.getdoc(thing) or "").partition("\n")[0].replace("``", "`")
    return f"[`{name}`]({name}.rst)\n: {first}\n"
