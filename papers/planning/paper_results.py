"""A paper's choice beside a plan: its part of the JSON, its rows, and its schedule as a file.

In JSON ``paper`` has ``name``, ``choice`` (what the paper's algorithm says), ``value`` (ticks of
what runs of it), ``executable``, ``note``, and ``joint``, the plan's ``value`` and the candidate
that ``run``s. With ``-o`` the schedule of what runs of the paper is written as ``paper.json``;
``verify`` takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bubbleproof.commands.verdicts import section_of
from bubbleproof.facts import Fact, valued
from bubbleproof.formats import write_schedule
from bubbleproof.formats.problem_toml import ProblemFile
from bubbleproof.formats.schedule_file import ScheduleFile, with_claims
from bubbleproof.papers.planning.paper_choice import PaperChoice
from bubbleproof.planners import Plan
from bubbleproof.planners.jitter import AnyPlan
from bubbleproof.report.amounts import ticks
from bubbleproof.report.page import ScheduleSection

RESULTS = ("ticks", "memory", "saved", "predicted")  # of a choice, as the paper counts them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelinesBeside:
    """A paper's choice; ``value`` is what runs of it takes, to the end of the step."""

    chosen: PaperChoice
    value: int | None

    def facts(self, found: AnyPlan, best: int | None, unit: str) -> list[Fact]:
        """What the paper says; ``best`` is the plan's value."""
        chosen, joint = self.chosen, None
        if isinstance(found, Plan):
            joint = {"value": best, "run": str(found.winner.candidate)}
        value = "nothing runs" if self.value is None else ticks(self.value, unit)
        told = {
            f"{chosen.paper} chooses": choice_text(chosen.choice),
            f"{chosen.paper} as printed": "runs" if chosen.executable else "does not run",
            f"{chosen.paper} takes": f"{value}; {chosen.note}" if chosen.note else value,
        }
        if best is not None and self.value:
            less = 100 * (self.value - best) / self.value
            word = "less" if less >= 0 else "more"
            told["by the same costs"] = f"the plan takes {abs(less):.2f} % {word}"
        stated = valued(
            "paper",
            name=chosen.paper,
            choice=dict(chosen.choice),
            value=self.value,
            executable=chosen.executable,
            note=chosen.note,
            joint=joint,
        )
        less_text = told.get("by the same costs", "")
        line = f"{chosen.paper} chooses {choice_text(chosen.choice, short=True)}: {value}"
        return [
            *stated,
            Fact(told="; ".join(filter(None, (line, less_text)))),  # all of it in a line
            *(Fact(label=label, value=text) for label, text in told.items()),
        ]

    def sections(self, found: Plan) -> list[ScheduleSection]:
        """What runs of the paper, for the plan's page; nothing where it is the plan."""
        run = self.chosen.run
        if run is None or found.winner.schedule is run.schedule:
            return []
        title = f"what runs of the choice of {self.chosen.paper}"
        return [section_of(title, run.pipeline.problem(), run.schedule, None)]

    def write(self, folder: Path, file: ProblemFile) -> None:
        """What runs of the paper, with its measured numbers as claims."""
        if (run := self.chosen.run) is None:
            return
        schedule = ScheduleFile.of(
            run.pipeline.problem(),
            with_claims(run.schedule, run.measured),
            pipeline=run.pipeline,
            name=f"{file.name}, {self.chosen.paper}",
        )
        write_schedule(folder / "paper.json", schedule)


def choice_text(choice: Mapping[str, object], *, short: bool = False) -> str:
    """The choice in words; what the paper leaves undecided is left out.

    In ``short`` so are what is chosen not to be done, and what the paper makes of its choice.

    >>> choice_text({"chunks": 2, "recompute": [], "offload": [2, 3], "q": None})
    'chunks=2, recompute nothing, offload=(2, 3)'
    >>> choice_text({"chunks": 2, "recompute": [], "offload": [2, 3], "ticks": 84}, short=True)
    'chunks 2, offload (2, 3)'
    """
    left_out: tuple[object, ...] = (None, False, [], ()) if short else (None,)
    kept = {key: given for key, given in choice.items() if given not in left_out}
    if short:
        kept = {key: given for key, given in kept.items() if key not in RESULTS}
    told = [_word(key, given) for key, given in kept.items()]
    return (", ".join(told) or "nothing").replace("=", " " if short else "=")


def _word(key: str, given: object) -> str:
    if not isinstance(given, list | tuple):
        return f"{key}={given}"
    name = {"offload": "off-load"}.get(key, key)
    return f"{key}=({', '.join(map(str, given))})" if given else f"{name} nothing"
