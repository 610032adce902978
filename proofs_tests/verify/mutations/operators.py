"""Operators: named mutations, registered where they are defined, and what they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from bubbleproof.theory.model.actions import NONE, Kind
from proofs_tests.verify.tables import Specimen

Nature = Literal["wrong", "either", "harmless"]
Mutation = Callable[[Random, Specimen], Specimen | None]
Need = Callable[[Specimen], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A named mutation, the rules that may name its mistake, and whether it must be one."""

    name: str
    rules: frozenset[str]
    nature: Nature
    apply: Mutation
    needs: Need


def anything(specimen: Specimen) -> bool:
    return len(specimen.problem.resources) > 1


def has_lags(specimen: Specimen) -> bool:
    return bool((specimen.problem.edges.lag > 0).any())


def has_splits(specimen: Specimen) -> bool:
    return bool(specimen.problem.actions.is_kind(Kind.W).any())


def has_backwards(specimen: Specimen) -> bool:
    return anything(specimen) and bool(specimen.problem.actions.is_kind(Kind.B, Kind.I).any())


def has_full_backwards(specimen: Specimen) -> bool:
    return bool(specimen.problem.actions.is_kind(Kind.B).any())


def has_overlaps(specimen: Specimen) -> bool:
    return bool((specimen.problem.actions.partner_stage != NONE).any())


def has_shared_tasks(specimen: Specimen) -> bool:
    return len(specimen.problem.occupancy.task) > specimen.problem.num_tasks


def has_forwards_after_backwards(specimen: Specimen) -> bool:
    return bool(backward_forward_places(specimen))


def only_compute(specimen: Specimen) -> bool:
    return len(specimen.problem.resources) == specimen.problem.num_ranks > 1


OPERATORS: list[Operator] = []


def operator(
    *rules: str, nature: Nature = "wrong", needs: Need = anything
) -> Callable[[Mutation], Mutation]:
    """Register a mutation under the name of its function."""

    def register(apply: Mutation) -> Mutation:
        OPERATORS.append(
            Operator(
                name=apply.__name__,
                rules=frozenset(rules),
                nature=nature,
                apply=apply,
                needs=needs,
            )
        )
        return apply

    return register


def backward_forward_places(specimen: Specimen) -> list[tuple[int, int]]:
    return [
        (r, i)
        for r, i in specimen.neighbours()
        if specimen.rows[r][i][0].kind in (Kind.B, Kind.I, Kind.W)
        and specimen.rows[r][i + 1][0].kind is Kind.F
        and r < specimen.problem.num_ranks
    ]
