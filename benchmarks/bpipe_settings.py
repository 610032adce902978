"""The models and GPUs of BPipe's evaluation (Tables 1 and 3)."""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.costs import transformer
from bubbleproof.papers.bpipe.bpipe_grid import GridPoint, Setting


def setting(layers: int, hidden: int, heads: int, gpus: int, batch: int, pace: str) -> Setting:
    """A model of Table 1, of 51,200 words and 2,048 positions, on A100 of 80 GiB."""
    model = transformer(
        "gpt", layers=layers, hidden=hidden, heads=heads, vocabulary=51200, positions=2048
    )
    return Setting(model=model, gpus=gpus, batch=batch, pace=Fraction(pace))


def point_of(tensor: int, pipeline: int, data: int, micro_batch: int, batch: int) -> GridPoint:
    """A deployment of a batch."""
    m = batch // (data * micro_batch)
    return GridPoint(
        tensor=tensor, pipeline=pipeline, data=data, micro_batch=micro_batch, microbatches=m
    )


# Table 1; the pace is Table 3's forward times t p / b of its configuration.
SMALL = setting(40, 5120, 40, 8, 32, "0.29056")
MIDDLE = setting(80, 9984, 104, 32, 128, "2.29392")
LARGE = setting(84, 11520, 120, 48, 192, "3.04488")
NAMES = {"GPT-3 13B": SMALL, "GPT-3 96B": MIDDLE, "GPT-3 134B": LARGE}
