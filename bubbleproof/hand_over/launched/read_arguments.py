"""Gives a file of arguments to Megatron's own parser and checks: WORLD FILE. No GPU is needed.

Prints what Megatron made of it, or why it refuses, as JSON; status 1 where it refuses. Where
Transformer Engine is not installed, fusions that need it are switched off to ask.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TOLD = {
    "pipeline": "pipeline_model_parallel_size",
    "chunks": "virtual_pipeline_model_parallel_size",
    "group": "microbatch_group_size_per_vp_stage",
    "tensor": "tensor_model_parallel_size",
    "data": "data_parallel_size",
    "context": "context_parallel_size",
    "expert": "expert_model_parallel_size",
    "expert tensor": "expert_tensor_parallel_size",
    "layers": "num_layers",
    "distributed optimizer": "use_distributed_optimizer",
    "overlap of gradients": "overlap_grad_reduce",
    "overlap of weights": "overlap_param_gather",
    "overlap of tensor groups": "tp_comm_overlap",
    "overlap of messages": "overlap_p2p_comm",
}


OF_ENGINE = ["--no-rope-fusion", "--no-persist-layer-norm", "--no-gradient-accumulation-fusion"]


def words_of(text: str) -> list[str]:
    """The words of the lines, as a shell gives them that does not know parentheses."""
    return shlex.split(text.replace("(", "'(").replace(")", ")'"))


def asked(world: int, words: list[str]) -> dict[str, Any]:
    """What Megatron's parser, ``validate_args`` and configuration make of the words, or
    ``refused`` and why.
    """
    ranks = {"RANK": "0", "WORLD_SIZE": str(world), "LOCAL_RANK": "0"}
    os.environ.update(ranks, CUDA_DEVICE_MAX_CONNECTIONS="1")
    cuda = import_module("torch").cuda
    if not cuda.is_available():  # some checks ask what the card is
        cuda.get_device_capability = lambda *_: (9, 0)
        cuda.get_device_properties = lambda *_: SimpleNamespace(major=9, minor=0)
    version = import_module("megatron.core").__version__
    reader: Any = import_module("megatron.training.arguments")
    more = [] if find_spec("transformer_engine") else OF_ENGINE
    before, sys.argv = sys.argv, ["pretrain_gpt.py", *words, *more]
    kept = io.StringIO()
    try:
        with contextlib.redirect_stdout(kept), contextlib.redirect_stderr(kept):
            parsed = reader.parse_args()
            reader.validate_args(parsed, {"tokenizer_type": "NullTokenizer"})
            configuration = import_module("megatron.training.argument_utils")
            configuration.core_transformer_config_from_args(parsed)
    except (Exception, SystemExit) as refused:
        said = kept.getvalue().strip().splitlines()[-1:] if refused.args == (2,) else [str(refused)]
        why = f"{type(refused).__name__}: {' '.join(said)[:300]}"
        return {"version": version, "refused": why}
    finally:
        sys.argv = before
    told = {name: getattr(parsed, field, None) for name, field in TOLD.items()}
    return {"version": version, "told": told}


if __name__ == "__main__":
    found = asked(int(sys.argv[1]), words_of(Path(sys.argv[2]).read_text(encoding="utf-8")))
    sys.stdout.write(json.dumps(found) + "\n")
    raise SystemExit("refused" in found)
