"""State, solve, prove and run pipeline-parallel training schedules: ``import bubbleproof as bp``.

>>> import bubbleproof as bp
>>> pipeline = bp.Pipeline(num_ranks=4, num_microbatches=6, capacity=3)
>>> member = bp.family("1f1b")(p=2, m=3)
>>> bp.check(member)
<Verdict: holds, makespan 12>

Each name is loaded when it is first asked for: importing this module loads neither torch nor a
solver. Wherever a ``Problem`` is taken a ``Pipeline`` serves as well.

============  ====================================================================================
Pipeline      a training step: ranks, microbatches, durations, memory, links, what is split
Problem       tasks on resources with precedences and memory events: what a Pipeline becomes
Schedule      an order per resource and a start per task
family        a published family of schedules by its name; ``families`` lists them all
register      a family of your own, known to every command from then on
read, write   problem files, schedules, PyTorch tables; ``convert`` from one form to another
plan          the best pipeline over shapes and choices, and why the others lost
Model         the shape of a model, and ``Cluster``: cards and what joins them
costs         what a model costs: parameters, FLOPs, saved bytes and state bytes
calibrate     the constants of a card from measured iterations
estimate      time and memory of iterations of a model on cards, before they are run
solve         the best schedule and how good it is, as a ``Result``
repair        the valid schedule that moves the fewest tasks of a broken one
check         every rule decided for a schedule: a ``Verdict`` with each ``Violation``
measure       makespan, bubbles and peak memory
idle          why each rank is idle: a cause for every tick, and the critical path
diff          what differs between two schedules, and what it is worth
show          a picture, which a notebook displays
replay        the schedule on torch, its gradients and bytes compared; ``OwnModel`` is one of yours
profile       the stages of a model measured on a device, as a problem
hand_over     what starts a training in another framework
trace, hang   where the time of a run went, and why one stands still
pareto        every trade of makespan against peak memory
testing       assertions for the test suite of a generator
Error         the base of all errors that are raised on purpose
============  ====================================================================================

And, where the wing of the papers is installed:

============  ====================================================================================
prove         a theorem for all sizes, by Z3
claim         a formula of yours against your family, decided over a domain
claims        what the papers claim, as data
============  ====================================================================================
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from bubbleproof.former_names import FormerNames

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from bubbleproof import testing as testing
    from bubbleproof.costs.transformer import Transformer as Model
    from bubbleproof.door import (
        check,
        families,
        family,
        idle,
        measure,
        register,
        replay,
        show,
    )
    from bubbleproof.door_files import convert, costs, estimate, read, write
    from bubbleproof.door_plans import calibrate, plan
    from bubbleproof.door_runs import diff, hand_over, hang, profile, trace
    from bubbleproof.door_search import pareto, repair, solve
    from bubbleproof.error_base import Error
    from bubbleproof.formats.layouts.cluster_layout import ClusterLayout as Cluster
    from bubbleproof.reference_exec.models.own_model import OwnModel
    from bubbleproof.report.schedule_verdict import ScheduleVerdict as Verdict
    from bubbleproof.report.solved_result import SolvedResult as Result
    from bubbleproof.theory.model.problem import Problem
    from bubbleproof.theory.model.schedule import Schedule
    from bubbleproof.theory.pipelines.pipeline import Pipeline
    from bubbleproof.verify.verdict import Violation

    # Of wings, which are not imported here, not for annotations either.
    claim: Callable[..., Any]
    claims: Callable[..., Any]
    prove: Callable[..., Any]

_HERE = Path(__file__).resolve().parent
if (_HERE / "theory").is_symlink() or not (_HERE / "theory").is_dir():
    # A checkout: theory, verify, solvers and reference_exec stand beside this folder. The links to
    # them in it are for tools; here each module has one file, where it stands.
    __path__[:] = [str(_HERE.parent), str(_HERE)]
if FormerNames not in sys.meta_path:
    sys.meta_path.append(FormerNames)

__all__ = [
    "Cluster",
    "Error",
    "Model",
    "OwnModel",
    "Pipeline",
    "Problem",
    "Result",
    "Schedule",
    "Verdict",
    "Violation",
    "calibrate",
    "check",
    "convert",
    "costs",
    "diff",
    "estimate",
    "families",
    "family",
    "hand_over",
    "hang",
    "idle",
    "measure",
    "pareto",
    "plan",
    "profile",
    "read",
    "register",
    "repair",
    "replay",
    "show",
    "solve",
    "trace",
    "write",
]

# The module of each name, and what it is called there where that is another name.
_HOMES = {
    "Cluster": "formats.layouts.cluster_layout ClusterLayout",
    "Error": "error_base",
    "Model": "costs.transformer Transformer",
    "OwnModel": "reference_exec.models.own_model",
    "Pipeline": "theory.pipelines.pipeline",
    "Problem": "theory.model.problem",
    "Result": "report.solved_result SolvedResult",
    "Schedule": "theory.model.schedule",
    "Verdict": "report.schedule_verdict ScheduleVerdict",
    "Violation": "verify.verdict",
    **dict.fromkeys(("check", "families", "family", "idle", "measure"), "door"),
    **dict.fromkeys(("register", "replay", "show"), "door"),
    **dict.fromkeys(("convert", "costs", "estimate", "read", "write"), "door_files"),
    **dict.fromkeys(("calibrate", "plan"), "door_plans"),
    **dict.fromkeys(("diff", "hand_over", "hang", "profile", "trace"), "door_runs"),
    **dict.fromkeys(("pareto", "repair", "solve"), "door_search"),
}


_BY_NAME = ("Cluster", "Model", "OwnModel", "Pipeline")  # classes, called with names alone


class _Door(ModuleType):
    """The package, in which a room that is imported hides no function of its name.

    ``from bubbleproof.costs import ...`` is of the room, ``bp.costs`` the function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Door


def __getattr__(name: str) -> object:
    if name == "__version__":
        from bubbleproof.version import package_version

        return package_version()
    if name == "testing":  # for a test suite: ``bp.testing.assert_valid``
        return import_module("bubbleproof.testing")
    if name in __all__:
        module, _, own = _HOMES[name].partition(" ")
        found: object = getattr(import_module(f"bubbleproof.{module}"), own or name)
        if name in _BY_NAME:
            from bubbleproof.door_classes import told_by_name

            found = told_by_name(found, name)
    else:
        found = _of_wings(name)
    globals()[name] = found
    return found


def _of_wings(name: str) -> object:
    """What a wing gives under the name. Raises ``AttributeError`` where none does."""
    from bubbleproof.suggestions import did_you_mean
    from bubbleproof.wings import INSTALL, NAMES, AbsentWingError, entries, given, present

    if name in entries(NAMES):
        try:
            return given(NAMES, name, f"bubbleproof.{name}")
        except AbsentWingError as why:
            raise AttributeError(str(why)) from None
    known = [*__all__, *present(NAMES)]
    more = "" if entries(NAMES) else f" (those of wings come with an installation: {INSTALL})"
    raise AttributeError(
        f"bubbleproof has no {name!r}{did_you_mean(name, known)}; "
        f"its names are {' '.join(known)}{more}"
    )


def __dir__() -> list[str]:
    """The door and nothing else: no module, and nothing that is imported here."""
    from bubbleproof.wings import NAMES, present

    return sorted({*__all__, *present(NAMES)})
