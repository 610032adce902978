"""Users' modules that keep more than a graph needs, or as much as their data say."""

from __future__ import annotations

import gc
from functools import partial
from types import SimpleNamespace

import torch
from torch import nn

from proofs_tests.reference_exec.own_graphs import Pair
from proofs_tests.reference_exec.own_models import of

SCRATCH_BYTES = 4 << 20
EXTRA = 4 << 10
_EVERYWHERE: list[torch.Tensor] = []
_OLD = torch.empty(0, dtype=torch.uint8)


class Scratch(Pair):
    """4 MB per forward that it never frees."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.scratch.append(torch.empty(SCRATCH_BYTES, dtype=torch.uint8))
        return super().forward(x)


class Hoarding(Pair):
    """Every saved activation, through ``t.detach()``."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.sigmoid(self.a(x))
        _EVERYWHERE.extend((x.detach(), inner.detach()))
        y: torch.Tensor = self.b(inner)
        return y


class Growing(Pair):
    """A buffer that grows by each input, and that no forward reads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = getattr(self, "seen", x.new_empty(0, 4))
        self.seen = torch.cat([seen, x.detach()])
        return super().forward(x)


class Resizing(Pair):
    """A tensor that it always had, somewhere, has 4 kB more after each forward."""

    at_class = torch.empty(0, dtype=torch.uint8)

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.scratch = torch.empty(0, dtype=torch.uint8)
        self.box = {"a": [SimpleNamespace(scratch=torch.empty(0, dtype=torch.uint8))]}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        old = {
            "attribute": self.scratch,
            "box": self.box["a"][0].scratch,
            "class": self.at_class,
            "file": _OLD,
        }[self.place]
        old.resize_(old.numel() + EXTRA)
        return super().forward(x)


class Stretching(Pair):
    """The storage of a parameter has 4 kB more after each forward."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        storage = self.a.weight.untyped_storage()
        storage.resize_(storage.nbytes() + EXTRA)
        return super().forward(x)


class Swapping(Pair):
    """A tensor that it always had shows all inputs so far, in another storage each time."""

    def __init__(self, by: str) -> None:
        super().__init__()
        self.by = by
        self.keep = torch.empty(0, 4, dtype=torch.float64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        longer = torch.cat([self.keep, x.detach()])
        if self.by == "data":
            self.keep.data = longer
        else:
            self.keep.set_(longer)  # type: ignore[call-overload]  # torch's stub
        return super().forward(x)


class Freezing(Pair):
    """A list of inputs, hidden from Python's collector."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept.append(x.detach().clone())
        gc.freeze()
        return super().forward(x)


class Hooked(Pair):
    """A hook that keeps each gradient."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        y.register_hook(lambda gradient: _EVERYWHERE.append(gradient.clone()))  # type: ignore[no-untyped-call]  # torch's stub
        return y


class _Twice(torch.autograd.Function):
    """2 x, with x on its context."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        ctx.x = x.clone()  # type: ignore[attr-defined]  # torch's idiom
        return 2 * x

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, *gradients: torch.Tensor
    ) -> torch.Tensor:
        x: torch.Tensor = ctx.x  # type: ignore[attr-defined]  # set in forward
        return 2 * gradients[0] + 0 * x


class OnContext(Pair):
    """A tensor on the context of a Function of its own: as much held as what is saved."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = _Twice.apply(super().forward(x))  # type: ignore[no-untyped-call]  # torch's stub
        return y


class Doubled(Pair):
    """The same without anything on a context."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


class Constant(Pair):
    """A table that it makes in its first forward, which every graph saves."""

    table: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            self.table = torch.ones_like(x).detach() / 2
        y: torch.Tensor = super().forward(x) * self.table
        return y


class Masked(Pair):
    """As many rows as its data say go through another layer."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        chosen = x.detach()[:, 0] > 0
        rows = torch.tanh(self.c(y[chosen]))
        z: torch.Tensor = y.index_put((chosen.nonzero()[:, 0],), rows) + 0 * self.c(y)
        return z


scratch, hoarding, growing = of(Scratch, Pair), of(Pair, Hoarding), of(Growing, Pair)
resizing = of(partial(Resizing, "attribute"), Pair)
resizing_in_a_box = of(partial(Resizing, "box"), Pair)
resizing_at_the_class = of(partial(Resizing, "class"), Pair)
resizing_in_the_file = of(partial(Resizing, "file"), Pair)
stretching = of(Stretching, Pair)
swapping_by_set = of(partial(Swapping, "set"), Pair)
swapping_by_data = of(partial(Swapping, "data"), Pair)
freezing, hooked = of(Pair, Freezing), of(Hooked, Pair)
on_context, doubled = of(OnContext, Pair), of(Doubled, Pair)
constant, masked = of(Constant, Constant), of(Masked, Pair)
masked_in_four = of(Masked, Pair, Pair, Pair)
