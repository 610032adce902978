"""What was handed over trained for ten steps by PyTorch's own runtime, and held against a loop.

The loop has no pipeline: each microbatch by itself, gradients added in the table's order. Bits of
gradients and losses are compared in every step, with gradients divided by the number of
microbatches as the runtime's default is, and without, as torchtitan and Automodel have it
(``hand_over.launched.check_training``, run by torchrun on gloo in a folder of its own).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.hand_over.handed import HandedSchedule
from bubbleproof.hand_over.torch_target import CHECK, torch_files

STEPS = 10
MOST_RANKS = 16  # processes of torch on one machine
LONGEST = 600  # seconds
LAUNCHER = (sys.executable, "-m", "torch.distributed.run", "--standalone")


def trained_check(handed: HandedSchedule) -> tuple[str, str]:
    """Train by the table: what was checked, and what differs ("" where nothing does).

    Raises ``ValueError`` for more ranks than one machine is asked for.
    """
    ranks = handed.pipeline.num_ranks
    if ranks > MOST_RANKS:
        raise ValueError(f"--check trains on at most {MOST_RANKS} processes, the plan has {ranks}")
    with TemporaryDirectory() as folder:
        for name, text in torch_files(handed).files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        what = (
            f"{STEPS} steps by PyTorch's runtime on {ranks} processes of gloo, scale_grads on "
            "and off: gradients and losses have the bits of the loop without a pipeline"
        )
        return what, _difference(Path(folder), ranks)


def _difference(folder: Path, ranks: int) -> str:
    words = [*LAUNCHER, "--nproc-per-node", str(ranks), CHECK, str(STEPS)]
    own = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(
            words, cwd=folder, env=own, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not end in {LONGEST} seconds"
    if done.returncode == 0:
        return ""
    told = [line for line in done.stderr.splitlines() if line.startswith("check: ")]
    return told[0] if told else f"it ended with status {done.returncode}: {done.stderr[-300:]}"
