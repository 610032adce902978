"""T-Pipe's headlines: trainable depth, memory and throughput at (PP, TP) = (8, 8), Figure 8.

*Schedules* are those of the page of Figure 8 (``tpipe_page``). The *cost model* takes layers, and
messages between nodes of eight, on the calibrated A100 (the paper's GPUs have 32 GiB; no rate of
theirs is printed), and times the two schedules anew: T-Recomp's two chunks send each microbatch
twice as often as 1F1B does. Figure 11's two schedules are timed anew at 64K tokens; a
recomputation there leaves out the attention (the figure's caption).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

from benchmarks.headlines import Headline
from benchmarks.paper_numbers import Number
from benchmarks.tpipe_page import depth_numbers, memory_numbers
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_times import ClusterTimes, cluster_times
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.times.profiles import software
from bubbleproof.formats.clusters.hardware_toml import known_hardware
from bubbleproof.papers.tpipe.tpipe_memory import DEPLOYMENT, MICROBATCHES, RANKS, model_of
from bubbleproof.solvers.shortening.known_orders import improved
from bubbleproof.theory.families import member
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

LAYERS, US = 48, 1000
MFUS = {"T-Pipe+T-Recomp": 4613, "V-Min": 3983}  # hundredths of a per cent at 64K tokens, 6.3
THROUGHPUT = "TPipe ALL over 1F1B+R=50%, throughput"
COUNTED = (
    "schedules without messages; the cost model counts messages, which T-Recomp sends twice as "
    "often; neither counts the host's work beside the GPUs (T-Offload), of which no time is printed"
)


def headlines() -> list[Headline]:
    """Memory and throughput, then depths."""
    return [*(_headline(one) for one in (*memory_numbers(), *depth_numbers())), _long()]


def _long() -> Headline:
    """Section 6.3: the MFU of V-Min over that of T-Recomp, 39.83 and 46.13 % printed."""
    return Headline(
        name="V-Min over T-Pipe+T-Recomp, MFU at 64K tokens (Figure 11)",
        printed=f"{MFUS['V-Min'] / MFUS['T-Pipe+T-Recomp']:.3f}x",
        model=v_min_over_trecomp(),
        why="the authors' figure is a simulation too; by V-Min's own order, with one that `solve` "
        f"shortens {float(v_min_over_trecomp(is_improved=True)):.3f}",
    )


def v_min_over_trecomp(*, is_improved: bool = False) -> Fraction:
    """T-Recomp's step over V-Min's: 48 layers, 16 microbatches of one sample of 64K tokens."""
    at = DEPLOYMENT.with_changes(sequence=65536, micro_batch=1)
    whole, again = (_times(at.with_changes(scope=scope)) for scope in ("none", "attention"))
    each, layers, samples = whole.layers[0][0], LAYERS // (2 * RANKS) * US, 16
    attention = again.layers[0][0].input_backward - each.input_backward
    forward, back, late = (
        ceil(ticks * layers) for ticks in (each.forward, each.input_backward, each.weight_backward)
    )
    built = member("trecomp", p=RANKS, m=samples, tF=forward, tB=back + late)
    choice = built.pipeline.choices.recompute
    assert choice is not None
    kept = replace(choice, duration=ceil((each.forward - attention) * layers))
    other = member("v-min", p=RANKS, m=samples, tF=forward, tI=back, tW=late)
    recomputed = _makespan(
        built.pipeline.with_changes(recompute=kept), built.schedule.program, whole.message
    )
    order = improved("v-min", other.pipeline) if is_improved else None
    program = other.schedule.program if order is None else order
    return Fraction(recomputed, _makespan(other.pipeline, program, whole.message))


def _times(at: Deployment) -> ClusterTimes:
    """On the calibrated A100."""
    known = known_hardware("a100-80gb", "card")
    cluster = Cluster(
        card=known.card,
        cards=RANKS * at.tensor,
        constants=known.constants,
        runs=software("megatron-core"),
    )
    return cluster_times(model_of(LAYERS), at, cluster)


def _makespan(pipeline: Pipeline, program: Program, message: float) -> int:
    """Left-shifted, with messages of so many milliseconds."""
    problem = pipeline.with_changes(latency=ceil(message * US)).problem()
    return measure(problem, left_shift(problem, program)).makespan


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
    times = _times(DEPLOYMENT)
    layers = LAYERS // (2 * RANKS)
    forward = ceil(times.layers[0][0].forward * layers * US)
    backward = ceil(
        (times.layers[0][0].input_backward + times.layers[0][0].weight_backward) * layers * US
    )
    built = member("trecomp", p=RANKS, m=MICROBATCHES, tF=forward, tB=backward)
    plain = Pipeline(
        num_ranks=RANKS,
        num_microbatches=MICROBATCHES,
        forward=2 * forward,
        backward=2 * backward + forward,
    )
    other = member("1f1b", p=RANKS, m=MICROBATCHES).schedule.program
    ours = _makespan(built.pipeline, built.schedule.program, times.message)
    return Fraction(_makespan(plain, other, times.message), ours)
