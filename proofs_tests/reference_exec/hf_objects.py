"""A model of transformers as somebody builds it."""

from __future__ import annotations

import torch
import transformers

from proofs_tests.reference_exec.model_table import SIZES


def build() -> transformers.PreTrainedModel:
    """A small Llama whose head is tied."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**SIZES, tie_word_embeddings=True)
        )
