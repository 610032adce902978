"""T-Pipe's headlines: trainable depth, memory and throughput at (PP, TP) = (8, 8), Figure 8.

*Schedules* are those of the page of Figure 8 (``tpipe_page``). The *cost model* takes layers, and
messages between nodes of eight, on the calibrated A100 (the paper's GPUs have 32 GiB; no rate of
theirs is printed), and times the two schedules anew: T-Recomp's two chunks send each microbatch
twice as often as 1F1B does.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from benchmarks.headlines import Headline
from benchmarks.paper_numbers import Number
from benchmarks.tpipe_page import depth_numbers, memory_numbers
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_times import cluster_times
from bubbleproof.formats.clusters.hardware_toml import known_hardware
from bubbleproof.papers.tpipe.tpipe_memory import DEPLOYMENT, MICROBATCHES, RANKS, model_of
from bubbleproof.theory.families import member
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

LAYERS, US = 48, 1000
THROUGHPUT = "TPipe ALL over 1F1B+R=50%, throughput"
COUNTED = (
    "schedules without messages; the cost model counts messages, which T-Recomp sends twice as "
    "often; neither counts the host's work beside the GPUs (T-Offload), of which no time is printed"
)


def headlines() -> list[Headline]:
    """Memory and throughput, then depths."""
    return [_headline(one) for one in (*memory_numbers(), *depth_numbers())]


def _headline(one: Number) -> Headline:
    is_throughput = one.name == THROUGHPUT
    return Headline(
        name=one.name,
        printed=one.printed,
        model=100 * throughput() if is_throughput else None,
        schedules=Fraction(one.ours or 0),
        why=COUNTED if is_throughput else one.why,
    )


def throughput() -> Fraction:
    """T-Recomp's over that of 1F1B that recomputes half of every stage, with messages."""
    known = known_hardware("a100-80gb", "card")
    cluster = Cluster(card=known.card, cards=RANKS * DEPLOYMENT.tensor, constants=known.constants)
    times = cluster_times(model_of(LAYERS), DEPLOYMENT, cluster)
    layers, latency = LAYERS // (2 * RANKS), ceil(times.message * US)
    forward = ceil(times.layer.forward * layers * US)
    backward = ceil((times.layer.input_backward + times.layer.weight_backward) * layers * US)
    built = member("trecomp", p=RANKS, m=MICROBATCHES, tF=forward, tB=backward)
    plain = Pipeline(
        num_ranks=RANKS,
        num_microbatches=MICROBATCHES,
        forward=2 * forward,
        backward=2 * backward + forward,
    )
    other = member("1f1b", p=RANKS, m=MICROBATCHES).schedule.program
    makespans = [
        measure(problem, left_shift(problem, program)).makespan
        for pipeline, program in ((built.pipeline, built.schedule.program), (plain, other))
        for problem in (pipeline.with_changes(latency=latency).problem(),)
    ]
    return Fraction(makespans[1], makespans[0])
