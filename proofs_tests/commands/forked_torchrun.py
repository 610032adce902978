"""torchrun whose processes are forked from one where torch is loaded, which takes it seconds.

Its words are read by torchrun's own parser. What each process writes to standard error is what
``subprocess.run`` would have given.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

from bubbleproof.hand_over.trained_check import LAUNCHER
from bubbleproof.reference_exec.drivers.gloo_server import FIRST_OPTIMIZER, server_context
from proofs_tests.reference_exec.launched import free_port, variables

_LOADED = ("torch.distributed.pipelining", FIRST_OPTIMIZER)


def run(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float, **_: object
) -> CompletedProcess[str]:
    """What ``subprocess.run`` does with torchrun's words, on one machine."""
    module, given = words[2], words[3:]
    assert module == LAUNCHER[2]
    with tempfile.NamedTemporaryFile("r") as errors:
        work = (module, given, str(cwd), dict(env), errors.name)
        launcher = server_context(*_LOADED).Process(target=_launch, args=work)
        launcher.start()
        launcher.join(timeout)
        launcher.kill()
        launcher.join()
        return CompletedProcess(words, launcher.exitcode or 0, stderr=errors.read())


def _launch(
    module: str, words: Sequence[str], folder: str, env: Mapping[str, str], errors: str
) -> None:
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    os.environ.update(env)
    os.chdir(folder)
    asked = importlib.import_module(module).parse_args(words)
    assert (asked.standalone, asked.nnodes) == (True, "1:1")
    for name in _LOADED:
        importlib.import_module(name)
    forking, ranks, port = (
        multiprocessing.get_context("fork"),
        int(asked.nproc_per_node),
        free_port(),
    )
    script = [asked.training_script, *asked.training_script_args]
    started = [
        forking.Process(target=_become, args=(script, variables(rank, ranks, port)))
        for rank in range(ranks)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    sys.exit(max(abs(process.exitcode or 0) for process in started))


def _become(script: list[str], place: Mapping[str, str]) -> None:
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    os.environ.update(place)
    sys.argv = script
    sys.path.insert(0, os.getcwd())
    runpy.run_path(script[0], run_name="__main__")
