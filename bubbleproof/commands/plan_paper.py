"""``plan FILE --paper NAME``: a paper's choice beside the joint plan, by the same costs.

In JSON ``paper`` has ``name``, ``choice`` (what the paper's algorithm says), ``value`` (ticks of
what runs of it), ``executable``, ``note``, and ``joint``: the least ticks by the same costs, of the
joint plan's schedules and the paper's (``run`` tells whose they are). With ``-o`` the schedule of
what runs is written as ``paper.json``, for ``verify``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bubbleproof.commands.results import with_claims
from bubbleproof.formats import UnusableInput, write_schedule
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.planners import Plan
from bubbleproof.planners.known_schedules import Known
from bubbleproof.planners.papers import paper_choice, require_paper
from bubbleproof.planners.papers.paper_choice import Given, Joint, PaperChoice, joint, known_of
from bubbleproof.report.amounts import ticks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beside:
    """A paper's choice, and the best by its costs."""

    chosen: PaperChoice
    best: Joint | None


def chosen_by(name: str | None, file: ProblemFile) -> PaperChoice | None:
    """What the paper's planner says of a problem file; None where no paper is asked for.

    Raises ``ValueError`` for an unknown paper, ``UnusableInput`` for a file that it cannot take.
    """
    if name is None:
        return None
    require_paper(name)
    if file.plan is None:
        raise UnusableInput("plan", "this table, such as chunks = [1, 2]", "nothing", file.name)
    return paper_choice(name, Given(space=file.plan, table=file.paper.get(name, {})))


def known_to(chosen: PaperChoice | None) -> tuple[Known, ...]:
    """What the search begins with."""
    known = None if chosen is None else known_of(chosen)
    return () if known is None else (known,)


def beside(found: Plan, chosen: PaperChoice | None) -> Beside | None:
    """The paper's choice beside the joint plan."""
    return None if chosen is None else Beside(chosen=chosen, best=joint(found, chosen))


def paper_to_json(shown: Beside) -> dict[str, object]:
    """The paper's part of the answer."""
    chosen, best = shown.chosen, shown.best
    return {
        "name": chosen.paper,
        "choice": dict(chosen.choice),
        "value": chosen.value,
        "executable": chosen.executable,
        "note": chosen.note,
        "joint": None if best is None else {"value": best.value, "run": best.name},
    }


def paper_rows(shown: Beside | None, unit: str) -> list[tuple[str, str]]:
    """The paper's rows of the summary."""
    if shown is None:
        return []
    chosen, best = shown.chosen, shown.best
    value = "nothing runs" if chosen.value is None else ticks(chosen.value, unit)
    words = " ".join(f"{key}={_word(given)}" for key, given in chosen.choice.items())
    rows = [
        (f"{chosen.paper} chooses", words),
        (f"{chosen.paper} as printed", "runs" if chosen.executable else "does not run"),
        (f"{chosen.paper} takes", f"{value}; {chosen.note}"),
    ]
    if best is not None:
        rows.append(("joint, by the same costs", f"{ticks(best.value, unit)}, {best.name}"))
    return rows


def _word(given: object) -> str:
    return ",".join(map(str, given)) if isinstance(given, list | tuple) else str(given)


def write_paper_schedule(folder: Path, file: ProblemFile, chosen: PaperChoice) -> None:
    """What runs of the paper, with its measured numbers as claims."""
    if chosen.run is None:
        return
    run = chosen.run
    schedule = ScheduleFile.of(
        run.pipeline.problem(),
        with_claims(run.schedule, run.measured),
        pipeline=run.pipeline,
        name=f"{file.name}, {chosen.paper}",
    )
    write_schedule(folder / "paper.json", schedule)
