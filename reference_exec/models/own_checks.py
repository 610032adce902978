"""What a replay asks of a stage of a user's model, and says where it is not so.

Each function raises ``ValueError`` with the stage, the parameter where it is one's, and the repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from bubbleproof.reference_exec.bits import same_bits
from bubbleproof.reference_exec.broken import ModelFailed, of_model
from bubbleproof.reference_exec.models.linear import is_watched, watched
from bubbleproof.reference_exec.models.parcels import called, tensors_of

TYPES = (torch.float32, torch.float64)  # a model in one may run in the other, which is told
SIXTEEN_BITS = (("bfloat16",), ("float16",))  # what a model comes in that runs so
LINEARITY = 1e-3  # relative; a hook that is not linear is off by a good part of the gradient


def require_plain(stage: int, module: nn.Module, dtype: str) -> None:
    """Parameters and buffers are dense tensors with values, on the cpu, of real numbers.

    Those of 16 bits are of the type ``dtype`` that runs.
    """
    for what, name, tensor in _tensors(module):
        whose = f"model stage {stage}: its {what} {name}"
        if is_lazy(tensor):
            raise ValueError(
                f"{whose} has no shape yet (a lazy module); run the stage once in the factory"
            )
        if tensor.layout is not torch.strided:
            raise ValueError(
                f"{whose} is sparse ({tensor.layout}); a replay counts and compares dense ones: "
                "make it dense (to_dense())"
            )
        if tensor.device.type != "cpu":
            raise ValueError(
                f"{whose} is on {tensor.device}; the factory must build on the cpu, from where a "
                "replay moves it (--device)"
            )
        own = str(tensor.dtype).removeprefix("torch.")
        if tensor.is_floating_point() and tensor.dtype not in TYPES and own != dtype:
            repair = "a model of one type of 16 bits runs in it (leave --dtype out)"
            raise ValueError(
                f"{whose} is of {tensor.dtype}, and in {dtype} it would be another model that is "
                f"found right: {repair}; or build all in torch.float32 (.float() in the factory)"
            )
        if tensor.is_complex():
            raise ValueError(
                f"{whose} is of {tensor.dtype}; a replay is in one type of real numbers: keep its "
                "real and imaginary part (torch.view_as_real)"
            )


def _tensors(module: nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    yield from (("parameter", name, each) for name, each in module.named_parameters())
    yield from (("buffer", name, each) for name, each in module.named_buffers())


def require_numbers(what: str, value: object) -> None:
    """No tensor of a value has a NaN, which equals nothing."""
    for tensor in tensors_of(value):
        if tensor.is_floating_point() and (count := int(tensor.isnan().sum())):
            raise ValueError(
                f"model {what} is NaN in {count} of {tensor.numel()} numbers on microbatch 0; a "
                "replay has nothing to compare with that"
            )


def is_compiled(module: nn.Module) -> bool:
    """Whether torch.compile made it, or a part of it."""
    return any(
        type(part).__name__ == "OptimizedModule" or part._compiled_call_impl is not None
        for part in module.modules()
    )


def require_dense_gradients(stage: int, module: nn.Module) -> None:
    """The gradients that are there are dense."""
    for name, parameter in module.named_parameters():
        gradient = parameter.grad
        if gradient is not None and gradient.layout is not torch.strided:
            raise ValueError(
                f"model stage {stage}: the gradient of its parameter {name} is sparse "
                f"({gradient.layout}); a replay compares dense ones: sparse=False, which is what "
                "an embedding has by default"
            )


def require_gradients(stage: int, module: nn.Module) -> None:
    """Every parameter that is not frozen has got a gradient, of numbers."""
    for name, parameter in module.named_parameters():
        whose = f"stage {stage}: the gradient of its parameter {name}"
        if not parameter.requires_grad:
            continue
        if parameter.grad is not None:
            require_numbers(whose, parameter.grad)
        elif is_watched(parameter):
            raise ValueError(
                f"model stage {stage}: its parameter {name} has no gradient after a backward that "
                "its hooks have seen; a replay adds up the gradients of microbatches and steps by "
                "itself (--steps): leave out the hook that takes the gradient"
            )
        else:
            raise ValueError(
                f"model stage {stage}: its parameter {name} gets no gradient; use it in the "
                "forward, or freeze it in the factory (requires_grad_(False))"
            )


def require_linear_hooks(
    stage: int, module: nn.Module, backward: Callable[[float], object]
) -> None:
    """What hooks make of gradients adds up: thrice of one and two, on top of what was there.

    ``backward(scale)`` runs a whole forward and backward of ``scale`` times the same loss.
    """
    if not (names := watched(module)):
        return
    module.zero_grad(set_to_none=True)
    backward(1.0)
    require_gradients(stage, module)
    once = {name: _gradient(stage, module, name).clone() for name in names}
    backward(2.0)
    for name, gradient in once.items():
        found, expected = _gradient(stage, module, name), 3 * gradient
        room = LINEARITY * float(expected.abs().max())
        if not torch.allclose(found, expected, rtol=LINEARITY, atol=room):
            raise ValueError(
                f"model stage {stage}: a hook of its parameter {name} gives other than three times "
                "its gradient for a loss and twice that loss; a pipeline adds up the gradients of "
                "microbatches, so a hook must be linear and leave what was added before: take it "
                "away for the replay"
            )


def _gradient(stage: int, module: nn.Module, name: str) -> torch.Tensor:
    if (gradient := module.get_parameter(name).grad) is None:
        raise ValueError(f"model stage {stage}: its parameter {name} lost its gradient")
    return gradient


def require_float64(
    stages: Iterable[nn.Module], given: object, loss: Callable[..., torch.Tensor]
) -> None:
    """A forward and a backward of the whole model run in float64, the type of its input."""
    try:
        for stage, module in enumerate(stages):
            module.double()
            with of_model(stage, "F"):
                given = called(module, given)
        with of_model(None, "B"):
            torch.autograd.backward(loss(given))
    except ModelFailed as error:
        raise ValueError(
            f"{error}; that is in float64, in which every replay's gradients are computed once "
            "more without a pipeline (the oracle): give the model operations that have it"
        ) from error


def values_before(module: nn.Module) -> dict[str, torch.Tensor]:
    """Copies of all parameters and buffers."""
    return {name: tensor.detach().clone() for _, name, tensor in _tensors(module)}


def require_unchanged(stage: int, module: nn.Module, before: dict[str, torch.Tensor]) -> None:
    """A forward has left all parameters and buffers as they were ``before``."""
    for what, name, tensor in _tensors(module):
        if name in before and not same_bits(tensor, before[name]):
            raise ValueError(
                f"model stage {stage} changes its {what} {name} in a forward; ranks see "
                "microbatches in the schedule's order, so it must not: freeze it (eval(), "
                "track_running_stats=False)"
            )
