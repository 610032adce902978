"""T-Pipe's headlines: trainable depth, memory and throughput at (PP, TP) = (8, 8), Figure 8.

The figure itself is not in the text; section 6.2 tells its numbers ("GB" are GiB). LLAMA with the
layers of Llama 2 70B on 8 ranks of 8 tensor-parallel GPUs, 64 microbatches of 2 samples of 4096
tokens. *Schedules*: a layer keeps of a microbatch all that its operations put out, inputs of
column-split linears whole, but for SiLU and the gated product, which operator-level recomputation
makes again, and weighs 18 bytes a parameter; the peaks are those of built schedules. What fits is
asked of 30 GiB: the GPU's 32 GiB (section 6.1) less 2 GiB for what nothing here counts; depths go
in steps that give each chunk whole layers (``papers.tpipe.tpipe_memory``). The *cost model* takes
layers, and messages between nodes of eight, on the calibrated A100 (the paper's GPUs have 32 GiB;
no rate of theirs is printed), and times the two schedules anew: T-Recomp's two chunks send each
microbatch twice as often as 1F1B does. Figure 11's two schedules are timed anew at 64K tokens; a
recomputation there leaves out the attention (the figure's caption).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

from benchmarks.headlines import Headline
from bubbleproof.costs.cluster import Cluster
from bubbleproof.costs.cluster_times import ClusterTimes, cluster_times
from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.times.profiles import software
from bubbleproof.formats.clusters.hardware_toml import known_hardware
from bubbleproof.papers.tpipe import tpipe_schedules as on
from bubbleproof.papers.tpipe.tpipe_memory import (
    AT,
    DEPLOYMENT,
    GIB,
    MICROBATCHES,
    RANKS,
    SYSTEMS,
    activation_gib,
    bytes_of,
    chunks_held,
    memory_share,
    model_of,
    most_layers,
)
from bubbleproof.solvers.shortening.known_orders import improved
from bubbleproof.theory.families import member
from bubbleproof.theory.model.measures import measure
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.timing import left_shift

LAYERS, US = 48, 1000
MFUS = {"T-Pipe+T-Recomp": 4613, "V-Min": 3983}  # hundredths of a per cent at 64K tokens, 6.3
DEPTHS = {"1F1B": 40, "1F1B+R=50%": 64, "T-Pipe": 48, "T-Recomp": 80, "TPipe ALL": 96}
COUNTED = (
    "schedules without messages; the cost model counts messages, which T-Recomp sends twice as "
    "often; neither counts the host's work beside the GPUs (T-Offload), of which no time is printed"
)


def headlines() -> list[Headline]:
    """Memory and throughput, then depths."""
    return [*_memory(), *_depths(), _long()]


def _memory() -> list[Headline]:
    """Figure 8(a)."""
    units = chunks_held()
    held = {name: activation_gib(name, LAYERS) for name in units}
    ticks = Fraction(100 * on.half_recomputed_makespan(AT), on.makespan(on.TRECOMP, AT))
    return [
        Headline(name="T-Recomp, activations, 48 layers, GB", printed="6.39",
                 schedules=held["T-Recomp"],
                 why=f"{units['T-Recomp']} chunks of 3 layers at the peak of the schedule"),
        Headline(name="T-Pipe alone (before T-Recomp), GB", printed="16.61",
                 schedules=held["T-Pipe"],
                 why=f"{units['T-Pipe']} chunks of 3 layers at the peak of the schedule"),
        Headline(name="1F1B+R=50%, GB", printed="10.65", schedules=held["1F1B+R=50%"],
                 why="8 halves of a stage of 6 layers, and one layer made again"),
        Headline(name="TPipe ALL over 1F1B+R=50%, activations and state", printed="63.35 %",
                 schedules=memory_share(LAYERS),
                 why="18 bytes a parameter of the layers alone, of which "
                 "T-Offload takes half of the optimizer's 12: a third"),
        Headline(name="TPipe ALL over 1F1B+R=50%, throughput", printed="97.58 %",
                 model=100 * throughput(), schedules=ticks, why=COUNTED),
    ]  # fmt: skip


def _depths() -> list[Headline]:
    """Figure 8(b)."""
    depths = {system: most_layers(system) for system in SYSTEMS}
    found = []
    for system, layers in depths.items():
        fill = Fraction(bytes_of(system, layers), GIB)
        found.append(
            Headline(
                name=f"{system}, most layers",
                printed=str(DEPTHS[system]),
                schedules=layers,
                why=f"{float(fill):.1f} GiB of activations and state on the fullest rank",
            )
        )
    return found + [
        Headline(
            name=f"TPipe ALL over {name}, layers",
            printed=f"{printed}x",
            schedules=Fraction(depths["TPipe ALL"], depths[name]),
            why="of the depths above",
        )
        for name, printed in (("1F1B", "2.4"), ("1F1B+R=50%", "1.5"))
    ]


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
