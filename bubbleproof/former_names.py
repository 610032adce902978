"""Names that changed: the old one is taken until the next release, and warns.

``Former`` stands beside an option, a parameter or a key in its annotation; ``MOVED`` has modules.
On the command line a warning is a line on standard error. The policy stands in
``docs/reference/json-output.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING
from warnings import warn

if TYPE_CHECKING:
    from importlib.abc import Loader
else:  # that module loads tempfile and more
    Loader = object

# What begins with an old name, after ``bubbleproof.``, and what it begins with now.
MOVED = {
    "commands.papers": "papers.commands",
    "commands.planning.cluster_results": "planners.cluster_results",
    "commands.planning.configuration_words": "planners.configuration_words",
    "commands.planning.paper_results": "papers.planning.paper_results",
    "commands.planning.plan_paper": "papers.planning.plan_paper",
    "commands.planning.plan_results": "planners.plan_results",
    "commands.results": "report.solved_result",
    "costs.times.fitted_constants": "costs.times.constants",
    "door_papers": "papers.door_papers",
    "formats.layouts.paper_layout": "papers.planning.paper_layout",
    "papers.claims.registry": "papers.registry",
    "papers.planning.derived": "papers.planning.plan_paper",
    "theory.families.evicting.bpipe_literal": "papers.bpipe.bpipe_literal",
    "theory.pipelines.shapes.node_places": "papers.bpipe.node_places",
}


class FormerNames:
    """The last of ``sys.meta_path``: it finds what moved, for one release and with a warning."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The new module. Raises ``ModuleNotFoundError`` where that is not there."""
        del path, target
        own, _, rest = name.partition(".")
        if own != "bubbleproof" or rest not in MOVED:
            return None
        new = f"bubbleproof.{MOVED[rest]}"
        try:
            module = import_module(new)
        except ModuleNotFoundError:
            raise ModuleNotFoundError(f"{name} is {new} now", name=name) from None
        warn(f"{name} is {new} now; the old name goes with the next release", FormerNameWarning, 2)
        return ModuleSpec(name, _SameModule(module))


class FormerNameWarning(DeprecationWarning):
    """A name that has another one now."""


@dataclass(frozen=True, slots=True)
class Former:
    """The name that an option, a parameter or a key had."""

    name: str


def former_of(marks: Iterable[object]) -> str | None:
    """The former name among the marks of an annotation."""
    return next((each.name for each in marks if isinstance(each, Former)), None)


def warn_of(old: str, new: str, *, has_both: bool, stacklevel: int = 2) -> None:
    """Say that a name is another one now. Raises ``ValueError`` where both are given."""
    if has_both:
        raise ValueError(f"{old} is the old name of {new}: give {new} alone")
    told = f"{old} is called {new} now; the old name goes with the next release"
    warn(told, FormerNameWarning, stacklevel=stacklevel + 1)


class _SameModule(Loader):
    """Gives a module that is loaded by its own name."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself."""
        del spec
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; its spec stays its own."""
        module.__spec__ = self.spec
