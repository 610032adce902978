"""``read`` and ``write`` at the door (``import bubbleproof as bp``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.arguments import FilePath, is_plan_like, path_text, text
from bubbleproof.door_calls import door_function
from bubbleproof.door_given import pair

if TYPE_CHECKING:
    from bubbleproof.formats import ProblemFile, ScheduleFile
    from bubbleproof.formats.plans.plan_json import PlanFile


@door_function
def read(path: FilePath) -> ProblemFile | ScheduleFile | PlanFile:
    """What a file says.

    Parameters
    ----------
    path
        A problem (.toml), a schedule (.json, or PyTorch's table in .csv), or a plan (.json, or its
        folder).

    Returns
    -------
    ProblemFile, ScheduleFile or PlanFile
        A schedule file serves wherever a problem and its schedule are taken.

    Raises
    ------
    TypeError
        For what is no path.
    ValueError
        In one line, for content that is not usable.
    """
    from bubbleproof.formats import read_problem, read_schedule
    from bubbleproof.formats.inference import read_timed_table
    from bubbleproof.formats.plans.plan_folder import read_plan_at
    from bubbleproof.formats.plans.plan_json import is_plan_file

    name = path_text(path, asker="read")
    if is_plan_file(name):
        return read_plan_at(name)
    if name.lower().endswith(".toml"):
        return read_problem(name)
    if name.lower().endswith(".json"):
        return read_schedule(name)
    if not name.lower().endswith(".csv"):
        raise ValueError(f"read: a file ends in .toml, .json or .csv, got {name!r}")
    return read_timed_table(name)


@door_function
def write(
    path: FilePath,
    problem: object,
    schedule: object = None,
    *,
    name: str = "",
) -> None:
    """Write a schedule, replacing the file whole or not at all; or a plan into a folder.

    A plan's folder has what ``bubbleproof plan -o`` writes for ``verify``: ``plan.json`` and
    ``schedule.json``, of a model on a cluster also ``problem.toml`` and ``schedule.csv``; and the
    proofs of what was planned, ``certificate.json``.

    Parameters
    ----------
    path
        With its problem (.json), as PyTorch's table (.csv), or as a trace (.perfetto.json); of a
        plan a folder, which is made where it is missing.
    problem, schedule
        As ``check`` takes them, plans too.
    name
        What the file calls the schedule.

    Raises
    ------
    TypeError
        For what is no path, no schedule or no name.
    ValueError
        For another ending, for what the format cannot say, for a plan without a winner, and for
        one that was made of no problem file.
    """
    if is_plan_like(problem):
        from bubbleproof.door_judge import write_plan

        write_plan(path_text(path, asker="write"), problem)
        return
    from bubbleproof.formats import ScheduleFile, write_schedule, write_table, write_trace

    target, name = path_text(path, asker="write"), text(name, "name", asker="write")
    given, found, pipeline = pair(problem, schedule, asker="write")
    if target.endswith(".perfetto.json"):
        write_trace(target, given, found)
    elif target.endswith(".csv"):
        write_table(target, found.program, problem=given)
    elif target.endswith(".json"):
        write_schedule(target, ScheduleFile.of(given, found, pipeline=pipeline, name=name))
    else:
        raise ValueError(f"write: a file ends in .json, .csv or .perfetto.json, got {target!r}")
