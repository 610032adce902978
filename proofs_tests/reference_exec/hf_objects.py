"""Models of transformers as somebody builds them, with data and a loss of their own."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from bubbleproof.reference_exec.models.own_model import OwnModel
from proofs_tests.reference_exec.model_table import SIZES


def build() -> transformers.PreTrainedModel:
    """A small Llama whose head is tied."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**SIZES, tie_word_embeddings=True)
        )


def shifted(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss of one's own: of the words after the first two."""
    return torch.nn.functional.cross_entropy(output[:, 2:].flatten(0, 1), target[:, 2:].flatten())


def batch(number: int) -> tuple[object, torch.Tensor]:
    """Inputs by name, as the library takes them; the first word of every other sample is masked."""
    drawn = torch.randint(37, (2, 7), generator=torch.Generator().manual_seed(number))
    mask = torch.ones(2, 6, dtype=torch.int64)
    mask[1, 0] = 0
    return {"input_ids": drawn[:, :-1], "attention_mask": mask}, drawn[:, 1:]


def own() -> OwnModel:
    """The same model with data and a loss of one's own."""
    return OwnModel(stages=build(), batch=batch, loss=shifted)


class Counting(torch.nn.Module):
    """An embedding that counts its calls, and is another in each."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        found: torch.Tensor = self.inner(ids) * self.calls
        return found


def counting() -> OwnModel:
    """A model that is not the same twice, so that no cut of it is the model."""
    whole = build()
    whole.model.embed_tokens = Counting(whole.model.embed_tokens)
    return OwnModel(stages=whole, batch=batch, loss=shifted)
