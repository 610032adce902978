"""A small encoder and decoder to replay: what the encoder made goes on beside the target.

    bubbleproof replay 1f1b p=4 m=6 --model examples/model/encoder_decoder.py:build

A stage gives one tensor to the next, so source and target travel in one, (samples, SOURCE + TARGET,
WIDTH): encoders change its first part, decoders the second, and look at the first.
"""

from __future__ import annotations

import torch
from torch import nn

from bubbleproof.reference_exec.models.own import OwnModel

WORDS, WIDTH, SOURCE, TARGET, SAMPLES = 13, 8, 5, 4, 2


class Words(nn.Module):
    """Words of both parts, and where they stand, as vectors; then the first encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(SOURCE + TARGET, WIDTH)
        self.encoder = Encoder()

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        places = torch.arange(SOURCE + TARGET, device=words.device)
        both: torch.Tensor = self.encoder(self.words(words) + self.places(places))
        return both


class Encoder(nn.Module):
    """A layer of torch's over the source."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True)

    def forward(self, both: torch.Tensor) -> torch.Tensor:
        source, target = both.split([SOURCE, TARGET], dim=1)
        return torch.cat([self.layer(source), target], dim=1)


class Decoder(nn.Module):
    """A layer of torch's over the target, which sees the source and its own past."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True)

    def forward(self, both: torch.Tensor) -> torch.Tensor:
        source, target = both.split([SOURCE, TARGET], dim=1)
        future = torch.ones(TARGET, TARGET, dtype=torch.bool, device=both.device).triu(1)
        return torch.cat([source, self.layer(target, source, tgt_mask=future)], dim=1)


class Scores(nn.Module):
    """The last decoder, and the scores of each word of the target."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder, self.scores = Decoder(), nn.Linear(WIDTH, WORDS)

    def forward(self, both: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scores(self.decoder(both)[:, SOURCE:])
        return scores


def batch(microbatch: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A source and a target in a row, and the target's next words."""
    generator = torch.Generator().manual_seed(1000 * step + microbatch)
    words = torch.randint(WORDS, (SAMPLES, SOURCE + TARGET + 1), generator=generator)
    return words[:, :-1], words[:, SOURCE + 1 :]


def loss(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy of the next word."""
    return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())


def build() -> OwnModel:
    """Four stages: two of the encoder, two of the decoder."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(13)
        stages = [Words(), Encoder(), Decoder(), Scores()]
    return OwnModel(stages=stages, batch=batch, loss=loss)
