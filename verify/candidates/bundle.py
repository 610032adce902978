"""Rule 9 for a plan: does a bundle of proofs bound every candidate?

A *bundle* holds, for each candidate of a plan's space, a bound on the makespan of every schedule of
every choice that the candidate leaves open, and what shows it: a certificate of the candidate's
``relaxation``, or one for each of its ``cases``, or a claim about one rank (``rank_claims``), or
the word of an engine, which is believed by name. The candidates are derived here from the space;
one that is not legal needs no proof, and one that the bundle misses, or names twice, or that is
none of the space, is refused. The least of all bounds bounds the plan.

Where a plan goes through deployments of a model, ``deployment_bundles`` judges the bundles of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.theory.pipelines.shapes.shaping import NotLegalError, ShapedPipeline, shaped
from bubbleproof.verify.candidates.cases import CandidateProof, candidate_refusal
from bubbleproof.verify.candidates.rank_claims import NoRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateBound:
    """No schedule of the candidate takes less than ``bound`` ticks.

    Shown by ``certificate``, or where that is None said by the engine ``word``; a bound of 0 needs
    neither.
    """

    candidate: Candidate
    bound: int
    certificate: CandidateProof | None = None
    word: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleVerdict:
    """``refusals`` say what is wrong; where nothing is, no schedule takes less than ``bound``.

    ``believed`` names the engines on whose word that rests. ``num_proved`` candidates have an
    accepted certificate, ``num_without_room`` of them that they have no schedule because a rank
    has no room for a microbatch; ``num_not_legal`` need none.
    """

    refusals: tuple[str, ...]
    bound: int | None
    believed: tuple[str, ...]
    num_proved: int
    num_not_legal: int
    num_without_room: int = 0

    @property
    def is_proved(self) -> bool:
        """Whether the bound rests on certificates alone."""
        return not self.refusals and not self.believed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeploymentSpace:
    """A deployment: the space of its pipeline, and the ticks that follow it in every step.

    ``rest`` is what of them follows a pipeline that has the replicas' collectives in itself.
    """

    name: str
    space: PlanSpace
    after: int
    rest: int = 0

    def follows(self, candidate: Candidate) -> int:
        """The ticks that follow a candidate's pipeline."""
        own = dict(self.space.others).get(candidate.beside)
        return self.after if own is None or own.choices.sharding is None else self.rest


def check_bundle(space: PlanSpace, bundle: tuple[CandidateBound, ...]) -> BundleVerdict:
    """Derive the candidates of the space and hold the bundle against them."""
    legal = dict(_legal(space))
    given = Counter(entry.candidate for entry in bundle)
    refusals = [f"the bundle has no bound of {c}" for c in legal if not given[c]]
    refusals += [f"{c} is no legal candidate of the problem" for c in given if c not in legal]
    refusals += [f"{c} stands {count} times" for c, count in given.items() if count > 1]
    num_proved, num_without_room = 0, 0
    for entry in bundle:
        if entry.candidate not in legal:
            continue
        if why := _refusal(legal[entry.candidate], entry):
            refusals.append(f"{entry.candidate}: {why}")
        else:
            num_proved += entry.certificate is not None
            num_without_room += isinstance(entry.certificate, NoRoom)
    return BundleVerdict(
        refusals=tuple(refusals),
        bound=None if refusals else min((entry.bound for entry in bundle), default=None),
        believed=tuple(
            sorted({one.word for one in bundle if not one.certificate and one.bound > 0})
        ),
        num_proved=num_proved,
        num_not_legal=len(space.candidates()) - len(legal),
        num_without_room=num_without_room,
    )


def _legal(space: PlanSpace) -> Iterator[tuple[Candidate, ShapedPipeline]]:
    for candidate in space.candidates():
        try:
            yield candidate, shaped(space, candidate)
        except NotLegalError:
            continue


def _refusal(found: ShapedPipeline, entry: CandidateBound) -> str | None:
    """Why the entry shows no such bound, or None."""
    if entry.certificate is None:
        is_shown = entry.word or entry.bound <= 0
        return None if is_shown else "neither a certificate nor an uncertified bound"
    if (entry.certificate.objective, entry.certificate.bound) != ("makespan", entry.bound):
        return f"the certificate is not about a makespan of {entry.bound}"
    return candidate_refusal(found.pipeline, found.allowed, entry.certificate)
