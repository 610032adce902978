"""A plan as a theorem: optimal over all its choices, which Coq judges with nothing of ours.

``plan_theorem`` writes the space of the plan (what is tried of the pipeline that a problem file
states), the winner with its schedule, and of each legal candidate what bounds it
(``proofs/Plans.v``). ``coqc`` accepts it where

- the winner is one of the candidates, its pipeline what that makes of the file's numbers, and the
  schedule valid, within memory, and as long as is said;
- ``check_bundle`` accepts the bundle: it derives all candidates from the space, leaves out those
  whose shares are not whole, and finds a proof of each of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bubbleproof.formats.coq.choice_words import ChoiceWords
from bubbleproof.formats.coq.choices_theorem import cases_text, chosen_text
from bubbleproof.formats.coq.coq_words import lines_text, list_text
from bubbleproof.formats.coq.pipeline_words import PREAMBLE, given_text, placing_text
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import (
    MIXED,
    SPLIT,
    WHOLE,
    Backward,
    Candidate,
    PlanSpace,
)
from bubbleproof.theory.pipelines.shapes.shaping import shaped
from bubbleproof.theory.pipelines.stage_numbers import column
from bubbleproof.verify.candidates.bundle import CandidateBound
from bubbleproof.verify.candidates.cases import Cases
from bubbleproof.verify.candidates.plan_rule import GivenPlan
from bubbleproof.verify.candidates.rank_claims import (
    NoRoom,
    RankClaim,
    RankMemory,
    RankWork,
    ShownByRanks,
)

_WAYS: dict[type[RankClaim], str] = {
    RankWork: "By_work",
    RankMemory: "By_holding",
    NoRoom: "By_no_room",
}
_BACKWARDS = {WHOLE: "Plans.Whole", SPLIT: "Plans.Split", MIXED: "Plans.Mixed"}
_SPACE = """Definition stated : Given.pipeline_given := {{|
  {stated} |}}.

Definition space : Plans.plan_space := {{|
  Plans.given := stated;
  Plans.tried_chunks := {chunks}%nat;
  Plans.tried_placements := {placements};
  Plans.tried_backwards := {backwards};
  Plans.tried_slices := {slices}%nat;
  Plans.shared := {shared} |}}.
"""
_TEXT = """(* The makespan of the plan is {value}, and of no schedule of its choices below {bound}.
   {candidates} candidates, {number} of them legal. Made by bubbleproof; it is checked by
       make proofs && coqc -Q build/proofs Bubbleproof FILE.v *)
{preamble}
(* The problem file states a rank's work as one chunk and one slice, and lists what is tried. *)
{space}

(* ---- The winner, and its schedule. ---- *)

{schedule}
Definition winner := {winner}.

Theorem winner_is_a_candidate :
  In winner (Plans.candidates space) /\\ Plans.shaped space winner = Some pipeline.
Proof.
  split; [apply Plans.is_tried; vm_cast_no_check (eq_refl true)
  | vm_cast_no_check (eq_refl (Some pipeline))].
Qed.

(* ---- What bounds each candidate. ---- *)

Definition bundle : list Plans.bounded := [
  {bundle}].

Theorem no_candidate_is_faster : Plans.every_candidate_takes space bundle {bound}.
Proof. apply Plans.bundle_bounds. vm_cast_no_check (eq_refl true). Qed.

Definition every_theorem := (problem_is_of_the_pipeline, schedule_answers, schedule_is_valid,
  schedule_keeps_memory, schedule_takes, winner_is_a_candidate, no_candidate_is_faster).
Print Assumptions every_theorem.
"""


def plan_theorem(plan: GivenPlan, bundle: tuple[CandidateBound, ...]) -> str:
    """The theorem that the plan's schedule is valid, how long it is, and a bound of all choices.

    Parameters
    ----------
    plan
        A plan of a problem file whose schedule is right and one of its winner's.
    bundle
        An accepted bound of each legal candidate.

    Raises
    ------
    ValueError
        For what ``proofs/`` has no words for: layers that are cut, pipelines beside the shapes,
        bounds that no certificate shows, choices in slices, and what ``choices_theorem`` refuses.
    """
    space, winner = plan.at.space, plan.winner
    if plan.schedule is None:
        raise ValueError("--coq writes a schedule with its times, and the plan's has none")
    tried = space_text(space)
    bound = min(entry.bound for entry in bundle)
    words = {each.candidate: words_of(space, each.candidate) for each in bundle}
    return _TEXT.format(
        preamble=PREAMBLE,
        value=measure(plan.problem, plan.schedule).makespan,
        bound=bound,
        candidates=len(space.candidates()),
        number=len(bundle),
        space=tried,
        schedule=chosen_text(words[winner], plan.problem, plan.schedule),
        winner=candidate_text(winner),
        bundle=lines_text([entry_text(words[each.candidate], each, bound) for each in bundle]),
    )


def space_text(space: PlanSpace) -> str:
    """What a plan tries, as ``proofs/Plans.v`` has it.

    Raises ``ValueError`` for what that does not know.
    """
    if space.layers is not None or space.others:
        what = "cuts of layers" if space.layers is not None else "pipelines beside the shapes"
        raise ValueError(f"--coq does not know {what}: proofs/Plans.v has chunks, placements, "
                         "backwards and slices")  # fmt: skip
    return _SPACE.format(
        stated=given_text(space.pipeline),
        chunks=list_text(space.chunks),
        placements=list_text(map(placing_text, space.placements)),
        backwards=list_text(map(_backward_text, space.backward)),
        slices=list_text(space.slices),
        shared=list_text(_shared(space.allowed)),
    )


def words_of(space: PlanSpace, candidate: Candidate) -> ChoiceWords:
    """The pipeline that a candidate makes, and what is open in it."""
    found = shaped(space, candidate)
    if found.allowed is not None and candidate.slices > 1:
        raise ValueError(f"--coq writes choices of whole microbatches, got {candidate}")
    return ChoiceWords(found.pipeline, found.allowed or AllowedChoices())


def _shared(allowed: AllowedChoices | None) -> Iterator[int]:
    """The numbers of open choices that a candidate's chunks and slices divide."""
    if allowed is None:
        return
    if (again := allowed.recompute) is not None:
        yield again.kept
        yield again.duration or 0
    if allowed.evict is not None:
        yield allowed.evict.duration
    if allowed.offload is not None:
        yield allowed.offload.offload
        yield allowed.offload.reload


def _backward_text(backward: Backward) -> str:
    if isinstance(backward, str):
        return _BACKWARDS[backward]
    return f"Plans.Split_on {list_text(str(flag).lower() for flag in backward)}"


def candidate_text(candidate: Candidate) -> str:
    placed, backward = placing_text(candidate.placement), _backward_text(candidate.backward)
    return f"Plans.Candidate {candidate.chunks} ({placed}) ({backward}) {candidate.slices}"


def entry_text(words: ChoiceWords, entry: CandidateBound, least: int) -> str:
    """A candidate with what is open in it and what bounds it."""
    return (
        f"Plans.Bounded ({candidate_text(entry.candidate)})\n    [{words.questions_text()}] "
        f"{words.num_more_stores} ({_why(words, entry, least)})"
    )


def _why(words: ChoiceWords, entry: CandidateBound, least: int) -> str:
    proof = entry.certificate
    if proof is None:
        raise ValueError(f"--coq takes no solver's word: {entry.candidate} has no certificate")
    if not isinstance(proof, RankClaim):
        shown = proof.proofs if isinstance(proof, Cases) else (proof,)
        return f"Plans.By_cases [\n  {lines_text([*cases_text(words, shown)])}]"
    pipeline = words.pipeline
    is_shown = isinstance(proof, NoRoom) or least <= _shown(pipeline, proof)
    is_shown &= isinstance(proof, RankWork) or min(column(pipeline.released_at_input)) >= 0
    if not is_shown:
        raise ValueError(f"--coq: proofs/RankClaims.v shows less of {entry.candidate} than claimed")
    return f"Plans.{_WAYS[type(proof)]} {proof.rank}"


def _shown(pipeline: Pipeline, claim: RankClaim) -> int:
    """What the rank shows to Coq, which counts no way out where any stage splits its backwards."""
    shown, rank = ShownByRanks(pipeline), claim.rank
    found = shown.work if isinstance(claim, RankWork) else shown.memory
    stages, flags = np.array(pipeline.stage_ranks) == rank, pipeline.split_backward
    is_split = np.array(flags if isinstance(flags, bool) else [row[0] for row in flags])
    ticks, between = pipeline.ticks, pipeline.boundaries
    lags = (between.ticks + between.latency)[:, 0]
    handed = np.where(is_split, ticks.input_backward[:, 0], ticks.backward[:, 0])
    ways = ticks.forward[:, 0], handed
    head, tail = (np.append(0, np.cumsum(each[:-1] + lags)) for each in ways)
    ends = head[stages].min() + (0 if is_split.any() else tail[stages].min())
    return int(found[rank] - shown.ends[rank] + ends)
