"""Which deployment a paper's planner takes, of those that a model on a cluster allows.

BPipe's grid is (t, p, d, microbatch, scope) (section 4.2, Table 2), MEPipe's (PP, SPP, VP, DP, CP)
(section 7.2); both papers try their grids on machines. Here each deployment that fits on paper has
the paper's own count of a step, (m + p - 1) (F + B) or Table 3's slots, at the estimated times of a
rank, and what follows the pipeline (gradients, weights, optimizer). The least is chosen. Both
papers share optimizer state among replicas, so of the ZeRO levels listed 1 is taken where it is
listed. SPP and VP are the slices and chunks of the file's ``[plan]``, CP its ``context``: cards
that share a sample hold 1/CP of its activations (section 7.3), and the time model exchanges their
heads for its tokens (``costs.times.work``); of what that takes the paper prints no formula.

BPipe's transfers move a rank's activation of a microbatch, at a card's bandwidth within its node,
or at its share of a node's to others where a pair stands on two (Appendix B).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.combinations import AnyCount, CombinationCosts, TrainingJob, legal
from bubbleproof.papers.bpipe.bpipe_planner import predicted_ticks as of_bpipe
from bubbleproof.papers.mepipe.mepipe_planner import predicted_ticks as of_mepipe
from bubbleproof.papers.pipemesh.mesh_operations import mesh_table
from bubbleproof.papers.planning.paper_choice import PaperInput
from bubbleproof.papers.tpipe.host_numbers import host_table, shallow_recompute
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace

BYTES_PER_TICK = 1000  # of a GB/s: ticks are microseconds
PaperSpaceOf = Callable[[CombinationCosts], PlanSpace]
PREDICTED: dict[str, Callable[[PaperInput], int | None]] = {"bpipe": of_bpipe, "mepipe": of_mepipe}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperDeployment:
    """A deployment as a paper's planner sees it, and its count of an iteration in ticks."""

    counted: CombinationCosts
    given: PaperInput
    predicted: int

    @property
    def step_end(self) -> int:
        """Ticks after the pipeline."""
        return self.counted.numbers.step_end


def chooses_deployments(paper: str) -> bool:
    """Whether the paper's planner has a grid of deployments."""
    return paper in PREDICTED


def in_order(
    paper: str, counts: Sequence[AnyCount], space_of: PaperSpaceOf, cluster: Cluster
) -> list[PaperDeployment]:
    """The deployments that fit on paper, the least count first, equal ones as they are given."""
    found = _predictions(paper, counts, space_of, cluster)
    return sorted(found, key=lambda one: one.predicted)


def _predictions(
    paper: str, counts: Sequence[AnyCount], space_of: PaperSpaceOf, cluster: Cluster
) -> Iterator[PaperDeployment]:
    for one in of_its_grid(counts):
        try:
            given = given_of(paper, one, space_of, cluster)
            ticks = PREDICTED[paper](given)
        except ValueError:  # stages that fit on no node
            continue
        if ticks is not None:
            deployed = PaperDeployment(counted=one, given=given, predicted=ticks)
            yield replace(deployed, predicted=ticks + deployed.step_end)


def of_its_grid(counts: Sequence[AnyCount]) -> list[CombinationCosts]:
    """Those that fit one microbatch, cut evenly, under ZeRO 1 where that is listed."""
    levels = {one.combination.zero for one in counts}
    return [
        one
        for one in legal(counts)
        if not one.reason and _is_even(one) and (1 not in levels or one.combination.zero == 1)
    ]


def given_of(
    paper: str, one: CombinationCosts, space_of: PaperSpaceOf, cluster: Cluster
) -> PaperInput:
    """What a planner with a grid is given of a deployment."""
    given = PaperInput(space=space_of(one), table={})
    return with_transfers(given, one, cluster) if paper == "bpipe" else given


def _is_even(one: CombinationCosts) -> bool:
    """Whether all stages have as many layers, as in the papers."""
    return one.numbers.layers.number % one.combination.pipeline == 0


def with_transfers(given: PaperInput, one: CombinationCosts, cluster: Cluster) -> PaperInput:
    """The space with evictions to the mirrored rank, and where the stages stand."""
    at, pipeline = one.combination, given.space.pipeline
    last, moved = pipeline.num_ranks - 1, int(pipeline.per_stage.activation.min())
    card = cluster.card
    within, between = (
        max(1, ceil(moved / (gbs * BYTES_PER_TICK)))
        for gbs in (card.link_gbs, card.network_gbs / card.cards_per_node)
    )
    pairs = tuple((rank, last - rank) for rank in range(last + 1) if 2 * rank != last)
    allowed = AllowedChoices(evict=AllowedEvictions(pairs=pairs, duration=within))
    table = {
        "tensor": at.tensor,
        "replicas": at.data,
        "node": card.cards_per_node,
        "transfer_between_nodes": between,
    }
    return PaperInput(space=replace(given.space, allowed=allowed), table=table)


def deployed_input(
    paper: str, space: PlanSpace, training: TrainingJob, at: CombinationCosts
) -> PaperInput:
    """What a paper's planner is given of a deployment whose pipelines have this space."""
    if paper == "pipemesh":
        return PaperInput(space=space, table=mesh_table(training, at))
    if paper == "tpipe":
        opened = replace(space, allowed=shallow_recompute(training, at))
        return PaperInput(space=opened, table=host_table(training, at))
    return given_of(paper, at, lambda _: space, training.cluster)
