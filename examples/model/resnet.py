"""A small ResNet to replay, its stages cut between blocks.

    bubbleproof replay zb-h1 p=4 m=6 --model examples/model/resnet.py:build

Group norms stand where a ResNet often has batch norms: what a batch norm keeps depends on the order
of microbatches, which a pipeline changes. W does nothing here but in the last stage: convolutions
give both gradients at once, so that I is the whole backward.
"""

from __future__ import annotations

import torch
from torch import nn

from bubbleproof.reference_exec.models.own import OwnModel

CLASSES, WIDTH, PIXELS, SAMPLES = 5, 8, 8, 2


class Block(nn.Module):
    """Two convolutions of 3 x 3 behind norms, and the way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.GroupNorm(4, outputs), nn.GroupNorm(4, outputs)])
        self.around = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norms[0](self.first(x)))
        result: torch.Tensor = torch.relu(self.around(x) + self.norms[1](self.second(y)))
        return result


def batch(microbatch: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures of noise, and a class for each."""
    generator = torch.Generator().manual_seed(1000 * step + microbatch)
    pictures = torch.randn(SAMPLES, 3, PIXELS, PIXELS, generator=generator)
    return pictures, torch.randint(CLASSES, (SAMPLES,), generator=generator)


def build() -> OwnModel:
    """Four stages: pixels to channels, two blocks, a mean over pixels with the classes' scores."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        last = nn.Sequential(
            Block(2 * WIDTH, 2 * WIDTH, 1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * WIDTH, CLASSES),
        )
        stages = [
            nn.Sequential(nn.Conv2d(3, WIDTH, 3, padding=1), nn.GroupNorm(4, WIDTH), nn.ReLU()),
            Block(WIDTH, WIDTH, 1),
            Block(WIDTH, 2 * WIDTH, 2),
            last,
        ]
    return OwnModel(stages=stages, batch=batch, loss=nn.functional.cross_entropy)
