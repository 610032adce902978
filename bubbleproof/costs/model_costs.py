"""What a model costs in a deployment: one answer for the command, planners and papers.

Parameters are the whole model's. FLOPs, saved bytes and state are one device's: FLOPs of one
microbatch through the stage that computes most (the last: it has the head); saved bytes of one
microbatch in the layers of a stage, by recompute scope; state of the stage that holds most.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction

from bubbleproof.costs.deployment import SCOPES, Deployment
from bubbleproof.costs.flops import Flops, operation_flops
from bubbleproof.costs.operations import Number, layer_operations
from bubbleproof.costs.saved_bytes import (
    embedding_saved,
    head_saved,
    layer_saved,
    message_bytes,
)
from bubbleproof.costs.state import stage_weights, state_bytes
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import (
    embedding_weights,
    head_weights,
    layer_weights,
    layers_weights,
    whole,
    words,
)
from bubbleproof.facts import Fact, FactSource, keyed


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """A model's weights: of one layer, of what comes before all layers, and of what comes after.

    ``embedding`` are the words' and the positions', and a norm behind them;
    ``head`` the last norm, and the output's weights where they are not the embedding's.
    total = layers x layer + both where layers are alike; else ``layer`` is the largest. ``active``
    are those that one token goes through: the total without the experts that it does not.
    """

    layer: Number
    embedding: Number
    head: Number
    total: Number
    active: Number


def parameters(model: Transformer) -> ParameterCounts:
    """The weights of the whole model, as they are published.

    >>> from bubbleproof.costs.known_models import transformer
    >>> gpt2 = transformer("gpt", layers=12, hidden=768, heads=12, vocabulary=50257, positions=1024)
    >>> parameters(gpt2).total
    124439808
    """
    one = Deployment()
    layer = max(layer_weights(kind, one).total for kind, _ in model.layer_runs)
    before, after = embedding_weights(model, one).total, head_weights(model, one).total
    total = whole(layers_weights(model, one, model.layers).total + before + after)
    idle = sum(count * _idle(kind) for kind, count in model.layer_runs)
    return ParameterCounts(
        layer=layer, embedding=before, head=after, total=total, active=whole(total - idle)
    )


def _idle(kind: Transformer) -> Number:
    """Weights of a layer's experts that a token does not go through."""
    unused = (
        o.parameters * Fraction(o.copies - o.passes, o.copies) for o in layer_operations(kind)
    )
    return sum(unused, Fraction(0))


def layer_flops(model: Transformer, at: Deployment) -> Flops:
    """FLOPs of one layer."""
    return sum((operation_flops(o, model, at) for o in layer_operations(model)), Flops())


def head_flops(model: Transformer, at: Deployment) -> Flops:
    """FLOPs of the product with the vocabulary; nothing of it is recomputed."""
    tokens = Fraction(at.micro_batch * at.sequence, at.context)
    product = 2 * tokens * model.hidden * words(model, at)
    return Flops() + Flops(forward=product, input_backward=product, weight_backward=product)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """One stage on one device, for one microbatch; see ``ModelCosts`` for the units."""

    layers: int
    parameters: Number
    flops: Flops
    saved_bytes: Number
    state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelCosts(FactSource):
    """FLOPs, bytes and numbers of weights; see the module's text.

    ``layer`` and ``head`` are FLOPs of one layer and of the head on a device, ``saved_bytes`` by
    scope; ``embedding_saved`` and ``head_saved`` come on top on the first and last stage.
    """

    model: Transformer
    deployment: Deployment
    parameters: ParameterCounts
    layer: Flops
    head: Flops
    saved_bytes: dict[str, Number]
    embedding_saved: Number
    head_saved: Number
    message_bytes: Number
    stages: tuple[StageCosts, ...]

    @property
    def flops(self) -> Flops:
        """Of the stage that computes most."""
        return max((stage.flops for stage in self.stages), key=lambda flops: flops.forward)

    @property
    def state_bytes(self) -> int:
        """Of the stage that holds most."""
        return max(stage.state_bytes for stage in self.stages)

    def facts(self) -> list[Fact]:
        """All of it: numbers of weights, FLOPs, and bytes in GiB."""
        weights, flops = self.parameters, _by_letter(self.flops)
        ends = f"{_gib(self.embedding_saved)} and {_gib(self.head_saved)}"
        stages = [{**asdict(stage), "flops": _by_letter(stage.flops)} for stage in self.stages]
        numbers = {
            "one layer": weights.layer,
            f"{self.model.layers} layers": weights.total - weights.embedding - weights.head,
            "embedding": weights.embedding,
            "head": weights.head,
            "the model": weights.total,
        }
        saved = {f"saved bytes, scope {scope}": value for scope, value in self.saved_bytes.items()}
        state = "state bytes (weights, gradients, optimizer)"
        both = self.embedding_saved, self.head_saved

        def gib(label: str, value: Number, key: str = "") -> Fact:
            return Fact(key=key, label=label, value=value, told=_gib(value))

        return [
            *keyed(model=self.model.name, parameters=asdict(weights)),
            *(Fact(label=name, value=value, told=f"{value:,}") for name, value in numbers.items()),
            *keyed(flops=flops),
            *(
                Fact(label=f"FLOPs {name}", value=value, told=f"{float(value) / 1e12:,.3f} T")
                for name, value in flops.items()
            ),
            *keyed(saved_bytes=self.saved_bytes),
            *(gib(label, value) for label, value in saved.items()),
            Fact(label="saved before and behind the layers", value=both, told=ends),
            gib("message to the next stage", self.message_bytes),
            gib(state, self.state_bytes, key="state_bytes"),
            *keyed(embedding_saved_bytes=both[0], head_saved_bytes=both[1]),
            *keyed(message_bytes=self.message_bytes, layer_flops=_by_letter(self.layer)),
            *keyed(head_flops=_by_letter(self.head), stages=stages),
            *keyed(deployment=asdict(self.deployment)),
        ]


def _by_letter(flops: Flops) -> dict[str, Number]:
    return {
        "F": flops.forward,
        "I": flops.input_backward,
        "W": flops.weight_backward,
        "R": flops.again,
    }


def _gib(value: Number) -> str:
    return f"{float(value) / 2**30:,.3f} GiB ({float(value):,.0f} bytes)"


def model_costs(
    model: Transformer, deployment: Deployment, cut: tuple[int, ...] | None = None
) -> ModelCosts:
    """What the model costs; ``cut`` are the layers of each stage, evenly where none is told.

    Parameters
    ----------
    cut
        The layers of each stage; None for an even cut.

    Returns
    -------
    ModelCosts
        Parameters in numbers, FLOPs of one microbatch on one device, and bytes.

    Raises
    ------
    ValueError
        Where the model cannot be cut so.
    """
    deployment.require(model)
    cut = cut or (model.layers // deployment.pipeline,) * deployment.pipeline
    return ModelCosts(
        model=model,
        deployment=deployment,
        parameters=parameters(model),
        layer=layer_flops(model, deployment),
        head=head_flops(model, deployment),
        saved_bytes={scope: _most_saved(model, deployment, cut, scope) for scope in SCOPES},
        embedding_saved=embedding_saved(model, deployment),
        head_saved=head_saved(model, deployment),
        message_bytes=message_bytes(model, deployment),
        stages=tuple(_stage(model, deployment, cut, stage) for stage in range(len(cut))),
    )


def _most_saved(model: Transformer, at: Deployment, cut: tuple[int, ...], scope: str) -> Number:
    """Bytes of the layers of the stage that keeps most."""
    return max(
        whole(sum(count * layer_saved(kind, at, scope) for kind, count in kinds))
        for kinds in (model.between(sum(cut[:n]), each) for n, each in enumerate(cut))
    )


def _stage(model: Transformer, at: Deployment, cut: tuple[int, ...], stage: int) -> StageCosts:
    is_first, is_last, layers = stage == 0, stage == len(cut) - 1, cut[stage]
    before = sum(cut[:stage])
    weights = stage_weights(
        model, at, layers=layers, is_first=is_first, is_last=is_last, before=before
    )
    kinds = model.between(before, layers)
    flops = sum((layer_flops(kind, at) * count for kind, count in kinds), Flops())
    saved = whole(sum(count * layer_saved(kind, at) for kind, count in kinds))
    if is_first:
        saved += embedding_saved(model, at)
    if is_last:
        flops += head_flops(model, at)
        saved += head_saved(model, at)
    return StageCosts(
        layers=layers,
        parameters=weights.total,
        flops=flops,
        saved_bytes=saved,
        state_bytes=state_bytes(weights, at),
    )
