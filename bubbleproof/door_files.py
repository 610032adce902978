"""Files at the door (``import bubbleproof as bp``): schedules, and what a model costs on cards."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from bubbleproof.arguments import (
    FilePath,
    door_function,
    is_plan_like,
    path_text,
    text,
    told,
    whole,
    yes,
)
from bubbleproof.door_given import pair, schedule_file
from bubbleproof.faults import WrongType

if TYPE_CHECKING:
    from bubbleproof.costs.model_costs import ModelCosts
    from bubbleproof.costs.times.estimation import Estimate
    from bubbleproof.costs.transformer import Transformer
    from bubbleproof.door_types import GivenFirst, GivenProblem, GivenSchedule
    from bubbleproof.formats import ProblemFile, ScheduleFile
    from bubbleproof.formats.conversion import WrittenFile
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
    from bubbleproof.formats.inputs import found_instead, other_thing, read_plan_input

    name, kinds = path_text(path, asker="read"), (Holds.PROBLEM, Holds.SCHEDULE)
    if (plan := read_plan_input([name])) is not None:
        return plan
    if (known := format_of(name)) is None:
        instead = found_instead(name)
        hint = f", {instead}" if instead else ""
        raise ValueError(f"read: a file ends in {listed(endings(*kinds))}, got {name!r}{hint}")
    if known.holds not in kinds:
        raise other_thing(name, known)
    found: ProblemFile | ScheduleFile = known.read(str(file_within(name)))
    return found


@door_function
def write(
    path: FilePath,
    problem: GivenFirst,
    schedule: GivenSchedule | None = None,
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
    if not isinstance(path, str | PathLike):
        raise WrongType(f"write: the file goes first, as in write(path, problem), got {told(path)}")
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
def estimate(
    rows: FilePath, hardware: FilePath, *, refused: list[str] | None = None
) -> list[Estimate]:
    """What iterations would take, in time and memory.

    Parameters
    ----------
    rows
        A CSV file, one iteration a row: a model, how it is cut over cards, the batch
        (``costs.times.job_rows``). No measured column is looked at.
    hardware
        A card with its constants: a file that ``bubbleproof calibrate`` wrote, or a card's name.
    refused
        Takes what is wrong with rows that cannot be read, one line each with the row's number, and
        the others are estimated; without it the first such row raises.

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
    path = path_text(rows, asker="estimate")
    told = read_rows(path, measured=False, on=by.card.name, refused=refused)
    return estimates(told, by, refused)


@door_function
def convert(
    schedule: GivenFirst,
    path: FilePath,
    *,
    communication: bool = False,
    torch: str | None = None,
    problem: GivenProblem | None = None,
) -> WrittenFile:
    """Write a schedule in another format, as ``bubbleproof convert`` does.

    Parameters
    ----------
    schedule
        Whatever holds one, as ``check`` takes it.
    path
        The file to write: .json, .csv or .perfetto.json.
    communication
        Write messages and all that PyTorch's runtime needs into the table (.csv).
    torch
        For which torch, such as ``"2.13"``; by default the installed one.
    problem
        Put it on this problem first.

    Returns
    -------
    WrittenFile
        What of the schedule the format cannot say (``losses``), and which runtime takes the file.

    Raises
    ------
    TypeError, ValueError
        As ``check`` does; also for another ending, and a torch whose tables are not known.
    """
    from bubbleproof.formats.conversion import Conversion

    asked = Conversion(
        target=path_text(path, asker="convert"),
        communication=yes(communication, "communication", asker="convert"),
        torch=None if torch is None else text(torch, "torch", asker="convert"),
    )
    return asked.write(schedule_file(schedule, asker="convert", problem=problem))


@door_function
def costs(
    model: Transformer | FilePath,
    *,
    tensor: int = 1,
    pipeline: int = 1,
    data: int = 1,
    context: int = 1,
    expert: int = 1,
    micro_batch: int = 1,
    sequence: int | None = None,
    zero: int = 0,
    scope: str | None = None,
    sequence_parallel: bool | None = None,
    accounting: str | None = None,
    precision: str | None = None,
) -> ModelCosts:
    """What a model costs in a deployment: parameters, FLOPs, saved bytes and state bytes.

    Parameters
    ----------
    model
        A published one by its name, a file with a table ``[model]``, or a ``Model``.
    tensor, pipeline, data, context, expert
        How many cards each kind of parallelism takes.
    micro_batch, sequence
        Samples of a microbatch, and tokens of a sample (by default the model's longest).
    zero, scope
        The ZeRO level, and what is recomputed: ``none``, ``attention`` or ``full``.
    sequence_parallel, accounting, precision
        What a framework keeps and how it counts, by name; by default the file's.

    Returns
    -------
    ModelCosts
        ``parameters`` of the whole model; of one device ``flops``, ``saved_bytes`` by scope and
        ``state_bytes``.

    Raises
    ------
    TypeError, ValueError
        For a model that is not known, and sizes that do not divide.
    """
    from bubbleproof.costs import Deployment, Transformer, model_costs
    from bubbleproof.formats.clusters.cluster_toml import named_model

    if isinstance(model, Transformer):
        shape, base = model, Deployment()
    else:
        shape, base = named_model(path_text(model, asker="costs"))
    numbers = {
        "tensor": tensor, "pipeline": pipeline, "data": data, "context": context,
        "expert": expert, "micro_batch": micro_batch, "zero": zero,
        **({} if sequence is None else {"sequence": sequence}),
    }  # fmt: skip
    words = {"scope": scope, "accounting": accounting, "precision": precision}
    told = {name: text(word, name, asker="costs") for name, word in words.items() if word}
    flag = {} if sequence_parallel is None else {"sequence_parallel": sequence_parallel}
    sizes = {name: whole(value, name, asker="costs") for name, value in numbers.items()}
    return model_costs(shape, base.with_changes(**sizes, **told, **flag))
