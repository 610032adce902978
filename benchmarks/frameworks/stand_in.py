"""A stand-in for triton, which the wheels import and on a CPU never call.

Torch asks for triton itself, and takes the stand-in for it: so it is put in place after torch has
asked. Scripts that run beside a wheel load this file by its path (``runpy``).
"""

from __future__ import annotations

import sys
import typing
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any


class _Anything:
    """An attribute of a package that is imported and never called: decorators change nothing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_decorator = len(args) == 1 and not kwargs and isinstance(args[0], FunctionType | type)
        return args[0] if is_decorator else self

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __getitem__(self, key: object) -> _Anything:
        return self

    def __or__(self, other: object) -> _Anything:
        return self

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return (object,)

    __ror__ = __or__


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _TritonFinder(MetaPathFinder, Loader):
    """Last of the finders, so only where triton is not installed."""

    def find_spec(self, fullname: str, *_: object) -> Any:
        is_asked = fullname.split(".")[0] == "triton"
        return ModuleSpec(fullname, self, is_package=True) if is_asked else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _StandIn(spec.name)
        module.__path__, module.__version__ = [], "0.0.0"  # type: ignore[attr-defined]  # a module may have both
        return module

    def exec_module(self, _: ModuleType) -> None:
        return None


def stand_in() -> None:
    """Put it in place, and what wheels for Python 3.12 import of ``typing``."""
    import_module("torch")
    import_module("torch.utils._triton").has_triton_package()  # before there is a stand-in
    import_module("torch._inductor.runtime.triton_heuristics")
    import_module("torch.utils.flop_counter")
    sys.meta_path.append(_TritonFinder())
    if not hasattr(typing, "override"):
        vars(typing)["override"] = import_module("typing_extensions").override
