"""A schedule of one choice as a theorem about all choices, which Coq judges with nothing of ours.

``choices_theorem`` writes the problem without choices, the questions that a pipeline with open
choices asks, and what each answer adds (``proofs/Relaxation.v``, ``proofs/Cases.v``); which answers
the schedule gives, its rows, and a proof of its bound: case by case, or one certificate for all.
``coqc`` accepts it where

- the rows are a valid schedule of that choice, take so long, and keep its stores' capacities;
- ``check_cases`` accepts the proof: no schedule of any choice takes less.
"""

from __future__ import annotations

from collections.abc import Iterator

from bubbleproof.formats.coq.certificate_words import shown_text
from bubbleproof.formats.coq.choice_words import ChoiceWords
from bubbleproof.formats.coq.coq_words import lines_text, list_text, task_text
from bubbleproof.formats.coq.pipeline_words import (
    PREAMBLE,
    named,
    problem_words,
    schedule_words,
)
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Schedule
from bubbleproof.theory.pipelines.allowed import AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import Cases
from bubbleproof.verify.certificates.certificate_rule import Certificate

_HEAD = """(* The makespan of the schedule is {value}, and of none of its choices below {bound}.
   {tasks} tasks without choices, {questions} questions; {shown}. Made by bubbleproof; it is
   checked by
       make proofs && coqc -Q build/proofs Bubbleproof FILE.v *)
"""
_CHOICES = """
(* Those that choices bring have no limit. *)
Definition own_stores := stores ++ repeat unlimited {more_stores}.

Definition questions : list question := [
  {asked}].

(* What the schedule answers, and the problem with that. *)
Definition chosen : list way := match picked {picked} questions with Some ws => ws | None => [] end.
Definition chosen_problem := let added := map adds chosen in
  instance (with_tasks own_tasks added) (with_edges own_edges added).
Definition chosen_stores := with_stores own_stores (map adds chosen).

Theorem schedule_answers : answered questions chosen.
Proof. apply (picked_is_answered {picked}). vm_cast_no_check (eq_refl (Some chosen)). Qed.
"""
_BOUND = """
Definition proofs : list case_proof := [
  {proofs}].

Theorem no_choice_is_faster : forall ws, answered questions ws -> let added := map adds ws in
  let problem := instance (with_tasks own_tasks added) (with_edges own_edges added) in
  forall others first last,
    valid positive problem others ->
    in_memory positive Pos.eq_dec problem (with_stores own_stores added) others ->
    spans (fun r => r <? {ranks}) problem others first last -> {bound} <= last - first.
Proof.
  apply (cases_on_every_choice (fun r => r <? {ranks}) own_tasks own_edges own_stores {bound}
    questions proofs).
  vm_cast_no_check (eq_refl true).
Qed.

Definition every_theorem := (problem_is_of_the_pipeline, schedule_answers, schedule_is_valid,
  schedule_keeps_memory, schedule_takes, no_choice_is_faster).
Print Assumptions every_theorem.
"""


def choices_theorem(
    problem: Problem,
    schedule: Schedule,
    pipeline: Pipeline,
    allowed: AllowedChoices,
    proof: Certificate | Cases,
) -> str:
    """The theorem that the schedule is valid, what its makespan is, and a bound over all choices.

    Parameters
    ----------
    problem, schedule
        The problem of one of the choices, and a schedule of it with all its tasks.
    pipeline, allowed
        The pipeline with none of these choices made, and what it leaves open.
    proof
        A bound of the makespan, by certificates of which ``proofs/`` has a theorem.

    Raises
    ------
    ValueError
        For what ``proofs/`` has no words for: a choice made that ``Given.v`` does not know, other
        objectives, other certificates, slices, hosts of limited memory, or a problem that is not
        the one of an answer to all questions.
    """
    if proof.objective != "makespan" or pipeline.num_slices > 1:
        raise ValueError("--coq writes choices of whole microbatches, and bounds of the makespan")
    words = ChoiceWords(pipeline, allowed)
    said = chosen_text(words, problem, schedule)
    shown = (proof,) if not isinstance(proof, Cases) else proof.proofs
    head = _HEAD.format(
        value=measure(problem, schedule).makespan,
        bound=proof.bound,
        tasks=words.base.num_tasks,
        questions=len(words.problems),
        shown=f"{sum(one is not None for one in shown)} certificates",
    )
    bound = _BOUND.format(
        proofs=lines_text([*cases_text(words, shown)]), ranks=problem.num_ranks, bound=proof.bound
    )
    return head + PREAMBLE + said + named(bound, words.names)


def chosen_text(words: ChoiceWords, problem: Problem, schedule: Schedule) -> str:
    """The pipeline, its questions, and that the schedule is one of a choice and takes so long.

    Raises ``ValueError`` for a pipeline that ``Given.v`` does not know, and for a problem that is
    not the one of an answer to all questions.
    """
    stated = problem_words(words.base, words.pipeline, words.names)
    choices = _CHOICES.format(
        more_stores=f"{words.num_more_stores}%nat",
        asked=words.questions_text(),
        picked=list_text(f"{place}%nat" for place in _answers(words, problem)),
    )
    rows = _rows(words, problem, schedule)
    at = {"of": "chosen_problem", "stores": "chosen_stores"}
    return stated + named(choices + schedule_words(problem, schedule, rows, **at), words.names)


def _answers(words: ChoiceWords, problem: Problem) -> Iterator[int]:
    """The place of the answer that the problem gives to each question that is asked."""
    there = set(words.taken_in(problem))
    case, own = words.case, set(range(words.base.num_tasks))
    found = set(own)
    while parts := case.parts():
        sample, _ = case.questions()[len(case.answers)]
        added = [set(words.taken_in(one)) - own for one in words.problems[sample]]
        place = max(range(len(added)), key=lambda at: (added[at] <= there, len(added[at])))
        found |= added[place]
        yield place
        case = parts[place]
    if found != there:
        raise ValueError("the schedule's choices are none of those that were open")


def _rows(words: ChoiceWords, problem: Problem, schedule: Schedule) -> Iterator[str]:
    here = words.taken_in(problem)
    tasks = problem.locate(schedule.program.actions).tolist()
    places, starts = schedule.program.resource.tolist(), schedule.start.tolist()
    for place, task, start in zip(places, tasks, starts, strict=True):
        number = words.resource_of(problem, place)
        yield f"Row positive {number} {task_text(here[task])} ({start})"


def cases_text(words: ChoiceWords, shown: tuple[Certificate | None, ...]) -> Iterator[str]:
    """The certificates as a case comes before its parts; None where these are proved instead."""
    waiting = [words.case]
    for certificate in shown:
        case = waiting.pop()
        if certificate is None:
            waiting += reversed(case.parts())
            yield "None"
            continue
        relaxed = case.problem()
        pools = list_text(
            list_text(f"{store}%nat" for store in pool) for pool in words.pools_of(relaxed)
        )
        text = words.renamed(shown_text(relaxed, certificate), relaxed)
        yield f"Some ({pools},\n  {text})"
