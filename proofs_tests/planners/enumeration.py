"""The planner against enumeration: each concrete pipeline of an instance solved by itself.

    python -m proofs_tests.planners.enumeration 40 [--write]

prints, for so many random instances, the value of the plan and of the enumeration (they are equal
where the planner is right) with what each took; ``--write`` writes it to
``records/plan-enumeration.md``. The exit status is 1 where they differ anywhere. The
enumeration goes through all candidates and choices (``joint_instances``, ``every_choice``) and asks
a plain CP-SAT model of each concrete pipeline whether it has anything below the best so far.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from benchmarks.markdown import markdown_table
from bubbleproof.planners import NoPlanFound, Plan, PlanOptions, plan
from bubbleproof.solvers import Status
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.placement import num_downward
from bubbleproof.verify.candidates.bundle import check_bundle
from proofs_tests.patience import PATIENCE
from proofs_tests.planners.every_choice import every_choice
from proofs_tests.planners.found_plans import value_found
from proofs_tests.planners.joint_instances import Instance, instance
from proofs_tests.solvers.plain_model import optimum

PAGE = Path(__file__).resolve().parents[2] / "records" / "plan-enumeration.md"
EVERY_NUMBER = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One instance: what the plan says, and what there is."""

    number: int
    given: Instance
    found: Plan | NoPlanFound
    truth: int | None
    choices: int
    plan_seconds: float
    truth_seconds: float

    @property
    def fault(self) -> str | None:
        """What is wrong with the plan, or None."""
        found, value = self.found, value_found(self.found)
        if found.status is (Status.INFEASIBLE if self.truth is None else Status.OPTIMAL):
            if value != self.truth:
                return f"{value} is no optimum, {self.truth} is"
            verdict = check_bundle(found.space, found.bundle)
            if verdict.refusals:
                return verdict.refusals[0]
            if self.truth is not None and not (isinstance(found, Plan) and found.verdict.ok):
                return "the winner's schedule breaks a rule"
            return None
        return f"{found.status.name} {value}, but the optimum is {self.truth}"


def enumerated(given: Instance) -> tuple[int | None, int]:
    """The least makespan over all candidates and choices (None: nothing fits), and their number."""
    best, count = None, 0
    for pipeline, allowed in given.pipelines():
        for chosen in every_choice(pipeline, allowed):
            count += 1
            problem = chosen.problem()
            found = optimum(
                problem, "makespan", PATIENCE, below=best, alike=_alike(chosen, problem)
            )
            best = best if found is None else found
    return best, count


def _alike(chosen: Pipeline, problem: Problem) -> list[list[int]]:
    """First forwards of microbatches that go one way and of which nothing is chosen one by one."""
    if chosen.choices.evictions:
        return []
    tasks = [problem.task(f"0F{j}") for j in range(chosen.num_microbatches)]
    down = num_downward(len(tasks)) if chosen.is_bidirectional else len(tasks)
    return [tasks[:down], tasks[down:]]


def planned(given: Instance) -> Plan | NoPlanFound:
    return plan(given.space, PlanOptions(time_limit=PATIENCE, threads=1))


def compared(number: int) -> Row:
    """Plan and enumerate the instance of that number."""
    given, begun = instance(number), perf_counter()
    found = planned(given)
    between = perf_counter()
    truth, choices = enumerated(given)
    return Row(
        number=number,
        given=given,
        found=found,
        truth=truth,
        choices=choices,
        plan_seconds=between - begun,
        truth_seconds=perf_counter() - between,
    )


def table(rows: Sequence[Row]) -> str:
    return markdown_table(
        (
            "instance",
            "ranks",
            "microbatches",
            "candidates",
            "choices",
            "plan",
            "enumeration",
            "plan, s",
            "enumeration, s",
        ),
        [
            (
                row.number,
                row.given.num_ranks,
                row.given.num_microbatches,
                len(row.found.judged),
                row.choices,
                _value(value_found(row.found)),
                _value(row.truth),
                f"{row.plan_seconds:.1f}",
                f"{row.truth_seconds:.1f}",
            )
            for row in rows
        ],
    )


def _value(ticks: int | None) -> str:
    return "nothing fits" if ticks is None else str(ticks)


def page(rows: Sequence[Row]) -> str:
    """The page as Markdown."""
    day = datetime.now(tz=UTC).date().isoformat()
    faults = [f"- instance {row.number}: {row.fault}" for row in rows if row.fault]
    equal = len(rows) - len(faults)
    engine = sum(bool(row.found.believed) for row in rows)
    return "\n".join(
        (
            "# The planner against enumeration\n",
            f"Generated by `python -m proofs_tests.planners.enumeration {len(rows)} --write`, "
            f"{day}; not edited.\n",
            "Random joint instances: chunks, placements and backwards beside recomputation,",
            "eviction and off-load, under a memory. *Plan* is the least makespan that `plan` finds",
            "and claims to be least; *enumeration* solves every concrete pipeline by a plain model",
            "that shares nothing with it. *Choices* counts those pipelines.\n",
            f"{equal} of {len(rows)} are equal, each with its schedule and its bundle of proofs",
            f"accepted; {engine} of them rest on an engine's word.\n",
            table(rows),
            *faults,
        )
    )


def rows(count: int) -> Iterator[Row]:
    for number in range(count):
        yield compared(number)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 where plan and enumeration differ."""
    parser = argparse.ArgumentParser(prog="proofs_tests.planners.enumeration")
    parser.add_argument("count", type=int, nargs="?", default=EVERY_NUMBER, help="instances")
    parser.add_argument("--write", action="store_true", help="write the page")
    given = parser.parse_args(words)
    found = []
    for row in rows(given.count):
        found.append(row)
        plan = value_found(row.found)
        sys.stderr.write(
            f"{row.number}: {plan} {row.truth} {row.choices} choices, "
            f"{row.plan_seconds:.1f} s, {row.truth_seconds:.1f} s\n"
        )
    text = page(found)
    if given.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 1 if any(row.fault for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
