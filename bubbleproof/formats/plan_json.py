"""A plan in one file: the problem file it was made for, the winner, and its schedule.

::

    {
      "format": "bubbleproof/plan",
      "version": 1,
      "name": "GPT-3 13B",
      "problem": "ranks = 8 ...",
      "winner": {"chunks": 5, "placement": "loop", "backward": "split", "slices": 1, ...},
      "schedule": {"format": "bubbleproof/schedule", ...}
    }

``problem`` is the text of the problem file, from which a reader derives the candidates anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bubbleproof.formats.bundle_json import CandidateLayout, candidate_of, candidate_to_json
from bubbleproof.formats.errors import UnusableInput, about
from bubbleproof.formats.files import MEBIBYTE, FilePath, write_text
from bubbleproof.formats.json_text import read_json, render_json
from bubbleproof.formats.problem_toml import ProblemFile, problem_file_of_text
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.formats.schedule_json import TABLES, schedule_content, schedule_of
from bubbleproof.formats.validation import Layout, validate
from bubbleproof.theory.pipelines.plan_space import Candidate

FORMAT = "bubbleproof/plan"
VERSION = 1
SIZE_LIMIT = 256 * MEBIBYTE


class PlanFileLayout(Layout):
    """A plan file."""

    format: Literal["bubbleproof/plan"]
    version: Literal[1]
    name: str = ""
    problem: str
    winner: CandidateLayout
    schedule: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanFile:
    """What a plan file says; ``problem`` has a space that ``winner`` may or may not be of."""

    name: str
    problem: ProblemFile
    winner: Candidate
    schedule: ScheduleFile


def write_plan(
    path: FilePath, *, name: str, problem: str, winner: Candidate, schedule: ScheduleFile
) -> None:
    """Write a plan; ``problem`` is its problem file's text.

    An existing file is replaced whole or not at all.
    """
    with about(path):
        content = {
            "format": FORMAT,
            "version": VERSION,
            "name": name,
            "problem": problem,
            "winner": candidate_to_json(winner),
            "schedule": schedule_content(schedule),
        }
        write_text(path, render_json(content, table_keys=TABLES))


def read_plan(path: FilePath) -> PlanFile:
    """Read a plan file.

    Raises ``UnusableInput`` naming the key, what was expected and what was found.
    """
    with about(path):
        layout = validate(PlanFileLayout, read_json(path, FORMAT, limit=SIZE_LIMIT))
        problem = problem_file_of_text(layout.problem, name=layout.name)
        if problem.plan is None:
            raise UnusableInput("problem", "a problem file with a table [plan]", "none")
        return PlanFile(
            name=layout.name,
            problem=problem,
            winner=candidate_of(layout.winner),
            schedule=schedule_of(layout.schedule),
        )
