"""Wrong orders given to PyTorch's two validators and to ``verify``: who refuses which?

The original is 1F1B with p=4, m=8 (our family's order, which all three accept). Every mutation
breaks one thing; all judges know p, m and the number of stages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from benchmarks.torch_tables import (
    Refused,
    Size,
    Table,
    add_send_recv,
    to_orders,
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

    def to_json(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)


def original() -> TextOrders:
    """The correct order, rank by rank."""
    program = member("1f1b", p=RANKS, m=MICROBATCHES).schedule.program
    return [[str(action) for action in order] for order in program.orders(RANKS)]


def unchanged(orders: TextOrders) -> TextOrders:
    return orders


def duplicate_forward(orders: TextOrders) -> TextOrders:
    orders[1].insert(1, "1F0")
    return orders


def shifted_microbatches(orders: TextOrders) -> TextOrders:
    return [[_shifted(text) for text in order] for order in orders]


def _shifted(text: str) -> str:
    action = Action.parse(text)
    return f"{action.stage}{action.kind.name}{action.microbatch + 1}"


def backward_twice(orders: TextOrders) -> TextOrders:
    """On rank 0, microbatch 0 by B and again by I and W, microbatch 7 not at all."""
    orders[0] = [text for text in orders[0] if text != "0B7"] + ["0I0", "0W0"]
    return orders


def missing_forward(orders: TextOrders) -> TextOrders:
    orders[2].remove("2F3")
    return orders


def backward_first(orders: TextOrders) -> TextOrders:
    order = orders[3]
    at = order.index("3F2")
    order[at], order[at + 1] = order[at + 1], order[at]
    return orders


def waiting_in_a_circle(orders: TextOrders) -> TextOrders:
    """The last rank runs all forwards first, the others stay 1F1B and wait for its backward."""
    orders[3] = sorted(orders[3], key=lambda text: Action.parse(text).kind is Kind.B)
    return orders


MUTATIONS: dict[str, Callable[[TextOrders], TextOrders]] = {
    "none (the original)": unchanged,
    "1F0 twice on rank 1": duplicate_forward,
    "all microbatches numbered 1 to 8": shifted_microbatches,
    "stage 0: backward of microbatch 0 twice, of 7 never": backward_twice,
    "last rank runs all forwards first, the others 1F1B": waiting_in_a_circle,
    "2F3 missing": missing_forward,
    "3B2 before 3F2": backward_first,
}


def judge_mutations() -> list[Judgement]:
    """Every mutation before all three judges."""
    return [_judged(name, mutate(original())) for name, mutate in MUTATIONS.items()]


def _judged(name: str, orders: TextOrders) -> Judgement:
    program = Program.from_orders(orders)
    table = Table(
        schedule=name,
        size=Size(ranks=RANKS, microbatches=MICROBATCHES, chunks=1),
        compute=to_orders(program, RANKS),
        stage_rank=tuple(range(RANKS)),
    )
    problem = member("1f1b", p=RANKS, m=MICROBATCHES).problem
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
