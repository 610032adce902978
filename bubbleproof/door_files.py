"""Files at the door (``import bubbleproof as bp``): ``read``, ``write`` and ``estimate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.arguments import FilePath, door_function, is_plan_like, path_text, text
from bubbleproof.door_given import pair

if TYPE_CHECKING:
    from bubbleproof.costs.times.estimation import Estimate
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
    from bubbleproof.formats.format_table import Holds, endings, file_within, format_of, listed
    from bubbleproof.formats.inputs import other_thing, read_plan_input

    name, kinds = path_text(path, asker="read"), (Holds.PROBLEM, Holds.SCHEDULE)
    if (plan := read_plan_input([name])) is not None:
        return plan
    if (known := format_of(name)) is None:
        raise ValueError(f"read: a file ends in {listed(endings(*kinds))}, got {name!r}")
    if known.holds not in kinds:
        raise other_thing(name, known)
    found: ProblemFile | ScheduleFile = known.read(str(file_within(name)))
    return found


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
    from bubbleproof.formats import ScheduleFile
    from bubbleproof.formats.format_table import listed, written, written_as

    target, name = path_text(path, asker="write"), text(name, "name", asker="write")
    given, found, pipeline = pair(problem, schedule, asker="write")
    if (known := written_as(target)) is None:
        raise ValueError(f"write: a file ends in {listed([*written()])}, got {target!r}")
    known.write(target, ScheduleFile.of(given, found, pipeline=pipeline, name=name))


@door_function
def estimate(rows: FilePath, hardware: FilePath) -> list[Estimate]:
    """What iterations would take, in time and memory.

    Parameters
    ----------
    rows
        A CSV file, one iteration a row: a model, how it is cut over cards, the batch
        (``costs.times.job_rows``). No measured column is looked at.
    hardware
        A card with its constants: a file that ``bubbleproof calibrate`` wrote, or a card's name.

    Returns
    -------
    list of Estimate
        ``iteration_ms``, ``allocated_gib`` of the fullest card, and ``stages``, in the rows' order.

    Raises
    ------
    TypeError
        For what is no path.
    ValueError
        In one line, for rows or hardware that are not usable.
    """
    from bubbleproof.costs.times.estimation import estimates
    from bubbleproof.formats.clusters.hardware_toml import read_hardware, read_rows

    by = read_hardware(path_text(hardware, asker="estimate"))
    return estimates(read_rows(path_text(rows, asker="estimate"), measured=False), by)
