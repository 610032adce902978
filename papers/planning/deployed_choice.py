"""What a paper's planner runs of a model on a cluster: the deployment, and its choice there.

BPipe and MEPipe have grids: the first is the least by the paper's own count. T-Pipe and PipeMesh
have none: they begin at the plan's deployment (T-Pipe with any recompute scope, PipeMesh under
ZeRO-1). Where the paper's choice does not run there, and none of its repairs, the next deployments
are tried, ``MOST_TRIED`` at most; the choice told is the first's, what runs is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf

from bubbleproof.costs.combinations import AnyCount, CombinationCosts, TrainingJob, legal
from bubbleproof.papers.bpipe.bpipe_planner import why_nothing_fits as of_bpipe
from bubbleproof.papers.mepipe.mepipe_planner import why_nothing_fits as of_mepipe
from bubbleproof.papers.planning.paper_choice import (
    AcceptedSchedule,
    PaperChoice,
    PaperInput,
    iteration,
    no_choice,
)
from bubbleproof.papers.planning.paper_deployments import (
    PaperSpaceOf,
    chooses_deployments,
    deployed_input,
    given_of,
    in_order,
    of_its_grid,
)
from bubbleproof.papers.planning.planner_list import paper_choice
from bubbleproof.papers.tpipe.tpipe_planner import predicted_ticks as of_tpipe
from bubbleproof.theory.pipelines.choices import Choices

MOST_TRIED = {"bpipe": 12, "mepipe": 4, "pipemesh": 3, "tpipe": 8}
WHY: dict[str, Callable[[Sequence[PaperInput]], str]] = {"bpipe": of_bpipe, "mepipe": of_mepipe}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeployedChoice:
    """A paper's choice and the deployment of what runs of it; ``at`` is None where none is asked.

    ``inside`` ticks of the step's end are in its pipeline.
    """

    at: CombinationCosts | None
    chosen: PaperChoice
    inside: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperGrid:
    """A model on a cluster as a paper's planner meets it.

    ``counts`` have the deployments in the order in which a planner without a grid tries them.
    """

    paper: str
    training: TrainingJob
    counts: Sequence[AnyCount]
    winner: CombinationCosts
    space_of: PaperSpaceOf

    def choice(self) -> DeployedChoice:
        """The first deployment's choice, with what runs of it or of the next that runs."""
        first: DeployedChoice | None = None
        begun, others = self._tried()
        alike = [self._choice_at(at) for at in begun]
        for one in chain(sorted(alike, key=_place), map(self._choice_at, others)):
            if one.chosen.run is not None:
                return one if first is None else _instead(first, one)
            first = first or one
        return first or DeployedChoice(at=None, chosen=no_choice(self.paper, self._why()))

    def _tried(self) -> tuple[list[CombinationCosts], list[CombinationCosts]]:
        """Deployments that are compared by what they take, and those of which the first is run."""
        most = MOST_TRIED[self.paper]
        if chooses_deployments(self.paper):
            cluster = self.training.cluster
            found = in_order(self.paper, self.counts, self.space_of, cluster)
            return [], [one.counted for one in found[:most]]
        own, fitting = (
            self.winner.combination,
            [one for one in legal(self.counts) if not one.reason],
        )
        others = of_its_grid(self.counts)
        if self.paper == "pipemesh":
            wanted = replace(own, zero=1)
            begun = [one for one in fitting if one.combination == wanted]
            others = [one for one in others if one.combination.zero == 1]
        else:
            begun = [one for one in fitting if replace(one.combination, scope=own.scope) == own]
            others = sorted(others, key=self._count)
        return begun, [one for one in others if one not in begun][:most]

    def _count(self, at: CombinationCosts) -> float:
        """T-Pipe's own count of an iteration; no number where nothing of it fits on paper."""
        try:
            given = deployed_input(self.paper, self.space_of(at), self.training, at)
            ticks = of_tpipe(given)
        except ValueError:
            return inf
        return inf if ticks is None else ticks + at.numbers.step_end

    def _choice_at(self, at: CombinationCosts) -> DeployedChoice:
        try:
            given = deployed_input(self.paper, self.space_of(at), self.training, at)
            chosen = paper_choice(self.paper, given)
        except ValueError as unmet:
            chosen = no_choice(self.paper, str(unmet))
        told = {"deployment": str(at.combination), **chosen.choice}
        chosen = replace(chosen, choice=told, run=_own(chosen.run), improved=_own(chosen.improved))
        if self.paper != "pipemesh":
            return DeployedChoice(at=at, chosen=chosen)
        # Others have their collectives at the step's end: their makespan is their cost here.
        has_collectives = chosen.run is not None and chosen.run.pipeline.choices.sharding
        inside = at.numbers.step_end - at.numbers.rest_end if has_collectives else 0
        return DeployedChoice(at=at, chosen=replace(chosen, cost=iteration), inside=inside)

    def _why(self) -> str:
        """Why no deployment is one that the planner takes."""
        if self.paper == "pipemesh":
            return (
                "section IV-A shards the optimizer's state (ZeRO-1), and no deployment that fits "
                "has it; use plan.zero = [1]"
            )
        evenly = of_its_grid(self.counts)
        if not evenly:
            fitting = [one for one in legal(self.counts) if not one.reason]
            return _uneven(self.paper, self.training, fitting)
        cluster = self.training.cluster
        given = [given_of(self.paper, one, self.space_of, cluster) for one in evenly]
        return WHY[self.paper](given)


def _place(one: DeployedChoice) -> tuple[bool, bool, float]:
    """What runs as printed first, then what runs, each by its iteration."""
    chosen, at = one.chosen, one.at
    if chosen.value is None or at is None:
        return True, True, 0
    return not chosen.executable, False, chosen.value + at.numbers.step_end - one.inside


def _own(run: AcceptedSchedule | None) -> AcceptedSchedule | None:
    """The run as none of a deployment's candidates where it makes choices, which those have not."""
    if run is None or run.pipeline.choices == Choices():
        return run
    return replace(run, candidate=None)


def _instead(first: DeployedChoice, runs: DeployedChoice) -> DeployedChoice:
    """The first's choice, which does not run, with what runs at another deployment."""
    where = runs.chosen.choice["deployment"]
    note = f"{first.chosen.note}; what runs is its choice at {where}"
    told = replace(runs.chosen, choice=first.chosen.choice, executable=False, note=note)
    return replace(runs, chosen=told)


def _uneven(paper: str, training: TrainingJob, fitting: Sequence[CombinationCosts]) -> str:
    """That the paper's stages have as many layers each, and no deployment has such."""
    layers = training.model.layers
    sizes = sorted({one.combination.pipeline for one in fitting}) or [1]
    near = max(1, round(layers / sizes[0])) * sizes[0]
    section = {"bpipe": "section 3.1", "mepipe": "Table 3", "tpipe": "section 4.1"}[paper]
    return (
        f"{section} divides the layers evenly among the ranks, and {layers} layers are not "
        f"divisible by {', '.join(map(str, sizes))} ranks; use {near} layers"
    )
