"""``bubbleproof claims --engine z3``: what claims call least, found again by one engine alone.

One row for each case: the formula's value, the engine's, and ``equal``, ``differs`` or ``not
decided in the time`` (``claims.second_route``). Exit status 0 where all are equal, 1 where one
differs, 3 where one is not decided, 130 after Ctrl-C, with the cases compared by then. With
``--json``: ``engine`` and ``cases``, each with ``id``, ``reading``, ``family``, ``params``,
``quantity``, ``formula``, ``found`` (null where not decided), ``proof`` and ``outcome``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.progress import Progress, TextColumn

from bubbleproof.commands.interrupts import is_interrupted, unless_interrupted
from bubbleproof.commands.output import (
    BROKEN,
    HOLDS,
    INTERRUPTED,
    UNDECIDED,
    print_json,
    print_table,
    ratio,
    say,
)
from bubbleproof.papers.claims import PaperClaim
from bubbleproof.papers.claims.claim import AS_STATED
from bubbleproof.papers.claims.second_route import (
    SHAPES,
    EngineAnswer,
    RouteOutcome,
    engine_answer,
    optimum_cases,
)
from bubbleproof.papers.commands.claims_options import ClaimsRequest

TIME_LIMIT = 30.0  # seconds
_HEADER = ("claim", "family", "case", "what", "formula", "engine", "outcome", "by")


def run_engine(chosen: Mapping[str, PaperClaim], request: ClaimsRequest, engine: str) -> int:
    """Compare the claims' optima with the engine's, and print one table."""
    cases = optimum_cases(chosen, request.limit or SHAPES)
    if not cases:
        raise ValueError("--engine: none of these claims says what a family's least is")
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[what]}"))
    bar = Progress(*columns, console=Console(stderr=True), disable=request.json, transient=True)
    answers: list[EngineAnswer] = []

    def compare() -> None:
        task = progress.add_task(engine, total=len(cases), what="")
        for case in cases:
            progress.update(task, what=case.claim.id)
            answers.append(engine_answer(case, engine, request.time_limit or TIME_LIMIT))
            progress.advance(task)

    with bar as progress:
        unless_interrupted(compare, None)
    if request.json:
        print_json({"engine": engine, "cases": [_record(answer) for answer in answers]})
    else:
        print_table(f"found by {engine} alone", _HEADER, map(_row, answers))
        counts = Counter(answer.outcome.value for answer in answers)
        told = ", ".join(f"{number} {word}" for word, number in counts.items())
        say(f"{len(answers)} of {len(cases)} cases compared: {told or 'none'}")
    return INTERRUPTED if is_interrupted() else _status(answers)


def _status(answers: list[EngineAnswer]) -> int:
    found = {answer.outcome for answer in answers}
    if RouteOutcome.DIFFERS in found:
        return BROKEN
    return UNDECIDED if RouteOutcome.UNDECIDED in found else HOLDS


def _record(answer: EngineAnswer) -> dict[str, object]:
    case = answer.case
    return {
        "id": case.claim.id,
        "reading": case.reading.name,
        "family": case.measure.family,
        "params": dict(case.at),
        "quantity": case.claim.quantity,
        "formula": ratio(answer.formula),
        "found": None if answer.found is None else ratio(answer.found),
        "proof": answer.proof,
        "outcome": answer.outcome.value,
    }


def _row(answer: EngineAnswer) -> tuple[str, ...]:
    case = answer.case
    name = case.claim.id
    return (
        name if case.reading.name == AS_STATED else f"{name}\n({case.reading.name})",
        case.measure.family,
        " ".join(f"{letter}={value}" for letter, value in case.at.items()),
        "memory" if case.measure.goal == "peak" else "time",
        str(answer.formula),
        "" if answer.found is None else str(answer.found),
        answer.outcome.value,
        answer.proof,
    )
