"""A user's own model, examined before anything runs: shapes, bytes, and whether it can be replayed.

One dry forward and backward per stage, on microbatch 0, measures what the closed forms of
``footprint`` say of the reference models: the bytes held from F to B or I, and from I to W. What
would make a replay wrong or unequal is refused: shapes that do not fit, random numbers of foreign
generators, buffers that a forward changes, parameters that two stages share, inputs and unfrozen
parameters without gradient, a factory that gives other weights each time, and what ``own_checks``
asks. So is what raises.
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
    told,
)
from bubbleproof.reference_exec.models.own_checks import (
    require_float64,
    require_linear_hooks,
    require_numbers,
    require_unchanged,
    values_before,
)


@lru_cache(maxsize=8)
def examined(spec: ModelSpec) -> tuple[StageFacts, ...]:
    """The facts of every stage. Raises ``ValueError`` naming the stage that cannot be replayed."""
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
    _require_own_parameters(model)
    x, target = own_batch(spec, 0)
    require_numbers("input", x)
    facts = []
    with torch.random.fork_rng(devices=[]):
        for stage, module in enumerate(model.stages):
            x = as_message(x.detach()).requires_grad_(stage > 0)
            is_last = stage == len(model.stages) - 1
            y = _output(stage, module, x, DTYPES[spec.dtype])
            score = partial(_score, model, target) if is_last else _itself
            with of_model(stage, "B"):
                plain = _flops_of(module, x, score)
            replaced = _only_here(stage, again.stages[stage], x, score)
            shared = _shared(module, again.stages[stage])
            run = DryRun(stage, OwnLayer(stage, module, replaced), x, score, shared)
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


def _only_here(
    stage: int, module: nn.Module, x: torch.Tensor, score: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[str, ...]:
    """The linears that can be deferred: the gradients of their weights come from nothing else."""
    names = deferrable(module, x)
    layer = OwnLayer(stage, module, names)
    store = WeightGradStore(Ledger())
    store.is_deferring = True
    DryRun(stage, layer, x, score).backward(store=store)
    weights = zip(names, layer.gemm_weights().values(), strict=True)
    found = tuple(name for name, weight in weights if weight.grad is None)
    module.zero_grad(set_to_none=True)
    return found


def own_layers(spec: ModelSpec, stages: Sequence[int]) -> list[OwnLayer]:
    """These stages of a new build of the model, their linears replaced."""
    model, facts = build(spec), examined(spec)
    return [OwnLayer(stage, model.stages[stage], facts[stage].replaced) for stage in stages]


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


def _require_own_parameters(model: OwnModel) -> None:
    owner: dict[int, tuple[int, str]] = {}
    for stage, module in enumerate(model.stages):
        for name, parameter in module.named_parameters():
            other = owner.setdefault(id(parameter), (stage, name))
            if other[0] != stage:
                raise ValueError(
                    f"model stages {other[0]} and {stage} share the parameter {other[1]}; each "
                    "stage must have its own: put both uses into one stage, or give each a copy"
                )


def _require_float64(spec: ModelSpec) -> None:
    """The oracle's computation runs: of another build, on the first microbatch."""
    model = build(spec)
    x, target = (t.double() if t.is_floating_point() else t for t in own_batch(spec, 0))
    require_float64(model.stages, x, partial(_score, model, target))
    _require_same_draws(spec)


def _require_same_draws(spec: ModelSpec) -> None:
    """Each stage leaves torch's generator at one state, in its own type and in float64."""
    dtypes = DTYPES[spec.dtype], torch.float64
    x = own_batch(spec, 0)[0]
    for stage, module in enumerate(build(spec).stages):
        states = []
        for dtype in dtypes:
            module.to(dtype)
            seed_generators(0)
            y = module(x.to(dtype) if x.is_floating_point() else x).detach()
            states.append(torch.get_rng_state())
        if not torch.equal(*states):
            raise ValueError(
                f"model stage {stage} draws other random numbers in float64 than in {spec.dtype}, "
                "so that the ordinary backward would be of another model: draw by dropout or "
                "torch.bernoulli, whose numbers do not depend on the type, or replay in float64"
            )
        x = y


def _shared(module: nn.Module, again: nn.Module) -> list[torch.Tensor]:
    """The tensors that two builds of a stage have in common: those of its classes, of its file."""
    of_second = {id(tensor) for tensor in constants_of([again])}
    return [tensor for tensor in constants_of([module]) if id(tensor) in of_second]


def _output(stage: int, module: nn.Module, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The output of a stage, after two forwards that must agree and leave its buffers alone."""
    given = f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"
    before = values_before(module)
    outputs: list[torch.Tensor] = []
    for _ in range(2):
        seed_generators(0)
        try:
            y = module(x)
        except (Exception, SystemExit) as error:  # a user's module may raise anything
            whose = f"what stage {stage - 1} gives, " if stage else "the input, "
            raise ValueError(
                f"model stage {stage} cannot take {whose}{given}: {told(error)}"
            ) from error
        if not isinstance(y, torch.Tensor) or y.dtype != dtype:
            found = y.dtype if isinstance(y, torch.Tensor) else type(y).__name__
            raise ValueError(
                f"model stage {stage} must give one tensor of {dtype}, got {found}: join several "
                "into one of that type (torch.cat), and take them apart in the next stage"
            )
        outputs.append(y.detach())
    require_unchanged(stage, module, before)
    require_numbers(f"stage {stage}: its output", outputs[0])
    if not same_bits(*outputs):
        raise ValueError(
            f"model stage {stage} gives another output the second time, of the same random "
            "numbers; it must draw from torch's own generator alone, and keep nothing of a forward"
        )
    return outputs[0]


def _flops_of(
    module: nn.Module, x: torch.Tensor, score: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[int, int]:
    """The floating-point operations of a module as it is, forth and back."""
    given = x.detach().clone().requires_grad_(x.requires_grad)
    with FlopCount() as count:
        root = score(module(given))
        forward = count.flops
        if root.requires_grad:
            torch.autograd.backward([root], [torch.ones_like(root)])
    module.zero_grad(set_to_none=True)
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
