"""A user's own model, examined before anything runs: shapes, bytes, and whether it can be replayed.

One dry forward and backward per stage, on one microbatch, measures what the closed forms of
``footprint`` say of the reference models: the bytes held from F to B or I, and from I to W. What
would make a replay wrong or unequal is refused: shapes that do not fit, random numbers of foreign
generators, buffers that a forward changes, inputs and unfrozen parameters without gradient, a
factory that gives other weights each time, and what ``own_checks`` asks. So is what raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import torch
from torch import nn

from bubbleproof.reference_exec.births import constants_of
from bubbleproof.reference_exec.bits import same_bits
from bubbleproof.reference_exec.broken import ModelFailed, of_model, one_line
from bubbleproof.reference_exec.flop_count import FlopCount
from bubbleproof.reference_exec.ledger import Ledger
from bubbleproof.reference_exec.models.draws import seed_generators
from bubbleproof.reference_exec.models.dry_run import DryRun, StageFacts
from bubbleproof.reference_exec.models.layers import DTYPES, as_message
from bubbleproof.reference_exec.models.linear import WeightGradStore, deferrable
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import (
    OwnLayer,
    OwnModel,
    build,
    own_batch,
    own_given,
    parcels,
    told,
)
from bubbleproof.reference_exec.models.own_checks import (
    require_float64,
    require_linear_hooks,
    require_numbers,
    require_unchanged,
    values_before,
)
from bubbleproof.reference_exec.models.parcels import (
    called,
    described,
    detached,
    tensors_of,
    with_type,
)


@lru_cache(maxsize=8)
def examined(spec: ModelSpec) -> tuple[StageFacts, ...]:
    """The facts of every stage, on the microbatch of ``spec.sample``.

    Raises ``ValueError`` naming the stage that cannot be replayed.
    """
    try:
        return _examined(spec)
    except (ValueError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        why = one_line(error)
        named = why if isinstance(error, ModelFailed) else f"model {spec.factory}: {why}"
        raise ValueError(named) from error


def _examined(spec: ModelSpec) -> tuple[StageFacts, ...]:
    model, again = build(spec), build(spec)
    _require_same_weights(spec, model, again)
    x, target = own_batch(spec, spec.sample)
    require_numbers("input", parcels(spec).opened(0, x))
    facts = []
    with torch.random.fork_rng(devices=[]):
        for stage, module in enumerate(model.stages):
            x = as_message(x.detach()).requires_grad_(stage > 0)
            score = _itself if stage + 1 < len(model.stages) else partial(_score, model, target)
            layer = partial(_layer, spec, stage, num_stages=len(model.stages))
            y = _output(spec, stage, layer(module), x)
            with of_model(stage, "B"):
                plain = _flops_of(layer(module), x, score)
            replaced = _only_here(layer, stage, again.stages[stage], x, score)
            shared = _shared(module, again.stages[stage])
            run = DryRun(stage, layer(module, replaced), x, score, shared)
            facts.append(run.measured(spec, replaced, plain))
            require_linear_hooks(stage, module, run.backward)
            x = y
        if not any(each.num_trained for each in facts):
            raise ValueError(
                f"model {spec.factory} has no parameter that is trained; a replay compares "
                "gradients: leave one unfrozen (requires_grad_(True))"
            )
        if spec.dtype != "float64":
            _require_float64(spec)
    return tuple(facts)


def _layer(
    spec: ModelSpec, stage: int, module: nn.Module, deferred: Sequence[str] = (), *, num_stages: int
) -> OwnLayer:
    return OwnLayer(stage, module, deferred, parcels(spec), comes_next=stage + 1 < num_stages)


def _only_here(
    layer: Callable[..., OwnLayer],
    stage: int,
    module: nn.Module,
    x: torch.Tensor,
    score: Callable[[torch.Tensor], torch.Tensor],
) -> tuple[str, ...]:
    """The linears that can be deferred: the gradients of their weights come from nothing else."""
    plain = layer(module)
    names = deferrable(module, lambda: plain(x, None))
    deferring = layer(module, names)
    store = WeightGradStore(Ledger())
    store.is_deferring = True
    DryRun(stage, deferring, x, score).backward(store=store)
    weights = zip(names, deferring.gemm_weights().values(), strict=True)
    found = tuple(name for name, weight in weights if weight.grad is None)
    module.zero_grad(set_to_none=True)
    return found


def own_layers(spec: ModelSpec, stages: Sequence[int]) -> list[OwnLayer]:
    """These stages of a new build of the model, their linears replaced."""
    model, facts = build(spec), examined(spec)
    return [
        _layer(spec, stage, model.stages[stage], facts[stage].replaced, num_stages=len(facts))
        for stage in stages
    ]


def _require_same_weights(spec: ModelSpec, model: OwnModel, again: OwnModel) -> None:
    if len(model.stages) != len(again.stages):
        raise ValueError(
            f"model {spec.factory} has {len(model.stages)} stages, the second time "
            f"{len(again.stages)}; it must be the same each time"
        )
    for stage, (first, second) in enumerate(zip(model.stages, again.stages, strict=True)):
        named = dict(second.named_parameters())
        for name, parameter in first.named_parameters():
            other = named.get(name)
            if other is parameter:
                raise ValueError(
                    f"model {spec.factory} gives stage {stage} {name} in one place both times; "
                    "each rank has its own: build the modules in the function"
                )
            if other is None or not same_bits(parameter, other):
                raise ValueError(
                    f"model {spec.factory} gives stage {stage} {name} other values the second "
                    "time; draw them from a seed of its own"
                )


def _require_float64(spec: ModelSpec) -> None:
    """The oracle's computation runs: of another build, on the first microbatch."""
    model = build(spec)
    message, target = own_batch(spec, 0)
    target = target.double() if target.is_floating_point() else target
    given = own_given(spec, message, torch.float64)
    require_float64(model.stages, given, partial(_score, model, target))
    _require_same_draws(spec)


def _require_same_draws(spec: ModelSpec) -> None:
    """Each stage leaves torch's generator at one state, in its own type and in float64."""
    dtypes = DTYPES[spec.dtype], torch.float64
    value: object = own_given(spec, own_batch(spec, 0)[0], DTYPES[spec.dtype])
    for stage, module in enumerate(build(spec).stages):
        states = []
        for dtype in dtypes:
            module.to(dtype)
            seed_generators(0)
            y = detached(called(module, with_type(value, dtype)))
            states.append(torch.get_rng_state())
        if not torch.equal(*states):
            raise ValueError(
                f"model stage {stage} draws other random numbers in float64 than in {spec.dtype}, "
                "so that the ordinary backward would be of another model: draw by dropout or "
                "torch.bernoulli, whose numbers do not depend on the type, or replay in float64"
            )
        value = y


def _shared(module: nn.Module, again: nn.Module) -> list[torch.Tensor]:
    """The tensors that two builds of a stage have in common: those of its classes, of its file."""
    of_second = {id(tensor) for tensor in constants_of([again])}
    return [tensor for tensor in constants_of([module]) if id(tensor) in of_second]


def _output(spec: ModelSpec, stage: int, layer: OwnLayer, x: torch.Tensor) -> torch.Tensor:
    """The message of a stage, after two forwards that must agree and leave its buffers alone."""
    given = parcels(spec).opened(stage, x)
    before = values_before(layer.module)
    outputs: list[list[torch.Tensor]] = []
    for _ in range(2):
        seed_generators(0)
        try:
            y = called(layer.module, given)
        except (Exception, SystemExit) as error:  # a user's module may raise anything
            whose = f"what stage {stage - 1} gives, " if stage else "the input, "
            raise ValueError(
                f"model stage {stage} cannot take {whose}{described(given)}: {told(error)}"
            ) from error
        outputs.append([each.detach() for each in tensors_of(y)])
    require_unchanged(stage, layer.module, before)
    require_numbers(f"stage {stage}: its output", outputs[0])
    if len(outputs[0]) != len(outputs[1]) or not all(map(same_bits, *outputs)):
        raise ValueError(
            f"model stage {stage} gives another output the second time, of the same random "
            "numbers; it must draw from torch's own generator alone, and keep nothing of a forward"
        )
    seed_generators(0)
    try:
        return layer.sent(y)
    except TypeError as error:
        raise ValueError(f"model stage {stage} gives {error}") from None


def _flops_of(
    layer: OwnLayer, x: torch.Tensor, score: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[int, int]:
    """The floating-point operations of a module as it is, forth and back."""
    given = x.detach().clone().requires_grad_(x.requires_grad)
    with FlopCount() as count:
        root = score(layer(given, None))
        forward = count.flops
        if root.requires_grad:
            torch.autograd.backward([root], [torch.ones_like(root)])
    layer.zero_grad(set_to_none=True)
    return forward, count.flops - forward


def _itself(output: torch.Tensor) -> torch.Tensor:
    return output


def _score(model: OwnModel, target: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    """The loss of an output as a replay takes it. Raises ``ValueError`` where it is none."""
    try:
        loss = model.loss(output, target.clone())
    except (Exception, SystemExit) as error:  # whatever the user's function raises
        raise ValueError(f"model loss failed: {told(error)}") from error
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise ValueError("model loss must be one number")
    if not loss.requires_grad:
        raise ValueError("model loss has no gradient; it must be computed from the output")
    require_numbers("loss", loss)
    return loss / 1  # a replay divides it by the number of microbatches
