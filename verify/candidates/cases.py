"""Proofs case by case: a bound over choices that no one relaxation shows.

A *case* has answers to the first so many questions that a pipeline with open choices asks:

1. for each stage that may recompute all its microbatches: stay, or recompute;
2. for each (stage, microbatch) of the others that may be recomputed, evicted or off-loaded by
   itself: stay, or one of those.

Every choice answers every question, in one way. So the choices of a case are those of its *parts*,
which answer one question more, each in another way; and what bounds all parts bounds the case. The
choices of a case whose questions are open still obey ``relaxation``, with what was answered made
part of the pipeline: the argument there is about each sample by itself.

A proof by ``Cases`` is a list in which a case comes before its parts, and these in the order of
their answers, beginning with the case without answers: a certificate of its relaxation, or None
where its parts are proved instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import EVICT, OFFLOAD, RECOMPUTE, AllowedChoices, Sample
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.rank_claims import RankClaim, refusal_of
from bubbleproof.verify.candidates.relaxation import relaxation
from bubbleproof.verify.certificates.certificate_rule import Certificate, refusal

STAY = "stay"
Question = tuple[Sample, tuple[str, ...]]  # and its answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """Claims ``makespan >= bound`` whatever is chosen, because of ``proofs``."""

    bound: int
    proofs: tuple[Certificate | None, ...]
    objective: str = "makespan"

    @property
    def num_shown(self) -> int:
        """How many cases have a certificate of their own."""
        return sum(one is not None for one in self.proofs)


CandidateProof = Certificate | Cases | RankClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The choices of ``pipeline`` within ``allowed`` that give these ``answers``.

    Precondition: the pipeline has none of these choices made.
    """

    pipeline: Pipeline
    allowed: AllowedChoices
    answers: tuple[str, ...] = ()

    def parts(self) -> tuple[Case, ...]:
        """The case by the answers to its next question; nothing where none is open.

        Of sliced samples nothing is asked.
        """
        open_ = self.questions()[len(self.answers) :]
        if not open_ or self.pipeline.num_slices > 1:
            return ()
        return tuple(replace(self, answers=(*self.answers, way)) for way in open_[0][1])

    def questions(self) -> list[Question]:
        """All questions; while one about a stage is open, its samples are asked for as well."""
        again = self.allowed.recompute
        stages = () if again is None or again.per_microbatch else again.stages
        asked: list[Question] = [((stage, NONE, 0), (STAY, RECOMPUTE)) for stage in stages]
        done = {s for s, way in zip(stages, self.answers, strict=False) if way == RECOMPUTE}
        microbatches = range(self.pipeline.num_microbatches)
        for stage, microbatch in product(range(self.pipeline.num_stages), microbatches):
            if stage not in done and len(ways := tuple(self._ways(stage))) > 1:
                asked.append(((stage, microbatch, 0), ways))
        return asked

    def _ways(self, stage: int) -> Iterator[str]:
        """What may become of one sample of a stage."""
        again, evict, offload = self.allowed.recompute, self.allowed.evict, self.allowed.offload
        yield STAY
        if again is not None and again.per_microbatch and stage in again.stages:
            yield RECOMPUTE
        if evict is not None and self.pipeline.stage_ranks[stage] in dict(evict.pairs):
            yield EVICT
        if offload is not None and stage in offload.stages:
            yield OFFLOAD

    def problem(self) -> Problem:
        """What every schedule of every choice of the case obeys."""
        return relaxation(self._answered(), self._open())

    def _answered(self) -> Pipeline:
        """The pipeline with the answers made."""
        taken: dict[str, list[Sample]] = {}
        for (sample, _), way in zip(self.questions(), self.answers, strict=False):
            taken.setdefault(way, []).append(sample)
        return self.pipeline.with_changes(**self.allowed.taking(taken, self.pipeline.stage_ranks))

    def _open(self) -> AllowedChoices:
        """What is allowed to the questions that are open."""
        again, evict, offload = self.allowed.recompute, self.allowed.evict, self.allowed.offload
        left = self.questions()[len(self.answers) :]
        stages = {
            way: tuple(sorted({stage for (stage, *_), ways in left if way in ways}))
            for way in (RECOMPUTE, EVICT, OFFLOAD)
        }
        ranks = {self.pipeline.stage_ranks[stage] for stage in stages[EVICT]}
        pairs = () if evict is None else tuple(pair for pair in evict.pairs if pair[0] in ranks)
        return AllowedChoices(
            recompute=replace(again, stages=stages[RECOMPUTE]) if again is not None else None,
            evict=replace(evict, pairs=pairs) if evict is not None and pairs else None,
            offload=replace(offload, stages=stages[OFFLOAD]) if offload is not None else None,
        )


def problems_of(
    pipeline: Pipeline, allowed: AllowedChoices | None, is_parted: Sequence[bool]
) -> Iterator[Problem]:
    """The problem of each case of a list, told which of them their parts stand for.

    Parameters
    ----------
    is_parted
        Of each case of the list, whether its parts stand for it.

    Raises
    ------
    ValueError
        Where the list is no proof by cases: it is too long or too short, or a case without
        questions has no certificate.
    """
    waiting = [Case(pipeline=pipeline, allowed=allowed or AllowedChoices())]
    for number, parted in enumerate(is_parted):
        if not waiting:
            raise ValueError(f"there are {number} cases, got {len(is_parted)}")
        case = waiting.pop()
        yield case.problem()
        if parted:
            parts = case.parts()
            if not parts:
                raise ValueError(f"case {number} has no certificate and nothing to ask")
            waiting += reversed(parts)
    if waiting:
        raise ValueError(f"{len(waiting)} cases have no certificate and no parts")


def candidate_refusal(
    pipeline: Pipeline, allowed: AllowedChoices | None, proof: CandidateProof
) -> str | None:
    """Why the proof does not show its bound for every schedule of every choice; None where it does.

    Precondition: the pipeline has none of these choices made.
    """
    if isinstance(proof, RankClaim):
        return refusal_of(pipeline, allowed, proof)
    if not isinstance(proof, Cases):
        return refusal(relaxation(pipeline, allowed), proof)
    problems = problems_of(pipeline, allowed, [one is None for one in proof.proofs])
    try:
        for number, problem in enumerate(problems):
            one = proof.proofs[number]
            if one is None:
                continue
            if one.objective != proof.objective or one.bound < proof.bound:
                return f"case {number} is not about a {proof.objective} of {proof.bound}"
            if (why := refusal(problem, one)) is not None:
                return f"case {number}: {why}"
    except ValueError as error:
        return str(error)
    return None
