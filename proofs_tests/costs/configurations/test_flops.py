"""FLOPs of configurations against torch's own counter, on the meta device.

Each file's model is built with few of its layers, at full width, and passed forward once over fewer
tokens than any window has: products, and whole squares of attention, are then what is counted here.
Experts run as a batched product, which the counter knows; Llama 4 multiplies each expert with every
token, here with all of its experts a token. Of recurrent layers the counter does not know the scan;
the shapes of their linears are held by the totals.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bubbleproof.costs import Deployment, model_costs, transformer
from bubbleproof.costs.configurations.config_file import read_configuration
from bubbleproof.costs.flops import seen
from proofs_tests.costs.configurations.published import FOLDER

TOKENS = 64
LAYERS = 4
RECURRENT = {"jamba-v0.1", "mamba2-2.7b", "nemotron-h-8b", "qwen3-next-80b-a3b"}
TOWERS = {"gemma-3-4b", "gemma-3-12b", "gemma-3-27b", "qwen2.5-vl-7b"}
DENSE_EXPERTS = {"llama-4-scout", "llama-4-maverick"}
NAMES = sorted({path.stem for path in FOLDER.glob("*.json")} - RECURRENT - TOWERS)


def of_few_layers(name: str, target: Path) -> dict[str, Any]:
    """The file's keys with few layers, written to the target as well."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    layers = "n_layer" if "n_layer" in content else "num_hidden_layers"
    content[layers] = LAYERS
    content.pop("layer_types", None)
    target.write_text(json.dumps(content))
    return content


@pytest.mark.parametrize("name", NAMES)
def test_a_forward_has_the_flops_that_torch_counts(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    path = tmp_path / f"{name}.json"
    content = of_few_layers(name, path)
    config = transformers.CONFIG_MAPPING[content.pop("model_type")](**content)
    config._attn_implementation = "eager"
    config._experts_implementation = "batched_mm"
    with torch.device("meta"):
        model = getattr(transformers, content["architectures"][0])(config).eval()
    words = torch.zeros(1, TOKENS, dtype=torch.long, device="meta")
    mask = torch.zeros(1, 1, TOKENS, TOKENS, device="meta")
    if config.model_type in ("gemma2", "gemma3_text", "gpt_oss", "llama4_text", "qwen3", "smollm3"):
        mask = dict.fromkeys(("full_attention", "sliding_attention", "chunked_attention"), mask)
    if config.model_type in ("bloom", "falcon", "opt"):
        mask = torch.ones(1, TOKENS, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=words, attention_mask=mask, use_cache=False)
    shape = read_configuration(f"hf:{path}", with_library=False).model
    if name in DENSE_EXPERTS:
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "num_experts_per_tok": shape.experts})
        )
        shape = read_configuration(f"hf:{path}", with_library=False).model
    found = model_costs(shape, Deployment(sequence=TOKENS))
    assert found.flops.forward == counter.get_total_flops()


@pytest.mark.parametrize("sequence", range(1, 12))
@pytest.mark.parametrize("size", range(1, 14))
def test_a_window_and_a_chunk_see_their_part_of_the_square(sequence: int, size: int) -> None:
    """Pairs of tokens, one by one: nearer than the window, or in the same chunk."""
    plain = transformer("llama", layers=1, hidden=8, heads=1, feed_forward=8, vocabulary=8)
    pairs = [(i, j) for i in range(sequence) for j in range(sequence)]
    near = sum(abs(i - j) < size for i, j in pairs)
    together = sum(i // size == j // size for i, j in pairs)
    assert seen(plain.with_changes(window=size), sequence) * sequence == near
    assert seen(plain.with_changes(chunk=size), sequence) * sequence == together
    assert seen(plain, sequence) == sequence
