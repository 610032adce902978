"""The deployments that a plan goes through: how a model is cut over the cards of a cluster.

A *combination* is (tensor, data, pipeline, micro-batch, ZeRO level, recompute scope), and context
parallelism and the precision where the lists have them. It is one pipeline problem of ``pipeline``
ranks and samples / (data x micro-batch) microbatches, whose numbers ``costs`` computes. One that a
number forbids is told with that number; one of which a single microbatch does not fit has no
schedule at all (a rank holds the same layers in one chunk or in more, but for where the embedding
and the head stand, which only adds to a rank).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from math import prod

from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_layers import ClusterLayers, JobLayers
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.transformer import Transformer
from bubbleproof.theory.pipelines.shapes.layer_cuts import Cut, CutRule, Layers

MOST_COMBINATIONS = 100_000
OTHERS = ("micro_batch", "scope", "expert", "precision")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Combination:
    """Parallel sizes, the samples of a microbatch, the ZeRO level, the recompute scope.

    ``precision`` is told where several are tried; else it is the job's.
    """

    tensor: int
    data: int
    pipeline: int
    micro_batch: int
    zero: int
    scope: str
    context: int = 1
    expert: int = 1
    precision: str = ""

    def __str__(self) -> str:
        sizes = f"t={self.tensor} d={self.data} p={self.pipeline} b={self.micro_batch}"
        sizes += f" c={self.context}" if self.context > 1 else ""
        sizes += f" e={self.expert}" if self.expert > 1 else ""
        return f"{sizes} zero={self.zero} {self.scope} {self.precision}".rstrip()

    def experts_counted(self, experts: int = 0) -> int:
        """The expert degree of as many weights on a card, cut by tensor groups.

        Experts lie over the replicas, each cut by the tensor group. Over more cards than replicas
        each is whole on a card of a tensor group (expert tensor degree 1): ``tensor`` of them are
        there, where ``tensor`` cards would have a share of each. Products are as many.

        Parameters
        ----------
        experts
            Those of a layer, which the degree divides; 0 where that is not asked.
        """
        over, rest = divmod(self.expert, self.tensor)
        is_cut = self.data % self.expert == 0 or experts % self.expert > 0
        return self.expert if is_cut or rest or self.data % over else over

    def to_json(self) -> dict[str, object]:
        """Its keys, by name."""
        every = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in every.items() if value != ""}


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A model to train on a cluster: ``samples`` of a step, each of ``deployment.sequence`` tokens.

    ``deployment`` has what all combinations share (sequence, accounting, precision, expert);
    ``rule`` says which cuts into stages are tried; what slices divide is a multiple of
    ``shares``.
    """

    model: Transformer
    cluster: Cluster
    samples: int
    deployment: Deployment
    rule: CutRule
    shares: int = 1

    @cached_property
    def numbers(self) -> JobLayers:
        """Makes the numbers of its deployments."""
        return JobLayers(self.model, self.cluster, self.shares)

    def __getstate__(self) -> dict[str, object]:
        """Its fields: what was kept beside them is made again, and no process takes it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """What to try; an empty list stands for all that the cards and the model allow."""

    tensor: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    pipeline: tuple[int, ...] = ()
    micro_batch: tuple[int, ...] = (1, 2, 4, 8)
    zero: tuple[int, ...] = (0, 1, 2, 3)
    scope: tuple[str, ...] = ("none", "attention", "full")
    context: tuple[int, ...] = (1,)
    expert: tuple[int, ...] = (1,)
    precision: tuple[str, ...] = ("",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinationCosts:
    """A combination and its numbers.

    ``needed`` bytes of a card let it run one microbatch at a time; the ``reason`` tells where a
    card has less.
    """

    combination: Combination
    numbers: ClusterLayers
    microbatches: int
    needed: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForbiddenCombination:
    """A combination that a number forbids, and the ``reason``."""

    combination: Combination
    reason: str


AnyCount = CombinationCosts | ForbiddenCombination


def combinations(training: TrainingJob, lists: Lists) -> tuple[Combination, ...]:
    """All of them, legal or not. Raises ``ValueError`` for more than ``MOST_COMBINATIONS``."""
    tensor, data, pipeline = _sizes(training, lists)
    shapes = [
        (t, d, p, c)
        for t, d, p, c in product(tensor, data, pipeline, lists.context)
        if t * d * p * c == training.cluster.cards
    ]
    if not shapes:
        raise ValueError(
            f"no tensor x data x pipeline of the lists is the {training.cluster.cards} cards; "
            f"use such as {_nearest(training.cluster.cards, tensor, pipeline, lists)}"
        )
    cuts = [(shape, zero) for shape in shapes for zero in _levels(shape, lists)]
    others = [getattr(lists, name) for name in OTHERS]
    number = len(cuts) * prod(map(len, others))
    if number > MOST_COMBINATIONS:
        raise ValueError(
            f"a plan goes through at most {MOST_COMBINATIONS} combinations, these are {number}; "
            "list fewer values"
        )
    names = ("tensor", "data", "pipeline", "context", "zero", *OTHERS)
    every = ((*shape, zero, *rest) for (shape, zero), *rest in product(cuts, *others))
    return tuple(Combination(**dict(zip(names, each, strict=True))) for each in every)


def _levels(shape: tuple[int, int, int, int], lists: Lists) -> tuple[int, ...]:
    """ZeRO levels that differ: where one replica has all, nothing is shared at any."""
    _, data, _, context = shape
    return lists.zero if data * context > 1 else (min(lists.zero),)


def _sizes(training: TrainingJob, lists: Lists) -> tuple[tuple[int, ...], ...]:
    cards = training.cluster.cards
    divisors = tuple(n for n in range(1, cards + 1) if cards % n == 0)
    within = tuple(n for n in divisors if n <= training.cluster.card.cards_per_node)
    deep = tuple(n for n in divisors if n <= training.model.layers)
    return lists.tensor or within, lists.data or divisors, lists.pipeline or deep


def _nearest(cards: int, tensor: tuple[int, ...], pipeline: tuple[int, ...], lists: Lists) -> str:
    """The replicas that the other lists leave for the cards, or the nearest number of cards."""
    sizes = [t * p * c for t, p, c in product(tensor, pipeline, lists.context)]
    if fits := [cards // size for size in sizes if cards % size == 0]:
        return f"data = [{max(fits)}]"
    multiples = (max(1, round(cards / size)) * size for size in sizes)
    found = min(multiples, key=lambda each: abs(each - cards))
    return f"cards = {found} and data = [{found // min(s for s in sizes if found % s == 0)}]"


def counted(training: TrainingJob, combination: Combination) -> AnyCount:
    """The combination with its numbers and bound, or why not."""
    each = combination.data * combination.micro_batch
    if why := _no_microbatches(training.samples, each) or _no_stages(training, combination):
        return ForbiddenCombination(combination=combination, reason=why)
    at = counted_deployment(training, combination)
    try:
        numbers = training.numbers.of(at, training.rule, training.samples // each)
    except ValueError as error:
        return ForbiddenCombination(combination=combination, reason=str(error))
    needed = min(_held(numbers.layers, cut) for cut in numbers.cuts) + numbers.beside
    return CombinationCosts(
        combination=combination,
        reason="" if needed <= training.cluster.memory else _full(needed, training.cluster.memory),
        numbers=numbers,
        microbatches=training.samples // each,
        needed=needed,
    )


def counted_deployment(training: TrainingJob, combination: Combination) -> Deployment:
    """The deployment by whose numbers a combination is counted (``experts_counted``)."""
    expert = combination.experts_counted(training.model.experts or 1)
    return training.deployment.with_changes(**{**combination.to_json(), "expert": expert})


def legal(counts: Iterable[object]) -> list[CombinationCosts]:
    """Those that no number forbids."""
    return [one for one in counts if isinstance(one, CombinationCosts)]


def _held(layers: Layers, cut: Cut) -> int:
    """Bytes of the fullest stage with one microbatch."""
    return max(layers.of_stages("held", cut))


def _no_microbatches(samples: int, each: int) -> str:
    """Why samples cannot be dealt out, so many each time; nothing where they can."""
    nearest = max(1, round(samples / each)) * each
    why = f"{samples} samples are not divisible by data x micro_batch = {each}"
    return f"{why}; use samples = {nearest}" if samples % each else ""


def _no_stages(training: TrainingJob, combination: Combination) -> str:
    """Why layers cannot be cut so, with the nearest number of stages that the cards have as well;
    nothing where they can."""
    layers, cards = training.model.layers, training.cluster.cards // combination.tensor
    wanted, is_uneven = combination.pipeline, training.rule.is_uneven
    if wanted <= layers and (is_uneven or layers % wanted == 0):
        return ""
    fits = [n for n in range(1, layers + 1) if (is_uneven or layers % n == 0) and cards % n == 0]
    nearest = min(fits, key=lambda n: abs(n - wanted))
    rule = "be at most" if is_uneven else "divide"
    return f"pipeline must {rule} layers {layers}, got {wanted}; use pipeline = {nearest}"


def _full(needed: int, memory: int) -> str:
    unit, size = ("GiB", 1 << 30) if memory >= 1 << 30 else ("MiB", 1 << 20)
    return f"does not fit: one microbatch needs {needed / size:.1f} of {memory / size:.1f} {unit}"
