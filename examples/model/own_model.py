"""A model of one's own to replay: stages as plain modules, with data and a loss.

    bubbleproof replay zb-h1 p=4 m=6 --model examples/model/own_model.py:build

The stages need not look alike: words become vectors, two blocks mix them, the last stage scores the
next word. Every process calls ``build`` and must get the same weights, so it draws them from a
fixed seed. No forward changes a buffer.
"""

from __future__ import annotations

import torch
from torch import nn

from bubbleproof.reference_exec.models.own import OwnModel

WORDS, WIDTH, LENGTH, SAMPLES = 11, 12, 5, 2


class Mixer(nn.Module):
    """A convolution over the last three words and a feed-forward part, both residual."""

    def __init__(self) -> None:
        super().__init__()
        self.past = nn.Conv1d(WIDTH, WIDTH, kernel_size=3, padding=2)
        self.norm = nn.LayerNorm(WIDTH)
        self.inner = nn.Linear(WIDTH, 3 * WIDTH)
        self.outer = nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.past(x.transpose(1, 2))[..., :LENGTH].transpose(1, 2)
        result: torch.Tensor = x + self.outer(torch.relu(self.inner(self.norm(x))))
        return result


def batch(microbatch: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sentences of words as numbers, and each one's next words; others in every optimizer step."""
    generator = torch.Generator().manual_seed(1000 * step + microbatch)
    words = torch.randint(WORDS, (SAMPLES, LENGTH + 1), generator=generator)
    return words[:, :-1], words[:, 1:]


def loss(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy of the next word."""
    return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())


def build() -> OwnModel:
    """Four stages: words to vectors, two blocks, vectors to scores."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        stages = [nn.Embedding(WORDS, WIDTH), Mixer(), Mixer(), nn.Linear(WIDTH, WORDS)]
    return OwnModel(stages=stages, batch=batch, loss=loss)
