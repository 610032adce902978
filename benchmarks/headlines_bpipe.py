"""BPipe's headlines: 1.25x to 2.17x over Megatron-LM on A100, and the imbalance of memory.

A configuration of Appendix C is (t, p, microbatch, what is recomputed) and its printed MFU; d is
what is left of the GPUs. By FLOPs alone, all at one rate, an iteration is 1F1B's makespan of stages
that take their layers' FLOPs, what is recomputed included.
"""

from __future__ import annotations

from fractions import Fraction

from benchmarks.bpipe_page import figure_numbers
from benchmarks.bpipe_settings import LARGE, MIDDLE, Setting
from benchmarks.headlines import Headline
from bubbleproof.costs import Deployment, layer_flops
from bubbleproof.costs.times.estimation import estimates
from bubbleproof.costs.times.job_rows import rows_of
from bubbleproof.formats.clusters.hardware_toml import known_hardware
from bubbleproof.theory.families import member
from bubbleproof.theory.model.measures import measure

SEQUENCE, KFLOP = 2048, 10**9
Run = tuple[int, int, int, str, str]  # t, p, microbatch, scope, MFU in percent
# By model: BPipe's fastest, and Megatron-LM's fastest and slowest (Appendix C, Table 7).
RUNS: tuple[tuple[str, Setting, Run, Run, Run], ...] = (
    ("GPT-3 96B", MIDDLE, (4, 8, 2, "attention", "50.64"), (4, 4, 2, "full", "40.51"),
     (8, 4, 8, "full", "24.31")),
    ("GPT-3 134B", LARGE, (4, 12, 2, "attention", "52.06"), (4, 6, 2, "full", "41.40"),
     (8, 6, 8, "full", "24.01")),
)  # fmt: skip
MODEL = "the calibrated A100 on the printed configurations; "
WHY = (
    MODEL + "by schedules and FLOPs at one rate, so that only recomputation and bubbles differ; "
    "by the printed MFUs"
)
SLOWEST = (
    MODEL + "both miss why it is slow: the text under Table 6 says that the allocator, under "
    "pressure, gives memory back again and again, which no model here counts"
)
COLUMNS = (
    "gpus,global_batch,micro_batch,hidden,heads,layers,sequence,tensor,data,pipeline,vocabulary,"
    "zero,sequence_parallel,scope,software"
)


def headlines() -> list[Headline]:
    """The speedups and the difference between stages."""
    found = []
    for name, setting, bpipe, fastest, slowest in RUNS:
        found.append(_speedup(f"{name} over the fastest", "1.25x", setting, (bpipe, fastest), WHY))
        if name == "GPT-3 134B":
            found.append(
                _speedup(f"{name} over the slowest", "2.17x", setting, (bpipe, slowest), SLOWEST)
            )
    return found + _imbalance()


def _speedup(
    name: str, printed: str, setting: Setting, runs: tuple[Run, Run], why: str
) -> Headline:
    ours, other = runs
    one, two = (_estimate(setting, run) for run in runs)
    return Headline(
        name=name,
        printed=printed,
        model=two / one,
        schedules=Fraction(_ticks(setting, other), _ticks(setting, ours)),
        paper=Fraction(ours[4]) / Fraction(other[4]),
        why=why,
    )


def _data(setting: Setting, run: Run) -> int:
    return setting.gpus // (run[0] * run[1])


def _estimate(setting: Setting, run: Run) -> float:
    """Milliseconds of an iteration."""
    tensor, pipeline, micro_batch, scope, _ = run
    model = setting.model
    row = (
        f"{setting.gpus},{setting.batch},{micro_batch},{model.hidden},{model.heads},"
        f"{model.layers},{SEQUENCE},{tensor},{_data(setting, run)},{pipeline},51200,1,true,"
        f"{scope},megatron-core"
    )
    (found,) = estimates(
        rows_of(f"{COLUMNS}\n{row}\n", measured=False), known_hardware("a100-80gb", "card")
    )
    return found.iteration_ms


def _ticks(setting: Setting, run: Run) -> int:
    """1F1B's makespan, in 10^9 FLOPs of a GPU."""
    tensor, p, micro_batch, scope, _ = run
    at = Deployment(sequence=SEQUENCE, micro_batch=micro_batch, tensor=tensor, scope=scope)
    one = layer_flops(setting.model, at)
    layers = Fraction(setting.model.layers, p)
    forward = int(layers * Fraction(one.forward) / KFLOP)
    backward = one.input_backward + one.weight_backward + one.again
    m = setting.batch // (_data(setting, run) * micro_batch)
    built = member("1f1b", p=p, m=m, tF=forward, tB=int(layers * Fraction(backward) / KFLOP))
    return measure(built.problem, built.schedule).makespan


def _imbalance() -> list[Headline]:
    """Figures 3 and 8, whose rows the page of the tables has with their reasons."""
    wanted = {
        "Figure 3: first less last stage, GiB": "first less last stage of GPT-3 (Figure 3), GiB",
        "Figure 8: difference between stages without balancing, GiB": (
            "between stages of 134B, unbalanced (Figure 8), GiB"
        ),
        "Figure 8: with balancing, GiB": "the same balanced, GiB",
    }
    return [
        Headline(
            name=wanted[one.name],
            printed=one.printed,
            schedules=Fraction(one.ours or 0),
            why=one.why,
        )
        for one in figure_numbers()
        if one.name in wanted
    ]
