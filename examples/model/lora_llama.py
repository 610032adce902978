"""A small Llama with LoRA to replay: its own weights stay as they are, the adapters' train.

    bubbleproof replay 1f1b p=4 m=6 --model examples/model/lora_llama.py:build

Needs `pip install "bubbleproof[models]"`. The stages are those of
`--model hf:examples/model/llama.json`.
"""

from __future__ import annotations

from pathlib import Path

import peft
import torch

from bubbleproof.reference_exec.models.hf_model import hf_model
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import OwnModel

CONFIG = Path(__file__).with_name("llama.json")
LORA = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)


def build() -> OwnModel:
    """Four stages of one layer each; B of an adapter is drawn too, or A would get no gradient."""
    model = hf_model(ModelSpec(kind="own", factory=f"hf:{CONFIG}").on(4))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(17)
        for stage in model.stages:
            peft.inject_adapter_in_model(LORA, stage)
            for name, parameter in stage.named_parameters():
                if "lora_B" in name:
                    torch.nn.init.normal_(parameter, std=0.1)
    return model
