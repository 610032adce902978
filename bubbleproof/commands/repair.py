"""``bubbleproof repair SCHEDULE``: the valid schedule that moves the fewest of its tasks.

Status, bound and proof are about the problem: about every schedule of it, whatever it moves. How
good the repair is among those of as few moves is ``is_shortest``.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.demand_words import EXPLAINING, why_not
from bubbleproof.commands.first_lines import print_answer
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    counted,
    print_json,
    print_table,
    say,
)
from bubbleproof.commands.results import ProblemInput, bounded, result_rows, result_to_json
from bubbleproof.commands.solve import schedule_file
from bubbleproof.formats import ScheduleFile, write_schedule
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.report.amounts import time
from bubbleproof.solvers import ProofOrigin, SolveOptions, Status
from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.repair_search import Repair, RepairedRow, repair
from bubbleproof.solvers.solving import solve

SHOWN = 12
UNCERTIFIED = "an uncertified bound of cpsat"
KEYS = (  # of the JSON object; null where nothing was found
    "moves",
    "is_fewest",
    "is_shortest",
    "moved",
    "added",
    "dropped",
    "kept_orders",
    "scope",
    "name",
    "status",
    "statement",
    "objective",
    "value",
    "proof",
    "reason",
    "makespan",
    "peak",
    "lower_bound",
    "lower_bound_of",
    "engine_bound",
    "peak_bound",
    "gap",
    "origin",
    "certificate",
    "chosen",
    "measured",
    "seconds",
)
SCOPE = "status and bound are about all schedules of the problem, whatever they move"


def run_repair(
    schedule: Sequence[str],
    detail: Detail,
    problem: str | None,
    dialect: str | None,
    time_limit: float,
    output: str | None,
    json: bool,
) -> int:
    """Repair one schedule, say what moved, and write it where asked."""
    given = read_schedule_input(schedule, dialect=dialect, problem=problem)
    options = SolveOptions(time_limit=time_limit)
    found = repair(given.problem, given.compute, options)
    source = ProblemInput(
        name=given.name, problem=given.problem, pipeline=given.pipeline, file=None
    )
    if found is None:
        return _refuse(source, options, detail, json)
    if output is not None:
        with written_together(None, output) as (_, target):
            write_schedule(target, schedule_file(source, found.result))
    if json:
        print_json(
            {
                "moves": found.num_moves,
                "is_fewest": found.is_fewest,
                "is_shortest": found.is_shortest,
                "moved": [given.problem.label(task) for task, _ in found.moved],
                "added": [given.problem.label(task) for task, _ in found.added],
                "dropped": found.num_dropped,
                "kept_orders": [_order(given, pair) for pair in found.kept_orders],
                "scope": SCOPE,
                **result_to_json(source, found.result),
            }
        )
    elif print_answer(_lines(given, found, output), detail):
        rows = [*_rows(given, found), *result_rows(source, found.result)]
        print_table(f"{given.name}, repaired", ("quantity", "value"), rows)
    return HOLDS if found.is_fewest else UNDECIDED


def _refuse(source: ProblemInput, options: SolveOptions, detail: Detail, json: bool) -> int:
    """What ``solve`` says of the problem where it has no schedule; else that none was found."""
    plain = solve(source.problem, options.at_most(EXPLAINING))
    is_impossible = plain.status is Status.INFEASIBLE
    causes = why_not(source.problem, options, Demands()) if is_impossible else ()
    if json:
        status = plain.status if is_impossible else Status.UNKNOWN
        told = {"name": source.name, "status": status.name, "statement": status.value}
        told["lower_bound_of"] = bounded(source)
        told |= {"reason": plain.reason} if is_impossible else {}
        print_json({**dict.fromkeys(KEYS), **told, "scope": SCOPE, "causes": list(causes)})
    elif is_impossible:
        because = [f"because  {each}" for each in causes or (plain.reason,) if each]
        if print_answer([f"INFEASIBLE  {source.name} has no valid schedule", *because], detail):
            rows = [*result_rows(source, plain), *(("because", cause) for cause in causes)]
            print_table(source.name, ("quantity", "value"), rows)
    else:
        say(f"no repair of {source.name} was found in {options.time_limit:g} s")
    return BROKEN if is_impossible else UNDECIDED


def _lines(given: ScheduleFile, found: Repair, output: str | None) -> list[str]:
    """How many tasks move and which, and what the schedule is then worth."""
    fewest = f"fewest: {UNCERTIFIED}" if found.is_fewest else "fewer may suffice"
    told = [f"REPAIRED  {given.name}: {counted(found.num_moves, 'task')} moved ({fewest})"]
    for name, tasks in (("moved", found.moved), ("added", found.added)):
        if tasks:
            told.append(f"{name:8} {_named(given, tasks)}")
    if found.num_dropped:
        told.append(f"dropped  {counted(found.num_dropped, 'row')}, repeated or foreign")
    makespan = found.result.makespan
    if makespan is not None:
        told.append(f"time     {time(makespan, given.problem.unit)} ({_shortest(found)})")
    return told if output is None else [*told, f"wrote    {output}"]


def _rows(given: ScheduleFile, found: Repair) -> list[tuple[str, str]]:
    proof = f"no fewer suffice: {UNCERTIFIED}" if found.is_fewest else "fewer may suffice"
    rows = [("moves", f"{found.num_moves} ({proof})")]
    for name, tasks in (("moved", found.moved), ("added", found.added)):
        if tasks:
            rows.append((name, _named(given, tasks)))
    if found.num_dropped:
        text = f"{counted(found.num_dropped, 'row')}: a repetition, or no task of the resource"
        rows.append(("dropped", text))
    rows.append(("kept orders", _shortened([_order(given, pair) for pair in found.kept_orders])))
    return [*rows, ("shortest", _shortest(found)), ("scope", SCOPE)]


def _shortest(found: Repair) -> str:
    """How good the schedule is among the repairs of as few moves."""
    if found.result.proof is ProofOrigin.CERTIFICATE:
        return "no schedule of the problem is shorter"
    if found.is_shortest:
        return f"no repair of as few moves is shorter: {UNCERTIFIED}"
    return "a repair of as few moves may be shorter"


def _named(given: ScheduleFile, tasks: Sequence[RepairedRow]) -> str:
    return _shortened([given.problem.label(task) for task, _ in tasks])


def _order(given: ScheduleFile, pair: tuple[int, int]) -> str:
    """As ``--require`` takes it."""
    return "<".join(given.problem.label(task) for task in pair)


def _shortened(words: Sequence[str]) -> str:
    shown = " ".join(words[:SHOWN])
    return shown if len(words) <= SHOWN else f"{shown} and {len(words) - SHOWN} more"
