"""What is handed over: a schedule and, where it comes from a plan, the model and its deployment.

A target gets *files* by name and *losses*, one sentence each: what it does not do of what was
planned. What it would get wrong without a word is refused (``ValueError``, one line).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bubbleproof.costs.combinations import CombinationCosts, TrainingJob, combinations, counted
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.transformer import Transformer
from bubbleproof.formats.plans.plan_json import PlanFile
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.frameworks import framework_named
from bubbleproof.hand_over.own_reader import OwnReading
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut

EMBEDDING, NORM, HEAD = "tok_embeddings", "norm", "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedModel:
    """The model of a plan, how it is cut over cards, and the samples of a step.

    ``layers`` has the number of layers of each stage, in the order of stages. ``job`` and ``costs``
    are what the plan was made of, where it is known.
    """

    model: Transformer
    deployment: Deployment
    layers: Cut
    samples: int
    job: TrainingJob | None = None
    costs: CombinationCosts | None = None


def planned_of(plan: PlanFile) -> PlannedModel | None:
    """The model and deployment of a plan that starts from a model; None of a problem's."""
    if plan.cluster is None or not plan.winner.layers:
        return None
    job = plan.cluster.training
    named = {str(each): each for each in combinations(job, plan.cluster.lists)}
    found = named.get(plan.deployment or "")
    if found is None:
        raise ValueError(
            f"plan {plan.name} has no deployment {plan.deployment!r} among those of its file"
        )
    counts = counted(job, found)
    return PlannedModel(
        model=job.model,
        deployment=job.deployment.with_changes(**found.to_json()),
        layers=plan.winner.layers,
        samples=job.samples,
        job=job,
        costs=counts if isinstance(counts, CombinationCosts) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandedSchedule:
    """A schedule with its pipeline; ``planned`` where a plan tells a model."""

    name: str
    given: ScheduleFile
    pipeline: Pipeline
    planned: PlannedModel | None = None

    @property
    def num_stages(self) -> int:
        """Stages of the whole pipeline."""
        return len(self.pipeline.stage_ranks)

    @property
    def is_loop(self) -> bool:
        """Whether stage g lies on rank g mod p."""
        p = self.pipeline.num_ranks
        return self.pipeline.stage_ranks == tuple(g % p for g in range(self.num_stages))

    @property
    def is_v(self) -> bool:
        """Whether two chunks go down the ranks and up again."""
        p = self.pipeline.num_ranks
        return self.pipeline.stage_ranks == (*range(p), *reversed(range(p)))

    def modules(self, head: str = HEAD) -> list[list[str]]:
        """The names of each stage's modules, as torchtitan calls those of a decoder; its ``head``.

        Without a plan each stage is one layer.
        """
        cut = self.planned.layers if self.planned else (1,) * self.num_stages
        first = [sum(cut[:stage]) for stage in range(len(cut))]
        named = [
            [f"layers.{layer}" for layer in range(begin, begin + number)]
            for begin, number in zip(first, cut, strict=True)
        ]
        named[0].insert(0, EMBEDDING)
        named[-1] += [NORM, head]
        return named

    def require_plan(self, target: str) -> PlannedModel:
        """What was planned. Raises ``ValueError`` for a schedule that tells no model."""
        if self.planned is None:
            raise ValueError(
                f"hand-over to {target} needs a plan of a model ([model] [cluster] [batch]), "
                f"got {self.name}, which tells no layers; use --to torch"
            )
        return self.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedFiles:
    """What a target is given: ``files`` by name, how to ``start``, and what is lost.

    ``has_table`` says that a PyTorch table stands among them, ``checked`` what of the files was
    read back by code of ours, ``read`` what by the target's own.
    """

    files: Mapping[str, str]
    start: str
    losses: tuple[str, ...]
    has_table: bool = False
    checked: tuple[str, ...] = ()
    read: OwnReading = field(default_factory=OwnReading)


TargetWriter = Callable[[HandedSchedule], HandedFiles]


def require_untied(handed: HandedSchedule, target: str) -> None:
    """Raise ``ValueError`` where embedding and head share weights on different ranks.

    PyTorch's runtime exchanges no gradient of shared weights (torch 2.6 to 2.15): both ends train
    on their own, without an error.
    """
    planned, runs = handed.planned, framework_named(target, "--to")
    if planned is None or runs.ties or not planned.model.tied or handed.pipeline.num_ranks == 1:
        return
    raise ValueError(
        f"hand-over to {target}: {planned.model.name or 'the model'} ties head and embedding, and "
        "PyTorch's runtime does not add their gradients; untie them, or use --to megatron"
    )


def require_runs(handed: HandedSchedule, target: str) -> PlannedModel:
    """What was planned, where the target runs it. Raises ``ValueError`` for what it does not."""
    planned, runs = handed.require_plan(target), framework_named(target, "--to")
    require_untied(handed, target)
    at, ranks = planned.deployment, handed.pipeline.num_ranks
    why = runs.model_refused(planned.model) or runs.precision_refused(at.precision)
    why = why or runs.experts_refused(
        expert=at.expert, data=at.data, context=at.context, tensor=at.tensor, zero=at.zero
    )
    if runs.fills and ranks > 1 and handed.pipeline.num_microbatches < ranks:
        microbatches = handed.pipeline.num_microbatches
        why = f"it runs {ranks} ranks with as many microbatches or more, not {microbatches}"
    if at.context > 1 and at.zero not in runs.sharded_zero:
        why = why or f"weights lie over its context ranks: zero = {list(runs.sharded_zero)}"
    if handed.pipeline.num_chunks > 1 and ranks == 1 and not runs.lone_chunks:
        why = why or "one rank has no pipeline there: chunks = [1]"
    if why:
        raise ValueError(f"hand-over to {target}: {why}")
    return planned


def launch_sizes(planned: PlannedModel) -> str:
    """Nodes and cards of each, as torchrun is told them."""
    cards = planned.deployment.devices
    each = min(cards, 8 if planned.job is None else planned.job.cluster.card.cards_per_node)
    return f"--nnodes {-(-cards // each)} --nproc-per-node {each}"
