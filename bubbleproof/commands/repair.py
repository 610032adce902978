"""``bubbleproof repair SCHEDULE``: the valid schedule that moves the fewest of its tasks.

Status, bound and proof are about the problem: about every schedule of it, whatever it moves. How
good the repair is among those of as few moves is ``is_shortest``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bubbleproof.commands.demand_words import EXPLAINING, why_not
from bubbleproof.commands.first_lines import print_answer
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    print_json,
    print_table,
    say,
)
from bubbleproof.commands.solve import schedule_file
from bubbleproof.facts import Fact, rows
from bubbleproof.formats import ScheduleFile, write_schedule
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.report.amounts import time
from bubbleproof.report.solved_result import ProblemInput, SolvedResult, bounded
from bubbleproof.solvers import SolveOptions, Status
from bubbleproof.solvers.demands import Demands
from bubbleproof.solvers.repair_search import SCOPE, Repair, repair
from bubbleproof.solvers.solving import solve

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
    source = ProblemInput(name=given.name, problem=given.problem, pipeline=given.pipeline)
    if found is None:
        return _refuse(source, options, detail, json)
    if output is not None:
        with written_together(None, output) as (_, target):
            write_schedule(target, schedule_file(source, found.result))
    if json:
        print_json({**found.to_dict(), **SolvedResult.of(source, found.result).to_dict()})
    elif print_answer(_lines(given, found, output), detail):
        told = _rows([*found.facts(), *SolvedResult.of(source, found.result).facts()])
        print_table(f"{given.name}, repaired", ("quantity", "value"), told)
    return HOLDS if found.is_fewest else UNDECIDED


def _refuse(source: ProblemInput, options: SolveOptions, detail: Detail, json: bool) -> int:
    """What ``solve`` says of the problem where it has no schedule; else that none was found."""
    plain = solve(source.problem, options.at_most(EXPLAINING))
    is_impossible = plain.status is Status.INFEASIBLE
    causes = why_not(source.problem, options, Demands()) if is_impossible else ()
    if json:
        status = plain.status if is_impossible else Status.UNKNOWN
        refused = {"name": source.name, "status": status.name, "statement": status.value}
        refused["lower_bound_of"] = bounded(source)
        refused |= {"reason": plain.reason} if is_impossible else {}
        print_json({**dict.fromkeys(KEYS), **refused, "scope": SCOPE, "causes": list(causes)})
    elif is_impossible:
        because = [f"because  {each}" for each in causes or (plain.reason,) if each]
        if print_answer([f"INFEASIBLE  {source.name} has no valid schedule", *because], detail):
            told = [
                *_rows(SolvedResult.of(source, plain).facts()),
                *(("because", cause) for cause in causes),
            ]
            print_table(source.name, ("quantity", "value"), told)
    else:
        say(f"no repair of {source.name} was found in {options.time_limit:g} s")
    return BROKEN if is_impossible else UNDECIDED


def _rows(facts: Iterable[Fact]) -> list[tuple[str, str]]:
    return [(label, told) for label, _, told, _ in rows(facts)]


def _lines(given: ScheduleFile, found: Repair, output: str | None) -> list[str]:
    """How many tasks move and which, and what the schedule is then worth."""
    told = {label: value for label, _, value, _ in rows(found.facts())}
    lines = [f"REPAIRED  {given.name}: moved {told['moves']}"]
    lines += [f"{name:8} {told[name]}" for name in ("moved", "added", "dropped") if name in told]
    makespan = found.result.makespan
    if makespan is not None:
        lines.append(f"time     {time(makespan, given.problem.unit)} ({told['shortest']})")
    return lines if output is None else [*lines, f"wrote    {output}"]
