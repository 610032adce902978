"""PipeMesh's claims on numbers: what Tables III to VI must satisfy among themselves.

A row of Table IV is a case ``row`` 0 to 15, in the order printed. Times are in the table's unit,
memory in GiB (which the table writes GB: only so do its model states come out), throughput in
TFLOPS and MFU in per cent. The printed numbers are rounded, so relations between them are asked
only to the rounding.

B means two things. Section IV counts B microbatches per pipeline, Table IV prints the batch size
per iteration under the same letter, and section VI accumulates gradients of B/P microbatches per
device. With microbatches of 1 (section VI) and D replicas a pipeline runs B/D of Table IV's B, so
B/P is a misprint for B/D; at P = D, the table's first four rows, the two agree. How many a pipeline
ran is asked of the table itself: T_bubble is P-1 of the M n passes that the computation takes
(tab4.bubble), n = (P-1) T_comp / (M T_bubble). ``q`` is PipeMesh's buffer queue size.

Source: Li et al., "PipeMesh" (TPDS 2025) sections I, II, IV and VI, Tables III to VI.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from bubbleproof.papers import pipemesh_formulas as forms
from bubbleproof.papers.claims.claim import Claim, Exact, missing, stated
from bubbleproof.papers.claims.domain import Params, case, domain
from bubbleproof.papers.claims.measured_pipelines import measures
from bubbleproof.papers.claims.pipemesh_memory import BYTES, FALCON, GPT3, LLAMA2, flops
from bubbleproof.papers.claims.pipemesh_schedules import depth_first_peak, measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of Table IV; B, P and D are its batch and parallel sizes, T is 8 throughout."""

    model: str
    B: int
    P: int
    D: int
    gpus: int
    peak: int
    system: str
    M: int
    forward: Fraction
    backward: Fraction
    bubble: Fraction
    dp: Fraction
    pp: Fraction
    gpu: Fraction
    activations: Fraction
    gradients: Fraction
    parameters: Fraction
    throughput: Fraction
    mfu: Fraction

    @property
    def passes(self) -> int:
        """M B microbatch passes of a rank: the batch is shared by D replicas."""
        return self.M * self.B // self.D

    @property
    def compute(self) -> Fraction:
        return self.forward + self.backward

    @property
    def total(self) -> Fraction:
        """T_iter, Eq. 1."""
        return self.compute + self.bubble + self.dp + self.pp


_GROUPS = (
    (GPT3, 36, 3, 3, 72, 312), (GPT3, 72, 4, 3, 96, 125),
    (LLAMA2, 48, 4, 3, 96, 125), (FALCON, 72, 4, 3, 96, 125),
)  # fmt: skip
SYSTEMS = ("PipeMesh", "Megatron", "MegaScale", "Fold3D")
_TEXT = """
6 1554.1 2567.2 114.5 245.1 140.3 29.9 11.5 3.0 3.9 120.6 38.7
2 1492.2 2485.4 331.5 993.6 262.8 30.1 9.6 4.5 4.5 100.4 32.2
2 1501.3 2497.0 333.2 986.4 254.0 30.1 9.6 4.5 4.5 100.3 32.2
6 2312.1 3431.6 159.5 247.7 134.9 37.0 28.7 3.0 3.0 89.3 28.6
6 5012.0 9217.1 296.4 757.9 505.9 25.3 11.4 2.3 2.7 52.1 41.7
2 4914.5 9109.6 876.5 3923.1 922.7 25.6 9.9 3.4 3.4 42.1 33.7
2 4917.9 9104.5 876.4 3863.8 919.0 25.6 9.9 3.4 3.4 42.3 33.8
6 7997.2 12225.0 421.3 760.4 509.7 29.0 43.0 2.3 2.3 38.1 30.5
5 4883.6 8841.1 514.7 859.2 635.6 25.6 11.8 2.4 2.8 46.2 37.0
1 4789.0 8664.1 2522.5 4263.8 1155.1 25.7 10.6 3.2 3.2 34.8 27.7
1 4769.7 8651.5 2516.5 4223.1 1167.5 25.7 10.6 3.2 3.2 34.5 27.6
5 7842.8 11725.7 733.8 854.7 617.6 29.2 42.5 2.4 2.4 34.0 27.2
8 6035.9 10805.4 263.1 638.8 548.7 26.5 11.6 2.2 2.7 52.2 41.8
3 5911.3 10676.7 691.1 4595.8 967.5 26.9 9.3 3.8 3.8 42.3 33.8
3 5917.4 10687.9 691.9 4566.4 955.1 26.9 9.3 3.8 3.8 42.3 33.8
8 9117.8 13900.9 359.7 632.1 536.4 29.1 44.7 2.2 2.2 39.4 31.6
"""
_COLUMNS = ("forward", "backward", "bubble", "dp", "pp", "gpu", "activations", "gradients",
            "parameters", "throughput", "mfu")  # fmt: skip


def _rows() -> tuple[Row, ...]:
    found = []
    for number, line in enumerate(_TEXT.split("\n")[1:-1]):
        chunks, *values = line.split()
        model, batch, ranks, replicas, gpus, peak = _GROUPS[number // 4]
        numbers = dict(zip(_COLUMNS, map(Fraction, values), strict=True))
        found.append(Row(model=model, B=batch, P=ranks, D=replicas, gpus=gpus, peak=peak,
                         system=SYSTEMS[number % 4], M=int(chunks), **numbers))  # fmt: skip
    return tuple(found)


TABLE = _rows()


GIB = 1 << 30
ROUNDED = "the printed numbers are rounded, by less than it allows"


LAYERS = {GPT3: 72, LLAMA2: 80, FALCON: 96}
TOKENS = {GPT3: 3072, LLAMA2: 4096, FALCON: 3072}
HIDDEN = 8192
ALL = domain("all 16 rows of Table IV", row=range(16))
OF = {name: domain(f"the rows of {name}", row=range(i, 16, 4)) for i, name in enumerate(SYSTEMS)}
NOT_FOLD3D = domain("the rows of all but Fold3D", row=[r for r in range(16) if r % 4 != 3])
# Falcon's row: 24 microbatches on 4 ranks of 8 chunks of 3 layers, in two operations of q = 12.
FALCON_MESH = {"p": 4, "v": 8, "m": 24, "e": 12, "d": 12}
ONE = case("one case", case=1)


def row(at: Params) -> Row:
    return TABLE[at["row"]]


def rank_parameters(at: Params) -> Fraction:
    """Billions (2^30) of parameters of a rank: half of its linear FLOPs per token, in h^2."""
    of = row(at)
    return LAYERS[of.model] * flops(of.model) / 2 * HIDDEN**2 / (8 * of.P) / GIB


def layer_gib(model: str, coefficient: Fraction) -> Fraction:
    """GiB of a layer's activations of one sample on one of 8 tensor-parallel GPUs."""
    return coefficient * TOKENS[model] * HIDDEN / 8 / GIB


def model_flops(at: Params) -> Fraction:
    """Tera floating-point operations of an iteration on one GPU: forward and twice as much."""
    of = row(at)
    tokens = TOKENS[of.model]
    layer = flops(of.model) * tokens * HIDDEN**2 + 4 * tokens**2 * HIDDEN
    return 3 * LAYERS[of.model] * layer * of.B / of.gpus / 10**12


def throughput(units_per_second: int) -> Exact:
    """TFLOPS if the table's times have that many units in a second."""
    return lambda at: model_flops(at) * units_per_second / row(at).total


def megatron_gib(at: Params) -> Fraction:
    """The peak of activations that Megatron's schedule has on its first stage."""
    of = row(at)
    at = {"p": of.P, "v": of.M, "m": of.B // of.D}
    plain = measures("1f1b", at).peak_activations[0]
    units = depth_first_peak(at) if of.M > 1 else plain
    layers = Fraction(LAYERS[of.model], of.P * of.M)
    return units * layers * layer_gib(of.model, BYTES[of.model])


def fold3d_gib(llama2: Fraction) -> Exact:
    """The peak of a breadth-first order, all M B; ``llama2`` sbh bytes are a layer of Llama2's."""

    def gib(at: Params) -> Fraction:
        of = row(at)
        own = llama2 if of.model == LLAMA2 else BYTES[of.model]
        shape = {"p": of.P, "v": of.M, "m": of.B // of.D}
        return (
            max(measures("bfs", shape).peak_activations)
            * Fraction(LAYERS[of.model], of.P * of.M)
            * layer_gib(of.model, own)
        )

    return gib


def _mfu_slack(at: Params) -> Fraction:
    """Half a last decimal of the MFU and of the throughput, in per cent."""
    return Fraction(1, 20) + Fraction(5, row(at).peak)


_TIMES = (
    stated("pipemesh.tab4.gpus", "Table IV", "T P D is the number of GPUs.", "GPUs",
           lambda at: 8 * row(at).P * row(at).D, "==", lambda at: row(at).gpus, ALL),
    stated("pipemesh.tab4.bubble", "Table IV",
           "T_bubble is (P-1)/(M B) of the computation (to one last decimal).", "time off",
           lambda at: abs(row(at).compute * Fraction(row(at).P - 1, row(at).passes) -
           row(at).bubble), "<=", "0.1", ALL, slack=ROUNDED),
    stated("pipemesh.tab4.messages", "Table IV and §IV-A",
           "C_PP = T_PP / 2(P-1) is below C_fwd = T_fwd / (M B), as the planner demands.",
           "C_PP of PipeMesh", lambda at: row(at).pp / (2 * row(at).P - 2), "<=",
           lambda at: row(at).forward / row(at).passes, OF["PipeMesh"], "tab4.messages-above"),
    stated("pipemesh.tab4.messages-above",
           "Table IV, corrected: the critical PP communication is more than that of the first and "
           "last pass", "T_PP / 2(P-1) is at least 1.6 C_fwd.", "T_PP / 2(P-1) of PipeMesh",
           lambda at: row(at).pp / (2 * row(at).P - 2), ">=",
           lambda at: Fraction(8, 5) * row(at).forward / row(at).passes, OF["PipeMesh"],
           slack="rounded down"),
    stated("pipemesh.tab4.unit", "Table IV",
           "In microseconds, the table's unit, T_iter gives the throughput within 5 %.",
           "share off", lambda at: abs(throughput(10**6)(at) / row(at).throughput - 1), "<=",
           "1/20", ALL, "tab4.unit-ms"),
    stated("pipemesh.tab4.unit-ms", "Table IV, corrected: milliseconds",
           "In milliseconds T_iter gives the throughput within 5 %.", "share off",
           lambda at: abs(throughput(10**3)(at) / row(at).throughput - 1), "<=", "1/20", ALL,
           slack="a round number"),
    stated("pipemesh.tab4.mfu", "Table IV", "MFU is throughput over the GPU's peak.",
           "per cent off, both rounded",
           lambda at: abs(row(at).mfu - 100 * row(at).throughput / row(at).peak), "<=", _mfu_slack,
           ALL, "tab4.mfu-346"),
    stated("pipemesh.tab4.mfu-346", "Table IV, corrected: Megatron's 34.8 on Llama2 is 34.6",
           "MFU is throughput over the GPU's peak with 34.6 for that 34.8.",
           "per cent off, both rounded",
           lambda at: abs(row(at).mfu - 100 * (Fraction("34.6") if at["row"] == 9 else
           row(at).throughput) / row(at).peak), "<=", _mfu_slack, ALL, slack=ROUNDED),
    stated("pipemesh.sec1.days", "§I",
           "302 463 and 226 508 GPU days are as the throughputs of Megatron and PipeMesh on "
           "Llama2, 34.8 and 46.2.", "TFLOPS of Megatron",
           lambda _: Fraction("46.2") * Fraction(226508, 302463), "~1", "34.8", ONE,
           "sec1.days-346"),
    stated("pipemesh.sec1.days-346", "§I, corrected: with 34.6 for Megatron's 34.8",
           "302 463 and 226 508 GPU days are as the throughputs 34.6 and 46.2.",
           "TFLOPS of Megatron", lambda _: Fraction("46.2") * Fraction(226508, 302463), "~1",
           "34.6", ONE),
    stated("pipemesh.sec6A.a100", "§VI-A", "On A100 PipeMesh is 20.1 % faster than Megatron.",
           "per cent", lambda _: 100 * (TABLE[0].throughput / TABLE[1].throughput - 1), "~1",
           "20.1", ONE),
    stated("pipemesh.sec6A.dp", "§VI-A",
           "On A100 PipeMesh cuts critical DP communication by 75.3 %.", "per cent",
           lambda _: 100 * (1 - TABLE[0].dp / TABLE[1].dp), "~1", "75.3", ONE),
    stated("pipemesh.sec2C.dp", "§II-C",
           "On A100 Megatron's critical DP communication is 25.1 % of its computation.", "per cent",
           lambda _: 100 * TABLE[1].dp / TABLE[1].compute, "~1", "25.1", ONE, "sec2C.dp-250"),
    stated("pipemesh.sec2C.dp-250", "§II-C, corrected by Table IV",
           "On A100 Megatron's critical DP communication is 25.0 % of its computation.", "per cent",
           lambda _: 100 * TABLE[1].dp / TABLE[1].compute, "~1", "25.0", ONE),
)  # fmt: skip
_MEMORY = (
    stated("pipemesh.tab4.megatron-states", "Table IV", "Megatron's gradients take 2 psi bytes.",
           "GiB", lambda at: 2 * rank_parameters(at), "~1", lambda at: row(at).gradients,
           OF["Megatron"]),
    stated("pipemesh.tab4.same-states", "Table IV",
           "Megatron's parameters take what its gradients take.", "GiB",
           lambda at: row(at).parameters, "==", lambda at: row(at).gradients, OF["Megatron"]),
    stated("pipemesh.tab4.fold3d-gradients", "Table IV and §II-B",
           "Fold3D's gradients take (2/D + 4/M) psi bytes (to 0.06 GiB).", "GiB off",
           lambda at: abs(row(at).gradients - rank_parameters(at) * (Fraction(2, row(at).D) +
           Fraction(4, row(at).M))), "<=", "0.06", OF["Fold3D"], slack=ROUNDED),
    stated("pipemesh.tab4.same-gradients", "Table IV and §IV-A",
           "With psi_g = psi PipeMesh's gradients take what Fold3D's take.", "GiB",
           lambda at: row(at).gradients, "==", lambda at: TABLE[at["row"] + 3].gradients,
           OF["PipeMesh"]),
    stated("pipemesh.tab4.parts", "Table IV", "M_o, M_a, M_g and M_p fit M_GPU.", "sum in GiB",
           lambda at: 12 * rank_parameters(at) / row(at).D + row(at).activations +
           row(at).gradients + row(at).parameters, "<=", lambda at: row(at).gpu, NOT_FOLD3D,
           slack="M_GPU holds 2.1 to 2.6 GiB besides"),
    stated("pipemesh.tab4.megatron-activations", "Table IV and §II",
           "Megatron's M_a is the peak of its schedule times a layer's bytes (on one chunk 1F1B's "
           "P).", "GiB", megatron_gib, "~1", lambda at: row(at).activations, OF["Megatron"]),
    stated("pipemesh.tab4.fold3d-activations", "Table IV and §II-B",
           "Fold3D's M_a is M B chunks with 203/6 sbh for Llama2.", "GiB",
           fold3d_gib(BYTES[LLAMA2]), "~1", lambda at: row(at).activations, OF["Fold3D"],
           "tab4.fold3d-activations-34"),
    stated("pipemesh.tab4.fold3d-activations-34", "Table IV, corrected: its Llama2 has 34 sbh",
           "Fold3D's M_a is M B chunks with 34 sbh for Llama2.", "GiB", fold3d_gib(BYTES[GPT3]),
           "~1", lambda at: row(at).activations, OF["Fold3D"]),
    stated("pipemesh.sec6A.falcon", "§VI-A", "A layer of Falcon takes 79.5 MB in Megatron.", "MiB",
           lambda _: 1024 * layer_gib(FALCON, BYTES[FALCON]), "==", "79.5", ONE),
    stated("pipemesh.sec6A.falcon-mesh", "§VI-A and Table IV",
           "With 43.5 MB a layer and q = 12, PipeMesh's M_a on Falcon is 11.6 GB.", "GiB",
           lambda _: max(measured(FALCON_MESH).peak_activations) * 3 * Fraction("43.5") / 1024,
           "~1", "11.6", ONE),
    stated("pipemesh.sec6A.falcon-sample", "§VI-A",
           "A microbatch of Falcon takes 1.86 GB per device.", "GiB",
           lambda _: Fraction(96, 4) * layer_gib(FALCON, BYTES[FALCON]), "~2", "1.86", ONE),
    stated("pipemesh.sec6A.llama2-sample", "§VI-A and §II-B",
           "A microbatch of Llama2 takes 2.66 GB per device.", "GiB",
           lambda _: Fraction(80, 4) * layer_gib(LLAMA2, BYTES[LLAMA2]), "~2", "2.66", ONE,
           "sec6A.llama2-sample-34"),
    stated("pipemesh.sec6A.llama2-sample-34", "§VI-A, corrected: that is GPT-3's 34 sbh",
           "With 34 sbh a layer a microbatch of Llama2 takes 2.66 GB per device.", "GiB",
           lambda _: 20 * layer_gib(LLAMA2, BYTES[GPT3]), "~2", "2.66", ONE),
)  # fmt: skip
_OTHER = (
    missing("pipemesh.sec4A.gap", "§IV-A",
            "Iterations take 5.1 % to 7.2 % more than the lower bound.",
            "C_comp without recomputation and contention, and T_PP and C_DP apart from what "
            "Table IV reports on the critical path"),
    missing("pipemesh.sec6A.overlap", "§VI-A",
            "On A100 Megatron overlaps 31.3 % and PipeMesh 82.5 % of DP communication.",
            "all DP communication of each: one total cannot give both, 993.6 / 0.687 is not "
            "245.1 / 0.175"),
)  # fmt: skip


QUEUES = domain(
    "PipeMesh's rows of Table IV with their buffer queue sizes",
    row_q=((0, 6), (8, 8), (4, 12), (12, 12)),
)


def microbatches(at: Params) -> Fraction:
    """n, from a row's times."""
    of = row(at)
    return (of.P - 1) * of.compute / (of.M * of.bubble)


def operations(at: Params, total: int) -> int:
    """How many enqueue operations the planner makes of ``total`` microbatches (section IV-B)."""
    return len(forms.planned_enqueues(at["q"], total))


BATCHES: tuple[Claim, ...] = (
    stated("pipemesh.sec6.batch", "Table IV and §IV",
           "Table IV's B is the B of section IV, the microbatches per pipeline.",
           "microbatches that a row's times tell", microbatches, "~0", lambda at: row(at).B, ALL,
           "sec6.replicas"),
    stated("pipemesh.sec6.accumulation", "§VI",
           "A device accumulates gradients of B/P microbatches.",
           "microbatches that a row's times tell", microbatches, "~0",
           lambda at: Fraction(row(at).B, row(at).P), ALL, "sec6.replicas"),
    stated("pipemesh.sec6.replicas", "§VI, corrected: B/P is a misprint",
           "A device accumulates gradients of B/D microbatches, B that of Table IV.",
           "microbatches that a row's times tell", microbatches, "~0",
           lambda at: Fraction(row(at).B, row(at).D), ALL),
    stated("pipemesh.sec6A.two", "§VI-A, with B/D microbatches",
           "The enqueue sequences of Table IV contain two elements.",
           "enqueue operations of the planner", lambda at: operations(at, row(at).B // row(at).D),
           "==", "2", QUEUES),
    stated("pipemesh.sec6A.two-batch", "§VI-A, with Table IV's B",
           "They contain two elements if B is the number of microbatches.",
           "enqueue operations of the planner", lambda at: operations(at, row(at).B), "==", "2",
           QUEUES, "sec6A.two"),
)  # fmt: skip


CLAIMS: tuple[Claim, ...] = (*_TIMES, *_MEMORY, *_OTHER)
