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
read, write   problem files, schedules, PyTorch tables
plan          the best pipeline over shapes and choices, and why the others lost
estimate      time and memory of iterations of a model on cards, before they are run
solve         the best schedule and how good it is, as a ``Result``
check         every rule decided for a schedule: a ``Verdict`` with each ``Violation``
measure       makespan, bubbles and peak memory
idle          why each rank is idle: a cause for every tick, and the critical path
show          a picture, which a notebook displays
replay        the schedule on torch, its gradients and bytes compared
pareto        every trade of makespan against peak memory
prove         a theorem for all sizes, by Z3
claim         a formula of yours against your family, decided over a domain
claims        what the papers claim, as data
testing       assertions for the test suite of a generator
============  ====================================================================================
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bubbleproof import testing as testing
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
    from bubbleproof.door_files import estimate, read, write
    from bubbleproof.door_papers import claim, claims, prove
    from bubbleproof.door_search import pareto, plan, solve
    from bubbleproof.solvers.result import Result
    from bubbleproof.theory.model.problem import Problem
    from bubbleproof.theory.model.schedule import Schedule
    from bubbleproof.theory.pipelines.pipeline import Pipeline
    from bubbleproof.verify.verdict import Verdict, Violation

_HERE = Path(__file__).resolve().parent
if (_HERE / "theory").is_symlink() or not (_HERE / "theory").is_dir():
    # A checkout: theory, verify, solvers and reference_exec stand beside this folder. The links to
    # them in it are for tools; here each module has one file, where it stands.
    __path__[:] = [str(_HERE.parent), str(_HERE)]

__all__ = [
    "Pipeline",
    "Problem",
    "Result",
    "Schedule",
    "Verdict",
    "Violation",
    "check",
    "claim",
    "claims",
    "estimate",
    "families",
    "family",
    "idle",
    "measure",
    "pareto",
    "plan",
    "prove",
    "read",
    "register",
    "replay",
    "show",
    "solve",
    "write",
]

_HOMES = {
    "Pipeline": "bubbleproof.theory.pipelines.pipeline",
    "Problem": "bubbleproof.theory.model.problem",
    "Result": "bubbleproof.solvers.result",
    "Schedule": "bubbleproof.theory.model.schedule",
    "Verdict": "bubbleproof.verify.verdict",
    "Violation": "bubbleproof.verify.verdict",
    "claim": "bubbleproof.door_papers",
    "claims": "bubbleproof.door_papers",
    "estimate": "bubbleproof.door_files",
    "pareto": "bubbleproof.door_search",
    "plan": "bubbleproof.door_search",
    "prove": "bubbleproof.door_papers",
    "read": "bubbleproof.door_files",
    "solve": "bubbleproof.door_search",
    "write": "bubbleproof.door_files",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from bubbleproof.version import package_version

        return package_version()
    if name == "testing":  # for a test suite: ``bp.testing.assert_valid``
        return import_module("bubbleproof.testing")
    if name not in __all__:
        from bubbleproof.suggestions import did_you_mean

        hint = did_you_mean(name, __all__)
        raise AttributeError(
            f"bubbleproof has no {name!r}{hint}; its names are {' '.join(__all__)}"
        )
    found: object = getattr(import_module(_HOMES.get(name, "bubbleproof.door")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
