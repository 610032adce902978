"""Users' models whose stages share parameters, or give more than one tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import nn

from bubbleproof.reference_exec.models.own import OwnModel
from proofs_tests.reference_exec.own_models import loss, model, seeded

WORDS, HIDDEN = 11, 8


class Masked(nn.Module):
    """Gives what a decoder's layer may need of the ones before: a mask, a count, a scale, None."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[object, ...]:
        kept = x[:, 0] > 0
        return self.up(x), {"kept": kept, "scale": 0.5}, int(kept.sum()), None


class Passed(nn.Module):
    """Takes and gives all of it; the rows that are masked stay as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(4, 4)

    def forward(
        self, x: torch.Tensor, given: Mapping[str, object], count: int, nothing: None
    ) -> tuple[object, ...]:
        assert nothing is None
        kept = given["kept"]
        assert isinstance(kept, torch.Tensor)
        assert isinstance(count, int)
        scale = given["scale"]
        assert isinstance(scale, float)
        moved = torch.tanh(self.up(x)) * scale * count
        return torch.where(kept[:, None], moved, x), given, count, nothing


class Ended(Passed):
    """Gives the tensor alone."""

    def forward(self, *given: object) -> torch.Tensor:  # type: ignore[override]  # the last
        found, *_ = super().forward(*given)  # type: ignore[arg-type]  # as above
        assert isinstance(found, torch.Tensor)
        return found


class Routed(nn.Module):
    """A layer of two experts; its auxiliary loss, in float32, is added to those before."""

    def __init__(self, *, is_last: bool = False) -> None:
        super().__init__()
        self.router = nn.Linear(4, 2, bias=False)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.is_last = is_last

    def forward(
        self, x: torch.Tensor, auxiliary: torch.Tensor | float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        chances = torch.softmax(self.router(x), dim=-1)
        parts = [chances[:, k : k + 1] * each(x) for k, each in enumerate(self.experts)]
        own = chances.mean(0).square().sum().float()
        return x + sum(parts), auxiliary + own


def loss_with_auxiliary(
    given: tuple[torch.Tensor, torch.Tensor], target: torch.Tensor
) -> torch.Tensor:
    """The squared error and a hundredth of the auxiliary loss."""
    y, auxiliary = given
    return loss(y, target) + 0.01 * auxiliary.to(y.dtype)


@seeded
def masks() -> OwnModel:
    return model(Masked(), Passed(), Ended())


@seeded
def routers() -> OwnModel:
    return replace(model(Routed(), Routed(), Routed()), loss=loss_with_auxiliary)


class Scored(nn.Module):
    """Scores words by the embedding that it shares."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.norm, self.embedding = nn.LayerNorm(HIDDEN), embedding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.norm(x) @ self.embedding.weight.T
        return scores


class Again(nn.Module):
    """Looks a word up a second time, by the same embedding."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.up, self.embedding = nn.Linear(HIDDEN, HIDDEN), embedding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.up(x)) + self.embedding.weight[3]


def words(microbatch: int, step: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Words, and the word after each."""
    generator = torch.Generator().manual_seed(100 * step + microbatch)
    drawn = torch.randint(WORDS, (2, 6), generator=generator)
    return drawn[:, :-1], drawn[:, 1:]


def scored(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(y.flatten(0, 1), target.flatten())


@seeded
def tied() -> OwnModel:
    """Embedding and head are one module."""
    embedding = nn.Embedding(WORDS, HIDDEN)
    first = nn.Sequential(embedding, nn.Linear(HIDDEN, HIDDEN))
    return OwnModel(stages=[first, Scored(embedding)], batch=words, loss=scored)


@seeded
def thrice() -> OwnModel:
    """The stage between them uses it too."""
    embedding = nn.Embedding(WORDS, HIDDEN)
    return OwnModel(
        stages=[embedding, Again(embedding), nn.Linear(HIDDEN, HIDDEN), Scored(embedding)],
        batch=words,
        loss=scored,
    )


class Pictured(nn.Module):
    """Takes words by name, with where each picture stands in them and its patches."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.tower = nn.Embedding(WORDS, HIDDEN), nn.Linear(3, HIDDEN)

    def forward(self, *, words: torch.Tensor, places: list[int], patches: torch.Tensor) -> object:
        x = self.embedding(words)
        seen = torch.zeros_like(x)
        seen[:, places] = self.tower(patches)
        return (x + seen,)


def pictures(microbatch: int) -> tuple[dict[str, object], torch.Tensor]:
    given, target = words(microbatch)
    patches = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(microbatch))
    return {"words": given, "places": [0, 1 + microbatch % 3], "patches": patches}, target


@seeded
def towers() -> OwnModel:
    return OwnModel(stages=[Pictured(), nn.Linear(HIDDEN, WORDS)], batch=pictures, loss=scored)


class Sets(nn.Linear):
    """Gives what cannot be sent."""

    def forward(self, x: torch.Tensor) -> object:  # type: ignore[override]  # wrong on purpose
        return super().forward(x), {1, 2}


class Other(nn.Linear):
    """Gives None for one microbatch where it gives text for another."""

    def forward(self, x: torch.Tensor) -> object:  # type: ignore[override]  # wrong on purpose
        return super().forward(x), None if x[0, 0] > 0 else "text"


class First(nn.Linear):
    """Takes the first of two things."""

    def forward(self, x: torch.Tensor, _: object) -> torch.Tensor:  # type: ignore[override]  # another
        found: torch.Tensor = super().forward(x)
        return found


@seeded
def sets() -> OwnModel:
    return model(Sets(4, 4), First(4, 4))


@seeded
def other_things() -> OwnModel:
    return model(Other(4, 4), First(4, 4))


@seeded
def briefly() -> OwnModel:
    """All of it in bfloat16."""
    stages = [nn.Linear(4, 4), nn.Linear(4, 4)]
    return model(*(stage.bfloat16() for stage in stages))


@seeded
def halved() -> OwnModel:
    """All of it in float16."""
    return model(nn.Linear(4, 4).half(), nn.Linear(4, 4).half())


@seeded
def mixed() -> OwnModel:
    """A norm in float32 among linears in bfloat16."""
    return model(nn.Linear(4, 4).bfloat16(), nn.LayerNorm(4))


SIZES = (3, 3, 2)


def uneven(microbatch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Eight samples in three microbatches, as torch.chunk cuts them."""
    generator = torch.Generator().manual_seed(microbatch)
    drawn = torch.randn(2, SIZES[microbatch % 3], 4, generator=generator)
    return drawn[0], drawn[1]


def uneven_words(microbatch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Words of which some targets do not count."""
    generator = torch.Generator().manual_seed(microbatch)
    drawn = torch.randint(WORDS, (SIZES[microbatch % 3], 6), generator=generator)
    return drawn[:, :-1], drawn[:, 1:].masked_fill(drawn[:, :-1] % 4 == 0, -100)


def spread(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The spread of all errors, which is no sum over samples."""
    return (y - target).flatten().std()


@seeded
def means() -> OwnModel:
    return replace(model(nn.Linear(4, 4), nn.Linear(4, 4)), batch=uneven)


@seeded
def means4() -> OwnModel:
    return replace(model(*(nn.Linear(4, 4) for _ in range(4))), batch=uneven)


@seeded
def sums() -> OwnModel:
    return replace(means(), loss=lambda y, target: (y - target).square().sum())


@seeded
def spreads() -> OwnModel:
    return replace(means(), loss=spread)


@seeded
def longer() -> OwnModel:
    """The samples of a microbatch are longer than those of another."""

    def batch(microbatch: int) -> tuple[torch.Tensor, torch.Tensor]:
        given, target = words(microbatch)
        return given[:, : 3 + microbatch], target[:, : 3 + microbatch]

    return replace(counted(), batch=batch)


@seeded
def counted() -> OwnModel:
    stages = [nn.Embedding(WORDS, HIDDEN), nn.Linear(HIDDEN, WORDS)]
    return OwnModel(stages=stages, batch=uneven_words, loss=scored)
