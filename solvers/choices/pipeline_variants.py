"""The variants of a pipeline: what it allows, and the pipeline of each choice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from bubbleproof.solvers.choices.variants import Option, Variants
from bubbleproof.theory.model.actions import NONE, Kind
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.allowed import EVICT, OFFLOAD, RECOMPUTE, AllowedChoices, Sample
from bubbleproof.theory.pipelines.choices import Choices, changed_by
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.relaxation import relaxation

_WHAT = {
    Kind.R: RECOMPUTE,
    Kind.EVICT: EVICT,
    Kind.LOAD: EVICT,
    Kind.OFFLOAD: OFFLOAD,
    Kind.RELOAD: OFFLOAD,
}


class PipelineVariants:
    """The variants of a pipeline and the pipeline of each choice.

    Raises ``ValueError`` for stages and ranks that the pipeline does not have, and what the
    extensions of ``theory`` refuse.
    """

    def __init__(self, pipeline: Pipeline, allowed: AllowedChoices) -> None:
        self.pipeline, self.allowed = pipeline, allowed
        self.plain = pipeline.problem()
        _refuse_unknown(pipeline, allowed)
        everything = Choices(**self._chosen(self._all_options()))
        setting = replace(pipeline.setting, host_capacity=everything.host_capacity)
        whole = changed_by(self.plain, everything, setting)
        self.options = tuple(self._all_options())
        self._number = {option: number for number, option in enumerate(self.options)}
        self.variants = self._tagged(whole)

    def chosen(self, taken: Collection[int]) -> Pipeline:
        """The pipeline that takes exactly these options.

        Parameters
        ----------
        taken
            Places of options in ``options``.
        """
        options = [self.options[number] for number in sorted(taken)]
        return self.pipeline.with_changes(**self._chosen(options))

    def _all_options(self) -> list[Option]:
        allowed, samples = self.allowed, range(self.pipeline.num_microbatches)
        options = []
        if allowed.recompute is not None:
            rows = samples if allowed.recompute.per_microbatch else (NONE,)
            options += [
                Option(what=RECOMPUTE, stage=stage, microbatch=row)
                for stage in allowed.recompute.stages
                for row in rows
            ]
        for what, stages in (
            (EVICT, self._evicting_stages()),
            (OFFLOAD, () if allowed.offload is None else allowed.offload.stages),
        ):
            options += [
                Option(what=what, stage=stage, microbatch=row, slice=piece)
                for stage in stages
                for row in samples
                for piece in range(self.pipeline.num_slices)
            ]
        return options

    def _evicting_stages(self) -> tuple[int, ...]:
        pairs = () if self.allowed.evict is None else self.allowed.evict.pairs
        ranks, sources = self.pipeline.stage_ranks, {source for source, _ in pairs}
        return tuple(stage for stage, rank in enumerate(ranks) if rank in sources)

    def _chosen(self, options: Collection[Option]) -> dict[str, Any]:
        """The choices, by name, that take exactly these options."""
        taken: dict[str, list[Sample]] = {}
        for one in options:
            taken.setdefault(one.what, []).append((one.stage, one.microbatch, one.slice))
        return self.allowed.taking(taken, self.pipeline.stage_ranks)

    def _tagged(self, whole: Problem) -> Variants:
        """The whole with the option of each row; the rows of the plain problem come first."""
        tasks = np.full(whole.num_tasks, NONE)
        for task in range(self.plain.num_tasks, whole.num_tasks):
            tasks[task] = self._option_of(whole, task, _WHAT[Kind(int(whole.actions.kind[task]))])
        edges, events = whole.edges, whole.events
        event_option = tasks[events.task]
        for row in range(len(self.plain.events), len(events)):
            if event_option[row] == NONE:  # what a recomputed forward drops at its end
                event_option[row] = self._option_of(whole, int(events.task[row]), RECOMPUTE)
        return Variants(
            whole=whole,
            options=self.options,
            task_option=tasks,
            edge_option=np.maximum(tasks[edges.before], tasks[edges.after]),
            event_option=event_option,
            clashes=self._clashes(),
            floor=relaxation(self.pipeline, self.allowed),
        )

    def _option_of(self, whole: Problem, task: int, what: str) -> int:
        actions = whole.actions
        stage, row = int(actions.stage[task]), int(actions.microbatch[task])
        if what != RECOMPUTE:
            piece = int(actions.slice[task])
            return self._number[Option(what=what, stage=stage, microbatch=row, slice=piece)]
        again = self.allowed.recompute
        row = row if again is not None and again.per_microbatch else NONE
        return self._number[Option(what=what, stage=stage, microbatch=row)]

    def _clashes(self) -> tuple[tuple[int, ...], ...]:
        """Pairs of options of different kinds on one sample."""
        rivals: dict[int, list[int]] = {}
        for number, option in enumerate(self.options):
            rivals.setdefault(option.stage, []).append(number)
        return tuple(
            (one, other)
            for numbers in rivals.values()
            for i, one in enumerate(numbers)
            for other in numbers[i + 1 :]
            if self._clash(self.options[one], self.options[other])
        )

    @staticmethod
    def _clash(one: Option, other: Option) -> bool:
        same_sample = one.microbatch == other.microbatch or NONE in (
            one.microbatch,
            other.microbatch,
        )
        same_slice = one.slice == other.slice or RECOMPUTE in (one.what, other.what)
        return one.what != other.what and same_sample and same_slice


def _refuse_unknown(pipeline: Pipeline, allowed: AllowedChoices) -> None:
    if fixed := pipeline.choices.added:
        raise ValueError(
            f"what a solver may choose is added to a pipeline without choices of its own; "
            f"this one has {', '.join(sorted(fixed))}"
        )
    for name, given in (("recompute", allowed.recompute), ("offload", allowed.offload)):
        stages = () if given is None else given.stages
        if len(set(stages)) < len(stages) or any(
            not 0 <= stage < pipeline.num_stages for stage in stages
        ):
            raise ValueError(
                f"{name} may name each stage of 0..{pipeline.num_stages - 1} once, got {stages}"
            )
    for pair in () if allowed.evict is None else allowed.evict.pairs:
        if not all(0 <= rank < pipeline.num_ranks for rank in pair) or pair[0] == pair[1]:
            raise ValueError(
                f"evictions go between two ranks of 0..{pipeline.num_ranks - 1}, got {pair}"
            )
