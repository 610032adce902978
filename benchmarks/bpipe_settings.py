"""The models and GPUs of BPipe's evaluation (Tables 1 and 3), and the bytes of a transfer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.costs import Deployment, layer_saved, transformer
from bubbleproof.costs.transformer import Transformer

SEQUENCE, GIGA = 2048, 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A model of Table 1 on A100 of 80 GiB; ``batch`` samples."""

    model: Transformer
    gpus: int
    batch: int


def setting(layers: int, hidden: int, heads: int, gpus: int, batch: int) -> Setting:
    """A model of 51,200 words and 2,048 positions."""
    model = transformer(
        "gpt", layers=layers, hidden=hidden, heads=heads, vocabulary=51200, positions=SEQUENCE
    )
    return Setting(model=model, gpus=gpus, batch=batch)


def deployment(tensor: int, pipeline: int, micro_batch: int, scope: str) -> Deployment:
    """One replica in the accounting of Eq. 4 to 6, with the paper's 20 bytes a weight."""
    return Deployment(
        tensor=tensor,
        pipeline=pipeline,
        micro_batch=micro_batch,
        sequence=SEQUENCE,
        scope=scope,
        accounting="bpipe",
        precision="bpipe",
        zero=1,
    )


def saved_bytes(setting: Setting, at: Deployment) -> Fraction:
    """A_0 of Eq. 4 to 6, of one rank."""
    return Fraction(layer_saved(setting.model, at)) * setting.model.layers / at.pipeline


# Table 1.
SMALL = setting(40, 5120, 40, 8, 32)
MIDDLE = setting(80, 9984, 104, 32, 128)
LARGE = setting(84, 11520, 120, 48, 192)
NAMES = {"GPT-3 13B": SMALL, "GPT-3 96B": MIDDLE, "GPT-3 134B": LARGE}
