"""A paper's choice beside a plan: its part of the JSON, its rows, and its schedule as a file.

In JSON ``paper`` has ``name``, ``choice`` (what the paper's algorithm says), ``value`` (ticks of
what runs of it), ``executable``, ``note``, and ``joint``, the plan's ``value`` and the candidate
that ``run``s. With ``-o`` the schedule of what runs of the paper is written as ``paper.json``;
``verify`` takes it. Nothing here loads the papers' wing: a plan without ``--paper`` needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bubbleproof.formats import write_schedule
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.formats.schedule_file import ScheduleFile, with_claims
from bubbleproof.planners import Plan, SolvedCandidate
from bubbleproof.planners.jitter import AnyPlan
from bubbleproof.report.amounts import ticks

if TYPE_CHECKING:
    from bubbleproof.papers.planning.paper_choice import PaperChoice


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelinesBeside:
    """A paper's choice; ``value`` is what runs of it takes, to the end of the step."""

    chosen: PaperChoice
    value: int | None


def joint_to_json(found: AnyPlan) -> dict[str, object] | None:
    """What the plan takes, and what of its candidates runs; None where there is no plan."""
    return run_to_json(found.value, found.winner) if isinstance(found, Plan) else None


def run_to_json(value: int, winner: SolvedCandidate) -> dict[str, object]:
    """The same of a plan's value and its winner."""
    return {"value": value, "run": str(winner.candidate)}


def paper_to_json(shown: PipelinesBeside, joint: dict[str, object] | None) -> dict[str, object]:
    """The paper's part of the answer; ``joint`` is the plan's."""
    chosen = shown.chosen
    return {
        "name": chosen.paper,
        "choice": dict(chosen.choice),
        "value": shown.value,
        "executable": chosen.executable,
        "note": chosen.note,
        "joint": joint,
    }


def paper_rows(shown: PipelinesBeside | None, best: int | None, unit: str) -> list[tuple[str, str]]:
    """The paper's rows of the summary; ``best`` is the plan's value."""
    if shown is None:
        return []
    chosen = shown.chosen
    value = "nothing runs" if shown.value is None else ticks(shown.value, unit)
    rows = [
        (f"{chosen.paper} chooses", choice_text(chosen.choice)),
        (f"{chosen.paper} as printed", "runs" if chosen.executable else "does not run"),
        (f"{chosen.paper} takes", f"{value}; {chosen.note}" if chosen.note else value),
    ]
    if best is not None and shown.value:
        less = 100 * (shown.value - best) / shown.value
        rows.append(("by the same costs", f"the plan takes {less:.2f} % less"))
    return rows


def choice_text(choice: Mapping[str, object]) -> str:
    """The choice in words; what the paper leaves undecided is left out.

    >>> choice_text({"chunks": 2, "recompute": [], "offload": [2, 3], "q": None})
    'chunks=2, recompute nothing, offload=(2, 3)'
    """
    told = [_word(key, given) for key, given in choice.items() if given is not None]
    return ", ".join(told) or "nothing"


def _word(key: str, given: object) -> str:
    if not isinstance(given, list | tuple):
        return f"{key}={given}"
    name = {"offload": "off-load"}.get(key, key)
    return f"{key}=({', '.join(map(str, given))})" if given else f"{name} nothing"


def write_paper_schedule(folder: Path, file: ProblemFile, shown: PipelinesBeside) -> None:
    """What runs of the paper, with its measured numbers as claims."""
    if (run := shown.chosen.run) is None:
        return
    schedule = ScheduleFile.of(
        run.pipeline.problem(),
        with_claims(run.schedule, run.measured),
        pipeline=run.pipeline,
        name=f"{file.name}, {shown.chosen.paper}",
    )
    write_schedule(folder / "paper.json", schedule)
