"""What one rank shows, as Coq has it (``proofs/RankClaims.v``, ``NoRoom.v``), and as Python does.

Coq is given the tasks of a pipeline's problem and the numbers of its stages: it finds that the one
has the other in it, and accepts each claim of ``verify.candidates.rank_claims``, and none that is
raised by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bubbleproof.formats.coq.coq_words import (
    edge_text,
    list_text,
    own_edges,
    stores_text,
    table_text,
    task_text,
)
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.rank_claims import ShownByRanks
from proofs_tests.coq import answer, needs_coq
from proofs_tests.sized import sized
from proofs_tests.verify.candidates.test_rank_claims import drawn

HEADER = """Require Import ZArith List Bool.
From Bubbleproof Require Import Definitions Stores Instances Staged Samples RankClaims NoRoom.
Import ListNotations.
Open Scope Z_scope.
Definition by_sample {A} (rows : list (list (list A))) (nothing : A) (g j k : nat) :=
  nth k (nth j (nth g rows []) []) nothing.
Definition by_slice (rows : list (list Z)) (g k : nat) := nth k (nth g rows []) 0.
"""
Sample = tuple[int, int, int]


class PipelineWords:
    """A pipeline's problem and numbers as definitions of Coq, their names ending in ``number``."""

    def __init__(self, pipeline: Pipeline, number: int) -> None:
        self.pipeline, self.number, self.problem = pipeline, number, pipeline.problem()
        actions = self.problem.actions
        columns = (actions.kind, actions.stage, actions.microbatch, actions.slice)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self.tasks: dict[tuple[int, int, int, int], list[int]] = {}
        for task, (kind, *sample) in enumerate(rows):
            self.tasks.setdefault((kind, *sample), []).append(task)

    def of(self, kinds: tuple[Kind, ...], sample: Sample) -> list[int]:
        """The tasks of these kinds of one sample."""
        return [task for kind in kinds for task in self.tasks.get((kind, *sample), ())]

    def rows(self, words: Callable[[Sample], str], stages: range) -> str:
        """Words of each sample, as lists by stage, microbatch and slice."""
        samples = range(self.pipeline.num_microbatches), range(self.pipeline.num_slices)
        return list_text(
            list_text(list_text(words((g, j, k)) for k in samples[1]) for j in samples[0])
            for g in stages
        )

    def text(self) -> str:
        """All definitions."""
        return f"""Definition table{self.number} : table := {list_text(table_text(self.problem))}.
Definition edges{self.number} := {list_text(map(edge_text, own_edges(self.problem)))}.
Definition stores{self.number} := {list_text(stores_text(self.problem))}.
Definition numbers{self.number} := {self._numbers()}.
Definition names{self.number} := {self._names()}.
Definition given{self.number} : givers := by_sample {self.rows(self._given, self._stages())} [].
"""

    def _stages(self) -> range:
        return range(self.pipeline.num_stages)

    def _numbers(self) -> str:
        pipe, computed = self.pipeline, (Kind.F, Kind.B, Kind.I, Kind.W)
        is_split = self.problem.actions.is_kind(Kind.W).any()
        between = (pipe.boundaries.ticks + pipe.boundaries.latency).min(axis=1).tolist()
        kinds: tuple[tuple[Kind, ...], ...] = ((Kind.F,), (Kind.B, Kind.I), computed)
        grids = (_grid(self._ticks(each)) for each in kinds)
        fwd, bwd, work = (f"(by_slice {grid})" for grid in grids)
        return (
            f"Numbers {pipe.num_stages} {pipe.num_microbatches} {pipe.num_slices} "
            f"{_by_stage([*pipe.stage_ranks])} {fwd} {bwd} {work} {_by_stage([*between, 0])} "
            f"{'false' if is_split else 'true'} {_by_stage(pipe.per_stage.activation.tolist())}"
        )

    def _ticks(self, kinds: tuple[Kind, ...]) -> list[list[int]]:
        """What these take of one microbatch, by stage and slice."""
        ticks, slices = self.problem.duration.tolist(), range(self.pipeline.num_slices)
        return [
            [sum(ticks[task] for task in self.of(kinds, (g, 0, k))) for k in slices]
            for g in self._stages()
        ]

    def _names(self) -> str:
        computed = (Kind.F, Kind.B, Kind.I, Kind.W)

        def one(*kinds: Kind) -> Callable[[Sample], str]:
            return lambda sample: task_text(self.of(kinds, sample)[0])

        def path(kind: Kind, stages_on: int) -> Callable[[Sample], str]:
            return lambda sample: self._list((kind,), (sample[0] + stages_on, *sample[1:]))

        by = (
            (one(Kind.F), "1%positive"),
            (one(Kind.B, Kind.I), "1%positive"),
            (lambda sample: self._list(computed, sample), "[]"),
            (path(Kind.SEND_F, 0), "[]"),
            (path(Kind.SEND_B, 1), "[]"),
        )
        parts = (
            f"(by_sample {self.rows(words, self._stages())} {nothing})" for words, nothing in by
        )
        return f"Names {' '.join(parts)}"

    def _list(self, kinds: tuple[Kind, ...], sample: Sample) -> str:
        return list_text(map(task_text, self.of(kinds, sample)))

    def _given(self, sample: Sample) -> str:
        """What the sample's backward gives back, of its own rank's store."""
        own = self.of((Kind.B, Kind.I, Kind.W), sample)
        return list_text(
            f"Event positive {task_text(task)} {'true' if at_end else 'false'} ({delta})"
            for task, at_end, delta in _changes(self.problem)
            if task in own
        )


def _changes(problem: Problem) -> Iterator[tuple[int, int, int]]:
    events = problem.events
    columns = (events.task, events.at_end, events.delta)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _grid(rows: list[list[int]]) -> str:
    return list_text(list_text(row) for row in rows)


def _by_stage(numbers: list[int]) -> str:
    return f"(fun g => nth g {list_text(numbers)} 0)"


def judged(words: PipelineWords) -> Iterator[str]:
    """What Coq is to compute of a pipeline, each with the answer that Python has."""
    pipe, n = words.pipeline, words.number
    ranks = f"(fun r => r <? {pipe.num_ranks})"
    checked = f"check_rank {ranks} table{n} edges{n} stores{n} numbers{n} names{n}"
    shown = ShownByRanks(pipe)
    columns = shown.work, shown.memory, shown.room
    for rank, (work, held, room) in enumerate(zip(*columns, strict=True)):
        yield f"{checked} (ByWork {rank} ({work})) = true"
        yield f"{checked} (ByWork {rank} ({work + 1})) = false"
        if held > 0:
            yield f"{checked} (ByHolding {rank} {rank} given{n} ({held})) = true"
            yield f"{checked} (ByHolding {rank} {rank} given{n} ({held + 1})) = false"
        full = "true" if room is not None and room < 0 else "false"
        same = f"table{n} edges{n} stores{n} numbers{n} names{n} {rank} {rank} given{n}"
        yield f"check_no_room {same} = {full}"


@needs_coq
def test_coq_accepts_what_a_rank_shows_and_no_more(
    coq_library: tuple[Path, dict[str, str]],
) -> None:
    text, claims, frozen = HEADER, list[str](), 0
    for number in range(sized(6, full=60)):
        pipeline = drawn(number)
        if number % 2:
            pipeline = pipeline.with_changes(capacity=9)
        if number % 3 == 0 and not pipeline.split_backward:  # a B of the ticks of an I, and no W
            frozen += 1
            pipeline = pipeline.with_changes(frozen_stages=(pipeline.num_stages - 1,))
        words = PipelineWords(pipeline, number)
        text += words.text()
        claims += judged(words)
    text += "".join(f"Goal {each}. Proof. vm_compute. reflexivity. Qed.\n" for each in claims)
    done = answer(coq_library[0], "RankAgreement", text)
    assert done.returncode == 0, done.stderr
    assert sum("ByHolding" in each for each in claims) > 5
    assert frozen > 0
    full = [each for each in claims if each.startswith("check_no_room")]
    assert {each.rpartition(" ")[2] for each in full} == {"true", "false"}
