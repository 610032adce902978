"""Proofs case by case of what an engine says of choices (``verify.candidates.cases``).

A case is bounded by its relaxation where that suffices: by one resource, by a store that cannot
take one microbatch, or by asking a SAT solver for anything below the bound, which answers with a
proof or with starts (``solvers.refutation.proofs``; without python-sat the search is asked). Where
it does not suffice, the parts of the case are looked at in its place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubbleproof.solvers import ChoiceResult, SolveOptions, Status
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.solvers.engines import has_sat
from bubbleproof.solvers.engines.engine import Budget
from bubbleproof.solvers.gate import greatest
from bubbleproof.solvers.search import Search
from bubbleproof.solvers.search_state import whole_of
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.cut_bounds import NEVER
from bubbleproof.verify.candidates.cases import Case, Cases, candidate_refusal
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import Certificate, refusal

MOST_CASES = 1_000
GLANCE = 0.5  # seconds, or units of work, for a case that has parts


def proof_by_cases(
    pipeline: Pipeline,
    allowed: AllowedChoices,
    bound: int,
    options: SolveOptions,
    most: int | None = None,
) -> Cases | None:
    """A proof that no schedule of any choice takes less than ``bound`` ticks, or than it shows.

    None where none was found in the time, or by the work, that the options give.

    Parameters
    ----------
    bound
        Ticks, 1 or more.
    most
        The value of a checked schedule, beyond which nothing is proved; None where none is known.
    """
    whole = whole_of(options)
    waiting, proofs = [Case(pipeline=pipeline, allowed=allowed)], list[Certificate | None]()
    while waiting:
        case = waiting.pop()
        if not whole.seconds or len(proofs) >= MOST_CASES:
            return None
        parts = case.parts()
        budget = whole.until(whole.after(GLANCE)) if parts else whole
        proofs.append(_shown(case.problem(), bound, options, budget))
        if proofs[-1] is None:
            if not parts:
                return None
            waiting += reversed(parts)

    def proves(more: int) -> bool:
        stronger = _of_bound(proofs, more)
        return candidate_refusal(pipeline, allowed, stronger) is None

    return _of_bound(proofs, greatest(bound, NEVER if most is None else most, proves))


def _of_bound(proofs: list[Certificate | None], bound: int) -> Cases:
    """The proofs, each of that bound or of the larger one that it has."""
    given = (
        one if one is None or one.bound >= bound else replace(one, bound=bound) for one in proofs
    )
    return Cases(bound=bound, proofs=tuple(given))


def shown_by_cases(
    pipeline: Pipeline, allowed: AllowedChoices, found: ChoiceResult, options: SolveOptions
) -> ChoiceResult:
    """What was found, with a proof of the engine's bound where time allows one.

    Where work is limited, the proof may do as much again. ``pipeline`` is the one without choices.
    A status that says that nothing fits is left as it is.
    """
    claimed, left = found.result.best_bound, options.time_limit - found.result.seconds
    if found.result.status is Status.INFEASIBLE or claimed <= found.result.lower_bound or left <= 0:
        return found
    options = replace(options, time_limit=left, within=None, engine="auto")
    value = found.result.value
    proof = proof_by_cases(pipeline, allowed, claimed, options, value)
    if proof is None:
        return found
    status = Status.OPTIMAL if proof.bound == value else found.result.status
    shown = replace(found.result, status=status, lower_bound=proof.bound)
    return replace(found, cases=proof, result=shown)


def _shown(
    problem: Problem, bound: int, options: SolveOptions, budget: Budget
) -> Certificate | None:
    """A certificate of the bound, which its checker accepts."""
    bounds = lower_bounds(problem)
    if not bounds.is_cyclic and bounds.best.bound >= bound and not refusal(problem, bounds.best):
        return bounds.best
    if (full := refuted(problem)) is not None:
        return full
    if bounds.is_cyclic or bound == NEVER:
        return None
    if has_sat():
        from bubbleproof.solvers.refutation.proofs import settle

        proof = settle(problem, bounds, bound, budget=budget)
        return proof if isinstance(proof, Drup) and not refusal(problem, proof) else None
    options = replace(options, within=bound - 1, certified=True, progress=None)
    found = Search(problem, options, is_enough=True, whole=budget).run(()).certificate
    return found if found is not None and found.bound >= bound else None


def refuted(problem: Problem) -> Drup | None:
    """That no schedule fits, because some store cannot take one microbatch; None where it can.

    The moment is the start of a microbatch's last forward, when all its activations are there.
    """
    forwards = np.flatnonzero(problem.actions.is_kind(Kind.F))
    stage, microbatch = problem.actions.stage[forwards], problem.actions.microbatch[forwards]
    first, events = forwards[microbatch == microbatch.min()], problem.events
    begins = np.isin(events.task, first) & ~events.at_end
    held = np.zeros(len(problem.stores), dtype=np.int64)
    np.add.at(held, events.store[begins], events.delta[begins])
    if not any(
        store.capacity is not None and store.base + acquired > store.capacity
        for store, acquired in zip(problem.stores, held.tolist(), strict=True)
    ):
        return None
    last = np.flatnonzero((stage == stage.max()) & (microbatch == microbatch.min()))
    for task in forwards[last].tolist():
        claim = Drup(bound=NEVER, lemmas=(Lemma(full=task),))
        if refusal(problem, claim) is None:
            return claim
    return None
