"""The sweep of damaged proofs over choices, shapes and deployments: none is accepted above the
optimum.

Of each small random space (``random_spaces``) every candidate's optimum is walked through. What the
project proves of it is made: what the numbers of each rank show, the best bound of the relaxation,
a proof by cases; of the space a bundle, and of a few spaces the bundles of deployments. Each must
be accepted, and then is damaged in one way or several and most often claims more than the optimum.
A damaged proof may still prove something; so what counts is the bound that is accepted.
``python -m proofs_tests.verify.candidates.tampered 1000`` prints the counts.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from bubbleproof.planners.case_proofs import proof_by_cases
from bubbleproof.solvers import SolveOptions
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import ShapedPipeline
from bubbleproof.verify.candidates.bundle import (
    BundleVerdict,
    CandidateBound,
    DeploymentSpace,
    check_bundle,
)
from bubbleproof.verify.candidates.cases import CandidateProof, Cases, candidate_refusal
from bubbleproof.verify.candidates.deployment_bundles import check_deployments
from bubbleproof.verify.candidates.rank_claims import (
    NoRoom,
    RankClaim,
    RankMemory,
    RankWork,
    ShownByRanks,
    is_alike,
)
from bubbleproof.verify.candidates.relaxation import relaxation
from bubbleproof.verify.certificates.certificate_rule import Certificate
from proofs_tests.solvers.exhaustive import TooMuchWork
from proofs_tests.verify.candidates.damaged_bundles import (
    Bundle,
    Bundles,
    damaged_bundle,
    damaged_bundles,
)
from proofs_tests.verify.candidates.random_spaces import legal, optimum, random_space
from proofs_tests.verify.tampered import Counts, damaged

EACH, OF_CASES = 12, 60  # damaged forms of a proof
OF_BUNDLES = 25  # of a bundle, and of the bundles of deployments
MOST = (1, 1, 1, 2, 9, 1_000_000)  # ticks above the optimum
SECONDS = 2.0  # for a proof by cases
KINDS: dict[type[CandidateProof], str] = {
    RankWork: "rank-work",
    RankMemory: "rank-memory",
    NoRoom: "no-room",
    Cases: "cases",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A space whose candidates' optima are known (None: no schedule), with true proofs of each."""

    name: str
    space: PlanSpace
    legal: dict[Candidate, ShapedPipeline]
    optima: dict[Candidate, int | None]
    proofs: dict[Candidate, list[CandidateProof]]

    @property
    def optimum(self) -> int | None:
        return min((value for value in self.optima.values() if value is not None), default=None)

    def bundle(self, rng: Random) -> Bundle:
        """A true bound of each candidate, the best or any of them."""
        found = []
        for candidate, proofs in self.proofs.items():
            best = max(proofs, key=lambda proof: proof.bound)
            proof = best if rng.random() < 0.5 else rng.choice(proofs)
            found.append(CandidateBound(candidate=candidate, bound=proof.bound, certificate=proof))
        return tuple(found)


def sweep(count: int, seed: int = 0, progress: Callable[[Counts], None] | None = None) -> Counts:
    """``count`` damaged proofs, of the spaces from ``seed`` on."""
    counts, seen, number = Counts(), deque[Judged](maxlen=6), seed
    while counts.tampered < count:
        rng = Random(number)
        judged = judge(rng, str(number))
        number += 1
        if judged is None:
            continue
        seen.append(judged)
        for each in (_of_candidates(rng, judged), _of_bundles(rng, judged), _of_all(rng, [*seen])):
            for one in each:
                if counts.tampered < count:
                    one(counts)
        if progress is not None:
            progress(counts)
    return counts


def judge(rng: Random, name: str) -> Judged | None:
    """A random space with all that is known of it; None where a walk is too long."""
    space = random_space(rng)
    found = legal(space)
    try:
        optima = {candidate: optimum(shaped) for candidate, shaped in found.items()}
    except TooMuchWork:
        return None
    if not found:
        return None
    proofs = {
        candidate: [*_proofs(shaped, optima[candidate])] for candidate, shaped in found.items()
    }
    return Judged(name=name, space=space, legal=found, optima=optima, proofs=proofs)


def _proofs(found: ShapedPipeline, value: int | None) -> Iterator[CandidateProof]:
    """What the project proves of a candidate, the proof that needs no schedule last."""
    pipeline, allowed = found.pipeline, found.allowed
    relaxed = relaxation(pipeline, allowed)
    bounds = lower_bounds(relaxed)
    if not bounds.is_cyclic:
        yield bounds.best
    if not pipeline.is_bidirectional:
        shown = ShownByRanks(pipeline)
        for rank, bound in enumerate(shown.work):
            yield RankWork(rank=rank, bound=bound)
        if allowed is None and is_alike(pipeline):
            for rank, bound in enumerate(shown.memory):
                yield RankMemory(rank=rank, bound=bound)
    if allowed is not None and value is not None:
        options = SolveOptions(time_limit=SECONDS, threads=1)
        if (proof := proof_by_cases(pipeline, allowed, value, options)) is not None:
            yield proof


Damage = Callable[[Counts], None]


def _of_candidates(rng: Random, judged: Judged) -> Iterator[Damage]:
    """The proofs of each candidate by themselves."""
    for candidate, value in judged.optima.items():
        found = judged.legal[candidate]
        name = f"{judged.name} {candidate}"
        for proof in judged.proofs[candidate]:
            why = candidate_refusal(found.pipeline, found.allowed, proof)
            yield _honest(name, None if why is None else f"a true proof is refused: {why}")
            if value is not None:
                for _ in range(OF_CASES if isinstance(proof, Cases) else EACH):
                    given = _above(rng, _changed(rng, judged, found, proof), value)
                    yield _one(name, found, given, value)


def _honest(name: str, why: str | None) -> Damage:
    def tell(counts: Counts) -> None:
        counts.true += 1
        counts.above += [] if why is None else [f"{name}: {why}"]

    return tell


def _one(name: str, found: ShapedPipeline, proof: CandidateProof, value: int) -> Damage:
    def tell(counts: Counts) -> None:
        is_accepted = candidate_refusal(found.pipeline, found.allowed, proof) is None
        kind = KINDS.get(type(proof), "relaxation")
        _tell(counts, kind, name, proof.bound if is_accepted else None, value)

    return tell


def _tell(counts: Counts, kind: str, name: str, accepted: int | None, value: int) -> None:
    """Count a damaged proof, and the bound that is accepted of it."""
    counts.tampered += 1
    counts.by_kind[kind] += 1
    if accepted is not None:
        counts.accepted += 1
        if accepted > value:
            counts.above.append(f"{name}: {accepted} for {value} by {kind}")


def _above(rng: Random, proof: CandidateProof, value: int) -> CandidateProof:
    """The proof with, most often, a bound above the optimum, in all of its parts."""
    if rng.random() < 0.2:
        return proof
    bound = value + rng.choice(MOST)
    if isinstance(proof, Cases):
        proofs = tuple(one and replace(one, bound=max(bound, one.bound)) for one in proof.proofs)
        return replace(proof, proofs=proofs, bound=bound)
    return replace(proof, bound=bound)


def _changed(
    rng: Random, judged: Judged, found: ShapedPipeline, proof: CandidateProof
) -> CandidateProof:
    """The proof with something of it changed, or another in its place."""
    ranks, draw = found.pipeline.num_ranks, rng.random()
    if draw < 0.15:
        kind: type[RankClaim] = rng.choice((RankWork, RankMemory, NoRoom))
        return kind(rank=rng.randrange(ranks), bound=proof.bound)
    if draw < 0.25:  # of another candidate
        return rng.choice(judged.proofs[rng.choice([*judged.proofs])])
    if draw < 0.35:  # as if nothing were open
        plain = found.pipeline.problem()
        bounds = lower_bounds(plain)
        return proof if bounds.is_cyclic else bounds.best
    if isinstance(proof, RankClaim):
        return replace(proof, rank=rng.randrange(-1, ranks + 1))
    problem = relaxation(found.pipeline, found.allowed)
    if isinstance(proof, Cases):
        return replace(proof, proofs=_changed_cases(rng, problem, proof.proofs))
    return _damaged(rng, problem, proof)


def _damaged(rng: Random, problem: Problem, proof: Certificate) -> Certificate:
    for _ in range(rng.choice((0, 1, 1, 2))):
        proof = damaged(rng, problem, proof)
    return proof


def _changed_cases(
    rng: Random, problem: Problem, given: tuple[Certificate | None, ...]
) -> tuple[Certificate | None, ...]:
    """A list of cases with one left out, doubled, moved, opened, closed or damaged."""
    proofs, at = [*given], rng.randrange(len(given))
    shown = [one for one in given if one is not None]
    match rng.randrange(6):
        case 0:
            proofs.pop(at)
        case 1:
            proofs.insert(at, rng.choice(given))
        case 2:
            other = rng.randrange(len(given))
            proofs[at], proofs[other] = proofs[other], proofs[at]
        case 3:
            proofs[at] = None
        case 4:  # one certificate in place of all parts
            proofs[at:] = [rng.choice(shown)]
        case _:
            one = proofs[at]
            proofs[at] = rng.choice(shown) if one is None else _damaged(rng, problem, one)
    return tuple(proofs)


def _of_bundles(rng: Random, judged: Judged) -> Iterator[Damage]:
    """The bundle of a space."""
    space, true = judged.space, judged.bundle(rng)

    def wrong(bundle: Bundle) -> Bundle:
        """With entries that claim more than their candidates' optima."""
        return tuple(
            entry if rng.random() < 0.4 else _raised(rng, judged, entry) for entry in bundle
        )

    refusals = check_bundle(space, true).refusals
    yield _honest(judged.name, f"a true bundle is refused: {refusals[0]}" if refusals else None)
    value = judged.optimum
    for _ in range(0 if value is None else OF_BUNDLES):
        assert value is not None
        bundle = damaged_bundle(rng, space, wrong(true) if rng.random() < 0.5 else true)
        yield _whole("bundle", judged.name, partial(check_bundle, space, bundle), value)


def _raised(rng: Random, judged: Judged, entry: CandidateBound) -> CandidateBound:
    """The entry with a damaged proof, which mostly claims more than its candidate's optimum."""
    found, value = judged.legal[entry.candidate], judged.optima[entry.candidate]
    if value is None or entry.certificate is None:
        return entry
    proof = _above(rng, _changed(rng, judged, found, entry.certificate), value)
    return replace(entry, certificate=proof, bound=proof.bound)


def _of_all(rng: Random, seen: list[Judged]) -> Iterator[Damage]:
    """Some of the spaces as deployments, each followed by ticks of its own."""
    chosen = rng.sample(seen, min(len(seen), rng.randint(2, 3)))
    deployed = [
        DeploymentSpace(
            name=one.name, space=one.space, after=rng.choice((0, 2, 5)), rest=rng.choice((0, 2))
        )
        for one in chosen
    ]
    true: Bundles = tuple((one.name, one.bundle(rng)) for one in chosen)
    refusals = check_deployments(deployed, true).refusals
    yield _honest("deployments", f"true bundles are refused: {refusals[0]}" if refusals else None)
    values = [
        value + one.follows(candidate)
        for one, judged in zip(deployed, chosen, strict=True)
        for candidate, value in judged.optima.items()
        if value is not None
    ]
    for _ in range(OF_BUNDLES if values else 0):
        bundles = damaged_bundles(rng, {one.name: one.space for one in chosen}, true)
        yield _whole(
            "deployments",
            " ".join(one.name for one in chosen),
            partial(check_deployments, deployed, bundles),
            min(values),
        )


def _whole(kind: str, name: str, check: Callable[[], BundleVerdict], value: int) -> Damage:
    def tell(counts: Counts) -> None:
        verdict = check()
        _tell(counts, kind, name, verdict.bound if verdict.is_proved else None, value)

    return tell


if __name__ == "__main__":
    sys.stdout.write(f"{sweep(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)}\n")
