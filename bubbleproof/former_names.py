"""Modules that moved: importing one by its old name says where it is, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# What begins with an old name, after ``bubbleproof.``, and what it begins with now.
MOVED = {
    "commands.papers": "papers.commands",
    "commands.planning.paper_results": "papers.planning.paper_results",
    "commands.planning.plan_paper": "papers.planning.plan_paper",
    "door_papers": "papers.door_papers",
    "formats.layouts.paper_layout": "papers.planning.paper_layout",
    "papers.claims.registry": "papers.registry",
    "papers.planning.derived": "papers.planning.plan_paper",
    "theory.families.evicting.bpipe_literal": "papers.bpipe.bpipe_literal",
    "theory.pipelines.shapes.node_places": "papers.bpipe.node_places",
}


class FormerNames:
    """The last of ``sys.meta_path``: it finds nothing, and says of an old name where to look."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises ``ModuleNotFoundError`` for a module that moved."""
        del path, target
        own, _, rest = name.partition(".")
        if own == "bubbleproof" and rest in MOVED:
            raise ModuleNotFoundError(f"{name} is bubbleproof.{MOVED[rest]} now", name=name)
        return None
