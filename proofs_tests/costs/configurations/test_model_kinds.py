"""Layers of kinds in a file's [model]: the same counts as the configurations have."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.costs import parameters
from bubbleproof.formats.clusters.model_toml import read_model
from bubbleproof.formats.errors import UnusableInput
from proofs_tests.costs.configurations.published import TOTALS, configuration

GEMMA = """[model]
family = "llama"
layers = 26
hidden = 1152
heads = 4
kv_heads = 1
head_width = 256
feed_forward = 6912
vocabulary = 262144
tied = true
norms = 4
qk_norm = "head"
pattern = ["(window*5 full)*4", "window*2"]
kinds.window = { window = 512 }
kinds.full = {}
"""
NEMOTRON = """[model]
family = "general"
norm = "rms"
norms = 1
layers = 52
hidden = 4096
heads = 32
kv_heads = 8
head_width = 128
feed_forward = 21504
vocabulary = 131072
pattern = ["(scan mlp)*3 scan full mlp", "(scan mlp)*4 scan full mlp",
    "(scan mlp)*4 scan full mlp", "(scan mlp)*4 scan full mlp", "(scan mlp)*5"]
kinds.mlp = { mixer = "none" }
kinds.full = { feed_forward = 0 }
[model.kinds.scan]
feed_forward = 0
mixer = "mamba-2"
state = { inner = 8192, state = 128, kernel = 4, heads = 128, groups = 8 }
"""


@pytest.mark.parametrize(("text", "name"), [(GEMMA, "gemma-3-1b"), (NEMOTRON, "nemotron-h-8b")])
def test_a_model_of_kinds_is_the_configurations(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / "model.toml"
    path.write_text(text)
    model, _ = read_model(path)
    assert parameters(model).total == TOTALS[name][0]
    path.write_text(f'[model]\nconfig = "{configuration(name)}"\n')
    read, _ = read_model(path)
    assert [(k.window, n) for k, n in read.layer_runs] == [
        (k.window, n) for k, n in model.layer_runs
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"window*2"', '"window*3"', "pattern must be of layers 26, got 27"),
        ('"window*2"', '"wide*2"', "pattern[1]: 'wide' is none of kinds window, full"),
        ("kinds.full = {}", "kinds.full = { widow = 1 }", "widow"),
        ("kinds.full = {}", "kinds.full = { mixer = 'mamba' }", "state of mamba: missing 4"),
        ("kinds.full = {}", "kinds.full = { state = { inner = 8 } }", "state is of a mixer"),
        ("pattern", "# pattern", "kinds need pattern"),
        ('family = "llama"', 'config = "x"\nfamily = "llama"', "config stands in place of"),
    ],
)
def test_a_wrong_pattern(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "model.toml"
    path.write_text(GEMMA.replace(old, new, 1))
    with pytest.raises(UnusableInput) as refused:
        read_model(path)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
