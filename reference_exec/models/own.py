"""A user's own model: a list of modules, its data and its loss, named so that any process finds it.

A *factory* is a function without arguments that returns an ``OwnModel``. It is named by a text,
``package.module:function`` or ``path/to/file.py:function``, because every rank builds the model in
a process of its own; ``hf:CONFIG.json`` names a configuration of transformers (``hf_config``). It
must return the same weights and data each time: draw them from seeds of its own. What does not
hold is refused by ``examined``.

As a rank runs it, linears of a module can leave their weight gradients for W (``linear`` says
which). Their biases, and every other parameter, get their gradients in B or I: for a module without
such linears I is the whole backward and W does nothing.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

from bubbleproof.reference_exec.broken import BrokenProgram, first_line, of_model
from bubbleproof.reference_exec.models.hf_config import file_of, is_hf
from bubbleproof.reference_exec.models.hf_model import hf_model, hf_of_model, is_model
from bubbleproof.reference_exec.models.layers import DTYPES, Prefix
from bubbleproof.reference_exec.models.linear import (
    CurrentStore,
    WeightGradStore,
    defer,
    is_linear,
    restore,
)
from bubbleproof.reference_exec.models.model_spec import ModelSpec, held_factory
from bubbleproof.reference_exec.models.own_checks import SIXTEEN_BITS, require_plain
from bubbleproof.reference_exec.models.own_model import OwnModel as OwnModel
from bubbleproof.reference_exec.models.parcels import Parcels, called, tensors_of, with_type


def build(spec: ModelSpec) -> OwnModel:
    """A new model from the factory, its stages in the type of ``spec`` and in training mode.

    Raises ``ValueError`` naming the factory where it cannot be found or returns something else.
    """
    model = _made(spec)
    if not isinstance(model, OwnModel):
        raise ValueError(f"model {spec.factory} must return an OwnModel, got {type(model)}")
    _require_parts(spec, model)
    if not model.stages:
        raise ValueError(f"model {spec.factory} has no stages")
    stages = untied(model.stages)
    for stage in stages:
        stage.to(DTYPES[spec.dtype])
    return replace(model, stages=stages)


def _made(spec: ModelSpec) -> object:
    """What the factory returns; of a configuration of transformers, that model."""
    if is_hf(spec.factory):
        return hf_model(spec)
    factory, _ = _factory(spec.factory)
    try:
        found = factory()
    except (Exception, SystemExit) as error:  # whatever the user's function raises
        raise ValueError(f"model {spec.factory} failed: {told(error)}") from error
    if isinstance(found, OwnModel) and is_model(found.stages):
        return hf_of_model(spec, found.stages, found)
    return hf_of_model(spec, found) if is_model(found) else found


def untied(stages: Iterable[nn.Module]) -> list[nn.Module]:
    """The stages, each with parameters of its own: what an earlier one has too is a copy."""
    found, seen = [], set[int]()
    for module in stages:
        own = {id(parameter) for parameter in module.parameters()}
        found.append(copy.deepcopy(module) if own & seen else module)
        seen |= own
    return found


@lru_cache(maxsize=8)
def own_ties(spec: ModelSpec) -> tuple[tuple[tuple[int, str], ...], ...]:
    """The parameters that several stages have and that are trained (``footprint.ties_of``)."""
    model, places = _made(spec), dict[int, list[tuple[int, str]]]()
    for stage, module in enumerate(model.stages if isinstance(model, OwnModel) else ()):
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                places.setdefault(id(parameter), []).append((stage, f"layers.0.module.{name}"))
    return tuple(tuple(ends) for ends in places.values() if len(ends) > 1)


@lru_cache(maxsize=8)
def given_types(spec: ModelSpec) -> tuple[str, ...]:
    """The types of floating point that the factory's parameters and buffers have, by name."""
    model = _made(spec)
    if not isinstance(model, OwnModel):  # as ``build`` tells
        return ()
    every = [t for stage in model.stages for t in (*stage.parameters(), *stage.buffers())]
    found = {str(t.dtype).removeprefix("torch.") for t in every if t.is_floating_point()}
    return tuple(sorted(found))


def in_its_type(spec: ModelSpec) -> ModelSpec:
    """The specification in the type of 16 bits in which the model came, if it keeps that."""
    plain = replace(spec, keeps_type=False)
    found = given_types(plain) if spec.keeps_type and not is_hf(spec.factory) else ()
    return replace(plain, dtype=found[0]) if found in SIXTEEN_BITS else plain


def _require_parts(spec: ModelSpec, model: OwnModel) -> None:
    if not isinstance(model.stages, Sequence | nn.ModuleList | nn.Sequential):
        found = type(model.stages).__name__
        raise ValueError(f"model {spec.factory}: its stages must be a list of modules, got {found}")
    for stage, module in enumerate(model.stages):
        if not isinstance(module, nn.Module):
            found = type(module).__name__
            raise ValueError(f"model {spec.factory}: stage {stage} must be a module, got {found}")
        require_plain(stage, module, spec.dtype)
    for name, value in (("batch", model.batch), ("loss", model.loss)):
        if not callable(value):
            found = type(value).__name__
            raise ValueError(f"model {spec.factory}: its {name} must be a function, got {found}")


@lru_cache(maxsize=8)
def description(spec: ModelSpec) -> OwnModel:
    """A model whose data and loss are used; its stages are nobody's."""
    return build(spec)


def parcels(spec: ModelSpec) -> Parcels:
    """What is known of the messages between the stages of a model, of microbatches of any size."""
    return _parcels(replace(spec, sample=0))


@lru_cache(maxsize=8)
def _parcels(spec: ModelSpec) -> Parcels:
    return Parcels(DTYPES[spec.dtype])


def own_given(spec: ModelSpec, message: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What the first stage takes, of a type, by its message (``own_batch``): mostly a tensor."""
    return with_type(parcels(spec).opened(0, message), dtype)  # type: ignore[return-value]  # see above


def own_batch(spec: ModelSpec, microbatch: int, step: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """The input, as a message, and the target of one microbatch of a step; both are copies.

    They are in the type of ``spec``. Raises ``ValueError`` where ``batch`` fails or gives anything
    but an input, which may be several things, and a tensor.
    """
    model = description(spec)
    try:
        given = model.batch(microbatch, step=step) if model.has_steps else model.batch(microbatch)
    except (Exception, SystemExit) as error:  # whatever the user's function raises
        why = told(error)
        raise ValueError(f"model {spec.factory}: batch({microbatch}) failed: {why}") from error
    kinds = [type(t).__name__ for t in given] if isinstance(given, tuple | list) else []
    if len(kinds) != 2 or not tensors_of(given[0]) or not isinstance(given[1], torch.Tensor):
        found = ", ".join(kinds) or type(given).__name__
        raise ValueError(
            f"model {spec.factory}: batch must give an input (tensors) and a target (one tensor), "
            f"got {found}"
        )
    dtype = DTYPES[spec.dtype]
    try:
        x = parcels(spec).sent(0, with_type(given[0], dtype), torch.uint8)
    except TypeError as error:
        raise ValueError(f"model {spec.factory}: batch({microbatch}) gives {error}") from None
    target = given[1].detach()
    target = target.to(dtype) if target.is_floating_point() else target
    return x.detach().clone(), target.clone()


def source_digest(path: str) -> str:
    """The digest of the file that the factory ``path`` came from, as it was when it was loaded.

    Of a configuration of transformers, of its file.
    """
    if is_hf(path):
        return hashlib.sha256(file_of(path).read_bytes()).hexdigest()
    _, digest = _factory(path)
    return digest


@lru_cache(maxsize=8)
def _factory(path: str) -> tuple[Callable[[], object], str]:
    """The factory, and the digest of its file; of one that has none, of its code."""
    if (held := held_factory(path)) is not None:
        code = getattr(held, "__code__", None)
        return held, hashlib.sha256(getattr(code, "co_code", b"")).hexdigest()
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


class OwnLayer(nn.Module):
    """The module of a user's stage, whose linears of the names ``deferred`` alone are deferred.

    It takes a message and gives one to the stage that ``comes_next``; the last stage, which has
    none, gives what its module gives. What that raises in a forward is told as that stage's
    (``ModelFailed``).
    """

    def __init__(
        self,
        stage: int,
        module: nn.Module,
        deferred: Collection[str],
        messages: Parcels,
        *,
        comes_next: bool,
    ) -> None:
        super().__init__()
        self._stage, self.module = stage, module
        self._messages, self._comes_next = messages, comes_next
        self._current = CurrentStore()
        self._weights = [f"module.{name}.weight".replace("..", ".") for name in deferred]
        for name, linear in module.named_modules():
            if isinstance(linear, nn.Linear) or is_linear(linear):
                restore(linear)
                if name in deferred:
                    defer(linear, self._current)

    def forward(
        self, x: torch.Tensor, store: WeightGradStore | None, prefix: Prefix | None = None
    ) -> torch.Tensor:
        if prefix is not None:
            raise BrokenProgram("a user's own stage takes whole samples, got a slice")
        with of_model(self._stage, "F"):
            result = self.sent(self.plain(self._messages.opened(self._stage, x), store))
        current = self._current
        for each in tensors_of(result):
            if each.requires_grad:
                each.register_hook(lambda _: current.begin(store))  # type: ignore[no-untyped-call]  # torch's stub
        return result

    def sent(self, value: object) -> torch.Tensor:
        """The message of what the module gives; of the last stage what its loss takes."""
        if self._comes_next:
            return self._messages.sent(self._stage + 1, value)
        return value  # type: ignore[return-value]  # the loss takes what the last stage gives

    def again(self, module: nn.Module, deferred: Collection[str]) -> OwnLayer:
        """The same stage of another build."""
        return OwnLayer(self._stage, module, deferred, self._messages, comes_next=self._comes_next)

    def plain(self, given: object, store: WeightGradStore | None = None) -> torch.Tensor:
        """What the module gives for what it takes, mostly a tensor: there is no message between."""
        self._current.begin(store)
        with of_model(self._stage, "F"):
            return called(self.module, given)  # type: ignore[return-value]  # see above

    def gemm_weights(self) -> dict[str, nn.Parameter]:
        """The weights of the deferred linears by their names here, in the module's order."""
        return {name: self.get_parameter(name) for name in self._weights}
