"""Wrong orders given to PyTorch's two validators and to ``verify``: who refuses which?

The original is 1F1B with p=4, m=8 (our family's order, which all three accept). Every mutation
breaks one thing; all judges know p, m and the number of stages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.torch_tables import (
    Refused,
    Size,
    Table,
    add_send_recv,
    validator_accepts,
)
from bubbleproof.theory.families import member
from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.verify import check_program

RANKS, MICROBATCHES = 4, 8

TextOrders = list[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Who accepts a mutation; ``broken`` names the rules that ``verify`` finds violated."""

    mutation: str
    validator_accepts: bool
    lowering_accepts: bool
    broken: tuple[str, ...]
    message: str


def shift_microbatches(orders: TextOrders) -> None:
    for order in orders:
        order[:] = map(_shifted, order)


def _shifted(text: str) -> str:
    action = Action.parse(text)
    return f"{action.stage}{action.kind.name}{action.microbatch + 1}"


def repeat_backward(orders: TextOrders) -> None:
    """On rank 0, microbatch 0 by B and again by I and W, microbatch 7 not at all."""
    orders[0].remove("0B7")
    orders[0] += ["0I0", "0W0"]


def put_backward_first(orders: TextOrders) -> None:
    at = orders[3].index("3F2")
    orders[3].insert(at + 1, orders[3].pop(at))


def _is_backward(text: str) -> bool:
    return Action.parse(text).kind is Kind.B


MUTATIONS: dict[str, Callable[[TextOrders], None]] = {  # by what they do to the original
    "none (the original)": lambda _: None,
    "1F0 twice on rank 1": lambda orders: orders[1].insert(1, "1F0"),
    "all microbatches numbered 1 to 8": shift_microbatches,
    "stage 0: backward of microbatch 0 twice, of 7 never": repeat_backward,
    # The others wait for its backward.
    "last rank runs all forwards first, the others 1F1B": lambda orders: orders[3].sort(
        key=_is_backward
    ),
    "2F3 missing": lambda orders: orders[2].remove("2F3"),
    "3B2 before 3F2": put_backward_first,
}


def judge_mutations() -> list[Judgement]:
    """Every mutation before all three judges."""
    return [_judged(name, mutate) for name, mutate in MUTATIONS.items()]


def _judged(name: str, mutate: Callable[[TextOrders], None]) -> Judgement:
    original = member("1f1b", p=RANKS, m=MICROBATCHES)
    orders = [[str(a) for a in order] for order in original.schedule.program.orders(RANKS)]
    mutate(orders)
    program, size = (
        Program.from_orders(orders),
        Size(ranks=RANKS, microbatches=MICROBATCHES, chunks=1),
    )
    table, problem = Table.of(program, size, tuple(range(RANKS))), original.problem
    verdict, _ = check_program(problem, program)
    return Judgement(
        mutation=name,
        validator_accepts=validator_accepts(table),
        lowering_accepts=_lowering_accepts(table),
        broken=tuple(rule.name.lower() for rule in verdict.broken),
        message=verdict.violations[0].message if verdict.violations else "",
    )


def _lowering_accepts(table: Table) -> bool:
    try:
        add_send_recv(table.compute, table.stage_rank)
    except Refused:
        return False
    return True
