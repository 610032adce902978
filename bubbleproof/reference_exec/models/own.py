"""A user's own model: a list of modules, its data and its loss, named so that any process finds it.

A *factory* is a function without arguments that returns an ``OwnModel``. It is named by a text,
``package.module:function`` or ``path/to/file.py:function``, because every rank builds the model in
a process of its own. It must return the same weights and data each time: draw them from seeds of
its own. What does not hold is refused by ``examined``.

As a rank runs it, linears of a module can leave their weight gradients for W. Replaced is an
``nn.Linear`` (no subclass) that the stage calls once per forward and whose weight no other module
has. Its bias, and every other parameter, gets its gradient in B or I: for a module without such
linears I is the whole backward and W does nothing.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

from bubbleproof.reference_exec.broken import BrokenProgram, first_line
from bubbleproof.reference_exec.models.layers import DTYPES, Prefix
from bubbleproof.reference_exec.models.linear import WeightGradStore, deferrable_product
from bubbleproof.reference_exec.models.model_spec import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnModel:
    """Stages, each of one tensor to one tensor, with their data and loss.

    ``batch(j)`` gives the input and the target of microbatch j, all of one shape; where it has a
    parameter named ``step``, ``batch(j, step=i)`` gives those of optimizer step i, from 0 on, and
    otherwise all steps of a training have one batch (``has_steps``);
    ``loss(output, target)`` a scalar, of which a replay takes the mean over its microbatches.
    Tensors of floating point are cast to the type of the ``ModelSpec``.
    """

    stages: Sequence[nn.Module]
    batch: Callable[..., tuple[torch.Tensor, torch.Tensor]]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

    @property
    def has_steps(self) -> bool:
        """Whether each optimizer step has a batch of its own."""
        return "step" in inspect.signature(self.batch).parameters


def build(spec: ModelSpec) -> OwnModel:
    """A new model from the factory, its stages in the type of ``spec`` and in training mode.

    Raises ``ValueError`` naming the factory where it cannot be found or returns something else.
    """
    factory, _ = _factory(spec.factory)
    try:
        model = factory()
    except (Exception, SystemExit) as error:  # whatever the user's function raises
        raise ValueError(f"model {spec.factory} failed: {told(error)}") from error
    if not isinstance(model, OwnModel):
        raise ValueError(f"model {spec.factory} must return an OwnModel, got {type(model)}")
    if not model.stages:
        raise ValueError(f"model {spec.factory} has no stages")
    _require_parts(spec, model)
    for stage in model.stages:
        stage.to(DTYPES[spec.dtype])
    return model


def _require_parts(spec: ModelSpec, model: OwnModel) -> None:
    for stage, module in enumerate(model.stages):
        if not isinstance(module, nn.Module):
            found = type(module).__name__
            raise ValueError(f"model {spec.factory}: stage {stage} must be a module, got {found}")
    for name, value in (("batch", model.batch), ("loss", model.loss)):
        if not callable(value):
            found = type(value).__name__
            raise ValueError(f"model {spec.factory}: its {name} must be a function, got {found}")


@lru_cache(maxsize=8)
def description(spec: ModelSpec) -> OwnModel:
    """A model whose data and loss are used; its stages are nobody's."""
    return build(spec)


def own_batch(spec: ModelSpec, microbatch: int, step: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Copies of the input and the target of one microbatch of a step, in the type of ``spec``.

    Raises ``ValueError`` where ``batch`` fails or gives anything but two tensors.
    """
    model = description(spec)
    try:
        given = model.batch(microbatch, step=step) if model.has_steps else model.batch(microbatch)
    except (Exception, SystemExit) as error:  # whatever the user's function raises
        why = told(error)
        raise ValueError(f"model {spec.factory}: batch({microbatch}) failed: {why}") from error
    kinds = [type(t).__name__ for t in given] if isinstance(given, tuple | list) else []
    if len(kinds) != 2 or not all(isinstance(t, torch.Tensor) for t in given):
        found = ", ".join(kinds) or type(given).__name__
        raise ValueError(f"model {spec.factory}: batch must give two tensors, got {found}")
    dtype = DTYPES[spec.dtype]
    x, target = (t.detach().to(dtype if t.is_floating_point() else t.dtype) for t in given)
    return x.clone(), target.clone()


def source_digest(path: str) -> str:
    """The digest of the file that the factory ``path`` came from, as it was when it was loaded."""
    _, digest = _factory(path)
    return digest


@lru_cache(maxsize=8)
def _factory(path: str) -> tuple[Callable[[], object], str]:
    """The factory, and the digest of its file."""
    where, _, name = path.rpartition(":")
    if not where or not name:
        raise ValueError(f"model factory must be MODULE:FUNCTION or FILE.py:FUNCTION, got {path!r}")
    try:
        module, source = _from_file(Path(where)) if where.endswith(".py") else _from_package(where)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ValueError(f"model factory {path}: {told(error)}") from error
    found = getattr(module, name, None)
    if not callable(found):
        raise ValueError(f"model factory {path}: {where} has no function {name}")
    factory: Callable[[], object] = found
    return factory, hashlib.sha256(source).hexdigest()


def _from_file(path: Path) -> tuple[ModuleType, bytes]:
    """The module of a file, made of the very bytes that are given back with it.

    A file that is edited meanwhile, or whose compiled form is older than its clock tells, cannot
    be taken for another.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ImportError(f"{path} is no Python file")
    module, source = importlib.util.module_from_spec(spec), path.read_bytes()
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    return module, source


def _from_package(name: str) -> tuple[ModuleType, bytes]:
    """A module that can be imported, and its file's bytes; none where it has no file."""
    module = importlib.import_module(name)
    return module, b"" if module.__file__ is None else Path(module.__file__).read_bytes()


def told(error: BaseException) -> str:
    """The first line of an error's message, behind its kind where that tells more.

    >>> told(KeyError("norm")), told(AssertionError()), told(ValueError("no words"))
    ("KeyError 'norm'", 'AssertionError', 'no words')
    """
    kind = type(error).__name__
    if isinstance(error, KeyError | SystemExit):
        return f"{kind} {first_line(error, default='')}".strip()
    return first_line(error, default=kind)


class _Current:
    """The weight-gradient store of the forward or backward that runs, or ran last.

    In a backward too, because a checkpoint of torch runs parts of the forward again there.
    """

    store: WeightGradStore | None = None

    def begin(self, store: WeightGradStore | None) -> None:
        self.store = store


class ReplacedLinear(nn.Module):
    """x W^T + b in the place of an ``nn.Linear``, with its very parameters."""

    def __init__(self, linear: nn.Linear, current: _Current) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self._current = current

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = deferrable_product(x, self.weight, self._current.store)
        return product if self.bias is None else product + self.bias


class OwnLayer(nn.Module):
    """A user's module, the linears named in ``replaced`` replaced in it."""

    def __init__(self, module: nn.Module, replaced: Collection[str]) -> None:
        super().__init__()
        self._current = _Current()
        holder = nn.ModuleDict({"module": module})
        for name in replaced:
            path = f"module.{name}".rstrip(".")
            parent, _, last = path.rpartition(".")
            linear, owner = holder.get_submodule(path), holder.get_submodule(parent)
            assert isinstance(linear, nn.Linear)
            owner.add_module(last, ReplacedLinear(linear, self._current))
        self.module = holder["module"]

    def forward(
        self, x: torch.Tensor, store: WeightGradStore | None, prefix: Prefix | None = None
    ) -> torch.Tensor:
        if prefix is not None:
            raise BrokenProgram("a user's own stage takes whole samples, got a slice")
        current = self._current
        current.begin(store)
        result: torch.Tensor = self.module(x)
        if result.requires_grad:
            result.register_hook(lambda _: current.begin(store))  # type: ignore[no-untyped-call]  # torch's stub
        return result

    def gemm_weights(self) -> list[torch.Tensor]:
        """The weights of the replaced linears, in the module's order."""
        return [m.weight for m in self.modules() if isinstance(m, ReplacedLinear)]


def replaceable(module: nn.Module, x: torch.Tensor) -> tuple[str, ...]:
    """The names of the linears in ``module`` (itself is ``""``) that can be replaced, see above.

    Runs its forward once, on ``x``.
    """
    linears = {n: m for n, m in module.named_modules() if type(m) is nn.Linear}
    calls: Counter[str] = Counter()
    handles = [
        linear.register_forward_pre_hook(lambda *_, name=name: calls.update([name]))
        for name, linear in linears.items()
    ]
    module(x)
    for handle in handles:
        handle.remove()
    owners = Counter(
        id(parameter) for part in module.modules() for parameter in part.parameters(recurse=False)
    )
    return tuple(n for n, m in linears.items() if calls[n] == 1 and owners[id(m.weight)] == 1)
