"""Small replays of every kind, by name, into which faults are put."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.theory.pipelines.activation_offload import ActivationOffload
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.reference_exec.cases import TINY, family_case, own, random_case, run
from proofs_tests.reference_exec.replica_cases import of_family
from proofs_tests.reference_exec.replica_cases import run as run_replicas
from proofs_tests.reference_exec.training_cases import trained

WIDE = replace(TINY, hidden=8)
TIED = replace(TINY, vocabulary=5, tied=True)
LLAMA = replace(TINY, kind="llama", sequence=4)
TWO_STEPS = Training(optimizer="momentum", steps=2)


def _of(family: str, spec: ModelSpec = WIDE, **params: int) -> Callable[[], ReplayReport]:
    return lambda: run(family_case(family, **params), spec)


def _training(family: str, spec: ModelSpec = TINY, **params: int) -> Callable[[], ReplayReport]:
    return lambda: trained(family_case(family, **params), TWO_STEPS, spec)


def _three_steps() -> ReplayReport:
    return trained(family_case("1f1b", p=2, m=3), replace(TWO_STEPS, steps=3), WIDE)


def _off_loaded() -> ReplayReport:
    """One rank, two microbatches; the first one's activation goes to the host and comes back."""
    offload = ActivationOffload(stage=0, microbatch=0, offload=1, reload=1)
    pipeline = Pipeline(num_ranks=1, num_microbatches=2, offloads=(offload,))
    return run(random_case(pipeline, 0))


def _cut() -> ReplayReport:
    """One rank, two microbatches; each W runs in two parts."""
    pipeline = Pipeline(
        num_ranks=1,
        num_microbatches=2,
        split_backward=True,
        weight_backward=2,
        weight_parts=(1, 1),
    )
    return run(random_case(pipeline, 0))


CASES: Mapping[str, Callable[[], ReplayReport]] = {
    "1f1b": _of("1f1b", p=2, m=3),
    "1f1b on four": _of("1f1b", p=4, m=4),
    "zb-h1": _of("zb-h1", p=2, m=3),
    "bpipe": _of("bpipe", p=4, m=6),
    "trecomp": _of("trecomp", p=2, m=3),
    "svpp": _of("svpp", replace(TINY, kind="transformer"), p=2, m=2, s=3),
    "toffload": _of("toffload", p=2, m=2),
    "off-loaded": _off_loaded,
    "training": _training("zb-h1", p=2, m=3),
    "three steps": _three_steps,
    "interleaved training": _training("interleaved", WIDE, p=2, m=4, v=2),
    "tied": _training("1f1b", TIED, p=2, m=3),
    "chimera": _training("chimera", p=2, m=4),
    "parts": _cut,
    "two layers": _of("1f1b", replace(WIDE, layers=2), p=2, m=2),
    "llama in slices": _of("svpp", LLAMA, p=2, m=2, s=2),
    "alike": _of("1f1b", own("alike"), p=2, m=3),
    "underflow": _of("1f1b", own("fading"), p=2, m=3),
    "negative zeros": _of("zb-h1", own("negative_zeros"), p=2, m=3),
    "zero": lambda: run_replicas(of_family("1f1b"), "3"),
    "replicas": lambda: run_replicas(of_family("1f1b"), None),
    "four replicas": lambda: run_replicas(of_family("1f1b"), None, data_parallel=4),
    "sharded training": lambda: run_replicas(of_family("1f1b"), "3", training=TWO_STEPS),
    "hosted training": _training("toffload", p=2, m=2),
}
