"""Open choices in the words of ``proofs/Relaxation.v`` and ``proofs/Cases.v``.

What a choice adds to a problem is read off two problems of the package: the one without choices and
the one with this choice alone. Tasks, resources and stores go by their names; those of the problem
without choices come first, with the numbers that they have there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from bubbleproof.formats.coq.coq_words import (
    changes_of,
    edge_text,
    event_text,
    homes_of,
    list_text,
    task_text,
)
from bubbleproof.formats.coq.pipeline_words import task_names
from bubbleproof.theory.model.actions import NONE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import RECOMPUTE, AllowedChoices
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import STAY, Case, Question

_TASK = re.compile(r"(\d+)%positive")
Change = tuple[str, str, int]  # store, task, 1 at its end or 0


class ChoiceWords:
    """The questions that a pipeline with open choices asks, and what each answer adds.

    Preconditions: the pipeline has none of these choices made; one slice.

    Raises
    ------
    ValueError
        Where hosts have a limited memory, which ``proofs/`` has no words for here.
    """

    def __init__(self, pipeline: Pipeline, allowed: AllowedChoices) -> None:
        if allowed.offload is not None and allowed.offload.host_capacity is not None:
            raise ValueError("--coq writes off-loads to hosts without a limit alone")
        self.pipeline, self.allowed = pipeline, allowed
        self.base = pipeline.problem()
        self.case = Case(pipeline=pipeline, allowed=allowed)
        self.tasks, self.resources = dict[str, int](), dict[str, int]()
        self.names = list[str]()
        self.stores = {store.name: at for at, store in enumerate(self.base.stores)}
        self.taken_in(self.base)
        # of each sample the problem with each answer to its question alone
        self.problems = {asked[0]: [*self._answered(asked)] for asked in self.case.questions()}

    def _answered(self, question: Question) -> Iterator[Problem]:
        """The problem with each answer to the question alone."""
        sample, ways = question
        for way in ways:
            taken = {} if way == STAY else {way: [sample]}
            changes = self.allowed.taking(taken, self.pipeline.stage_ranks)
            problem = self.pipeline.with_changes(**changes).problem()
            self.taken_in(problem)
            yield problem

    def taken_in(self, problem: Problem) -> list[int]:
        """The index of each of its tasks here; its resources get numbers as well."""
        for resource in problem.resources:
            self.resources.setdefault(resource.name, len(self.resources))
        for store in problem.stores:
            self.stores.setdefault(store.name, len(self.stores))
        labels = [problem.label(task) for task in range(problem.num_tasks)]
        named = zip(labels, task_names(problem), strict=True)
        self.names += [name for label, name in named if label not in self.tasks]
        return [self.tasks.setdefault(label, len(self.tasks)) for label in labels]

    def renamed(self, text: str, problem: Problem) -> str:
        """Words of a problem with the tasks' numbers here."""
        here = self.taken_in(problem)
        return _TASK.sub(lambda found: task_text(here[int(found[1]) - 1]), text)

    def resource_of(self, problem: Problem, resource: int) -> int:
        """A resource's number here."""
        return self.resources[problem.resources[resource].name]

    def questions_text(self) -> str:
        """The questions as a list."""
        questions = enumerate(self.case.questions())
        return ";\n  ".join(self._question(number, asked) for number, asked in questions)

    def _question(self, number: int, question: Question) -> str:
        sample, names = question
        ways = zip(self.problems[sample], names, strict=True)
        texts = (f"Way ({self._addition(one)}) {self._settled(question, way)}" for one, way in ways)
        return f"Question {number} {list_text(texts)}"

    def _settled(self, question: Question, way: str) -> str:
        """The later questions that are not asked: of samples of a stage that recomputes all."""
        (stage, microbatch, _), _ = question
        if way != RECOMPUTE or microbatch != NONE:
            return "[]"
        questions = enumerate(self.case.questions())
        return list_text(at for at, ((g, j, _), _) in questions if g == stage and j != NONE)

    def _addition(self, problem: Problem) -> str:
        tasks = (
            f"({task_text(at)}, ({int(problem.duration[task])}, {list_text(homes)}))"
            for task, (at, homes) in enumerate(self._homes(problem))
            if at >= self.base.num_tasks
        )
        edges = self._edges(problem) - self._edges(self.base)
        texts = (
            edge_text((self.tasks[before], self.tasks[after], lag))
            for before, after, lag in sorted(edges.elements())
        )
        return f"Addition {list_text(tasks)} {list_text(texts)} {list_text(self._events(problem))}"

    def _homes(self, problem: Problem) -> Iterator[tuple[int, list[int]]]:
        for at, homes in zip(self.taken_in(problem), homes_of(problem), strict=True):
            yield at, [self.resource_of(problem, resource) for resource in homes]

    def _edges(self, problem: Problem) -> Counter[tuple[str, str, int]]:
        edges = problem.edges
        rows = zip(edges.before.tolist(), edges.after.tolist(), edges.lag.tolist(), strict=True)
        return Counter((problem.label(a), problem.label(b), lag) for a, b, lag in rows)

    def _events(self, problem: Problem) -> Iterator[str]:
        """What the answer adds to what each task does to each store."""
        found, base = _changes(problem), _changes(self.base)
        rows = ((change, delta - base[change]) for change, delta in found.items())
        rows = ((change, delta) for change, delta in sorted(rows) if delta)
        for (store, task, at_end), delta in rows:
            event = event_text((self.tasks[task], at_end, delta))
            yield f"({self.stores[store]}%nat, {event})"

    @property
    def num_more_stores(self) -> int:
        """How many stores choices bring, all empty and without a limit."""
        return len(self.stores) - len(self.base.stores)

    def pools_of(self, relaxed: Problem) -> list[list[int]]:
        """Of each store of a case's problem those that it is; none where it says nothing."""
        full = [bool(changes) for changes in changes_of(relaxed)]
        return [
            [self.stores[name] for name in store.name.split(" and ")]
            if has_changes or store.capacity is not None
            else []
            for store, has_changes in zip(relaxed.stores, full, strict=True)
        ]


def _changes(problem: Problem) -> Counter[Change]:
    found = Counter[Change]()
    for store, changes in zip(problem.stores, changes_of(problem), strict=True):
        for task, at_end, delta in changes:
            found[store.name, problem.label(task), int(at_end)] += delta
    return found
