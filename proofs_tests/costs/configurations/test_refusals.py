"""Configurations that are none, or that cannot be counted: one line with file, key and repair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.costs.configurations.config_file import read_configuration
from bubbleproof.costs.transformer import LARGEST

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256,
}  # fmt: skip
WINDOWED = {**LLAMA, "model_type": "gemma2", "head_dim": 16, "sliding_window": 8}
HYBRID = {
    **LLAMA, "model_type": "nemotron_h", "hybrid_override_pattern": "M-M*", "head_dim": 16,
}  # fmt: skip
NO_SIZE: dict[str, object] = {}
WRONG: list[tuple[dict[str, object], str]] = [
    (
        {**LLAMA, "hidden_size": "64"},
        "hidden_size: expected a whole number from 1, got '64'; write 64",
    ),
    ({**LLAMA, "num_hidden_layers": 0}, "num_hidden_layers: expected a whole number from 1, got 0"),
    ({**LLAMA, "vocab_size": -1}, "vocab_size: expected a whole number from 1, got -1"),
    ({**LLAMA, "vocab_size": 1.5}, "vocab_size: expected a whole number from 1, got 1.5"),
    ({**LLAMA, "vocab_size": True}, "vocab_size: expected a whole number from 1, got True"),
    (
        {**LLAMA, "num_hidden_layers": 1_000_000},
        "num_hidden_layers: expected a whole number from 1 to",
    ),
    ({**LLAMA, "hidden_size": LARGEST + 4}, "hidden must be at most"),
    (
        {**LLAMA, "num_attention_heads": 5},
        "num_attention_heads: expected a divisor of hidden_size 64",
    ),
    ({**LLAMA, "num_key_value_heads": 3}, "num_key_value_heads: expected a divisor of the 4 heads"),
    (
        {**LLAMA, "tie_word_embeddings": "yes"},
        "tie_word_embeddings: expected true or false, got 'yes'",
    ),
    ({**LLAMA, "intermediate_size": None}, "intermediate_size: this key is missing"),
    (
        {**{k: v for k, v in LLAMA.items() if k != "hidden_size"}, "hiden_size": 64},
        "hidden_size: this key is missing (did you mean 'hiden_size'?)",
    ),
    ({**LLAMA, "num_wings": 2}, "num_wings: this key is not known of llama"),
    (
        {**WINDOWED, "layer_types": ["full_attention"] * 3},
        "layer_types: expected one entry for each of 4 layers, got 3",
    ),
    (
        {**WINDOWED, "layer_types": ["full_attention"] * 3 + ["spiral"]},
        "layer_types: expected names of full_attention, sliding_attention",
    ),
    ({**HYBRID, "hybrid_override_pattern": "M-M"}, "hybrid_override_pattern: expected a letter of"),
    (
        {**LLAMA, "model_type": "lama"},
        "model_type: 'lama' is not counted here (did you mean 'llama'?)",
    ),
    ({**LLAMA, "model_type": "bert"}, "model_type: 'bert' is not counted here"),
    ({"_class_name": "UNet2DConditionModel"}, "this is a model of diffusers"),
    ({"version": "1.0", "added_tokens": []}, "this is a tokenizer"),
    ({"metadata": {}, "weight_map": {}}, "this is an index of weights"),
    ({"peft_type": "LORA"}, "this is an adapter"),
    (NO_SIZE, 'model_type: expected a name such as "llama", got nothing'),
]


@pytest.mark.parametrize(("content", "told"), WRONG, ids=[told[:40] for _, told in WRONG])
def test_a_wrong_configuration(tmp_path: Path, content: dict[str, object], told: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=str(path)) as refused:
        read_configuration(f"hf:{tmp_path}", with_library=False)
    line = str(refused.value)
    assert line.startswith(f"{path}: ")
    assert told in line
    assert "\n" not in line


@pytest.mark.parametrize(("text", "told"), [
    ('{"model_type": "llama", ', "is no whole JSON, line 1"),
    ("[1, 2]", "expected a table of keys, got list"),
    ("\x80", "is no whole JSON"),
    ("[" * 100_000, "is no whole JSON"),
])  # fmt: skip
def test_what_is_no_configuration(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=told):
        read_configuration(f"hf:{path}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        read_configuration(f"hf:{tmp_path / 'none.json'}")


def test_transformers_takes_every_key(tmp_path: Path) -> None:
    """With it no key of a file is refused, and what it does not take is read without it."""
    pytest.importorskip("transformers")
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({**LLAMA, "num_wings": 2, "auto_map": {"AutoConfig": "code.Config"}})
    )
    found = read_configuration(f"hf:{path}")
    assert found.ignored == ("num_wings", "auto_map")
    assert found.notes == ("auto_map: code that comes with the file is not run",)
    path.write_text(json.dumps({**LLAMA, "rms_norm_eps": "small"}))
    assert "read without transformers" in read_configuration(f"hf:{path}").notes[-1]
