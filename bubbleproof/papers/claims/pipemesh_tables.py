"""PipeMesh's claims on numbers: what Tables III to VI must satisfy among themselves.

A row of Table IV is a case ``row`` 0 to 15, in the order printed. Times are in the table's unit,
memory in GiB (which the table writes GB: only so do its model states come out). The printed numbers
are rounded, so relations between them are asked only to the rounding.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.claim import Claim, Params, grid
from bubbleproof.papers.claims.field_schedules import measures
from bubbleproof.papers.claims.pipemesh_memory import BYTES, FALCON, GPT3, LLAMA2, flops
from bubbleproof.papers.claims.pipemesh_schedules import depth_first_peak, measured
from bubbleproof.papers.claims.pipemesh_table4 import SYSTEMS, TABLE, Row
from bubbleproof.papers.claims.tpipe_statement import Number, missing, printed, stated

GIB = 1 << 30
ROUNDED = "the printed numbers are rounded, by less than it allows"


LAYERS = {GPT3: 72, LLAMA2: 80, FALCON: 96}
TOKENS = {GPT3: 3072, LLAMA2: 4096, FALCON: 3072}
HIDDEN = 8192
ALL = grid("all 16 rows of Table IV", row=range(16))
OF = {name: grid(f"the rows of {name}", row=range(i, 16, 4)) for i, name in enumerate(SYSTEMS)}
NOT_FOLD3D = grid("the rows of all but Fold3D", row=[r for r in range(16) if r % 4 != 3])
# Falcon's row: 24 microbatches on 4 ranks of 8 chunks of 3 layers, in two operations of q = 12.
FALCON_MESH = {"p": 4, "v": 8, "m": 24, "e": 12, "d": 12}
ONE = grid("one case", case=(1,))


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


def throughput(units_per_second: int) -> Number:
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


def fold3d_gib(llama2: Fraction) -> Number:
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
           lambda at: row(at).gpus, "==", lambda at: 8 * row(at).P * row(at).D, ALL),
    stated("pipemesh.tab4.bubble", "Table IV", "T_bubble is (P-1)/(M B) of the computation (to "
           "one last decimal).", "time off", printed("0.1"), "<=",
           lambda at: abs(row(at).compute * Fraction(row(at).P - 1, row(at).passes)
                          - row(at).bubble), ALL, slack=ROUNDED),
    stated("pipemesh.tab4.messages", "Table IV and §IV-A", "C_PP = T_PP / 2(P-1) is below C_fwd = "
           "T_fwd / (M B), as the planner demands.", "C_PP of PipeMesh",
           lambda at: row(at).forward / row(at).passes, "<=",
           lambda at: row(at).pp / (2 * row(at).P - 2), OF["PipeMesh"], "tab4.messages-above"),
    stated("pipemesh.tab4.messages-above", "Table IV, corrected: the critical PP communication is "
           "more than that of the first and last pass", "T_PP / 2(P-1) is at least 1.6 C_fwd.",
           "T_PP / 2(P-1) of PipeMesh",
           lambda at: Fraction(8, 5) * row(at).forward / row(at).passes, ">=",
           lambda at: row(at).pp / (2 * row(at).P - 2), OF["PipeMesh"], slack="rounded down"),
    stated("pipemesh.tab4.unit", "Table IV", "In microseconds, the table's unit, T_iter gives the "
           "throughput within 5 %.", "share off", printed("1/20"), "<=",
           lambda at: abs(throughput(10**6)(at) / row(at).throughput - 1), ALL, "tab4.unit-ms"),
    stated("pipemesh.tab4.unit-ms", "Table IV, corrected: milliseconds",
           "In milliseconds T_iter gives the throughput within 5 %.", "share off",
           printed("1/20"), "<=",
           lambda at: abs(throughput(10**3)(at) / row(at).throughput - 1), ALL,
           slack="a round number"),
    stated("pipemesh.tab4.mfu", "Table IV", "MFU is throughput over the GPU's peak.",
           "per cent off, both rounded", _mfu_slack, "<=",
           lambda at: abs(row(at).mfu - 100 * row(at).throughput / row(at).peak), ALL,
           "tab4.mfu-346"),
    stated("pipemesh.tab4.mfu-346", "Table IV, corrected: Megatron's 34.8 on Llama2 is 34.6",
           "MFU is throughput over the GPU's peak with 34.6 for that 34.8.",
           "per cent off, both rounded", _mfu_slack, "<=",
           lambda at: abs(row(at).mfu - 100 * (Fraction("34.6") if at["row"] == 9
                                               else row(at).throughput) / row(at).peak), ALL,
           slack=ROUNDED),
    stated("pipemesh.sec1.days", "§I", "302 463 and 226 508 GPU days are as the throughputs of "
           "Megatron and PipeMesh on Llama2, 34.8 and 46.2.", "TFLOPS of Megatron",
           printed("34.8"), "~1", lambda _: Fraction("46.2") * Fraction(226508, 302463), ONE,
           "sec1.days-346"),
    stated("pipemesh.sec1.days-346", "§I, corrected: with 34.6 for Megatron's 34.8",
           "302 463 and 226 508 GPU days are as the throughputs 34.6 and 46.2.",
           "TFLOPS of Megatron", printed("34.6"), "~1",
           lambda _: Fraction("46.2") * Fraction(226508, 302463), ONE),
    stated("pipemesh.sec6A.a100", "§VI-A", "On A100 PipeMesh is 20.1 % faster than Megatron.",
           "per cent", printed("20.1"), "~1",
           lambda _: 100 * (TABLE[0].throughput / TABLE[1].throughput - 1), ONE),
    stated("pipemesh.sec6A.dp", "§VI-A", "On A100 PipeMesh cuts critical DP communication by "
           "75.3 %.", "per cent", printed("75.3"), "~1",
           lambda _: 100 * (1 - TABLE[0].dp / TABLE[1].dp), ONE),
    stated("pipemesh.sec2C.dp", "§II-C", "On A100 Megatron's critical DP communication is 25.1 % "
           "of its computation.", "per cent", printed("25.1"), "~1",
           lambda _: 100 * TABLE[1].dp / TABLE[1].compute, ONE, "sec2C.dp-250"),
    stated("pipemesh.sec2C.dp-250", "§II-C, corrected by Table IV",
           "On A100 Megatron's critical DP communication is 25.0 % of its computation.",
           "per cent", printed("25.0"), "~1",
           lambda _: 100 * TABLE[1].dp / TABLE[1].compute, ONE),
)  # fmt: skip
_MEMORY = (
    stated("pipemesh.tab4.megatron-states", "Table IV", "Megatron's gradients take 2 psi bytes.",
           "GiB", lambda at: row(at).gradients, "~1", lambda at: 2 * rank_parameters(at),
           OF["Megatron"]),
    stated("pipemesh.tab4.same-states", "Table IV", "Megatron's parameters take what its gradients "
           "take.", "GiB", lambda at: row(at).gradients, "==", lambda at: row(at).parameters,
           OF["Megatron"]),
    stated("pipemesh.tab4.fold3d-gradients", "Table IV and §II-B", "Fold3D's gradients take (2/D + "
           "4/M) psi bytes (to 0.06 GiB).", "GiB off", printed("0.06"), "<=",
           lambda at: abs(row(at).gradients - rank_parameters(at)
                          * (Fraction(2, row(at).D) + Fraction(4, row(at).M))), OF["Fold3D"],
           slack=ROUNDED),
    stated("pipemesh.tab4.same-gradients", "Table IV and §IV-A", "With psi_g = psi PipeMesh's "
           "gradients take what Fold3D's take.", "GiB", lambda at: TABLE[at["row"] + 3].gradients,
           "==", lambda at: row(at).gradients, OF["PipeMesh"]),
    stated("pipemesh.tab4.parts", "Table IV", "M_o, M_a, M_g and M_p fit M_GPU.", "sum in GiB",
           lambda at: row(at).gpu, "<=",
           lambda at: 12 * rank_parameters(at) / row(at).D + row(at).activations
           + row(at).gradients + row(at).parameters, NOT_FOLD3D,
           slack="M_GPU holds 2.1 to 2.6 GiB besides"),
    stated("pipemesh.tab4.megatron-activations", "Table IV and §II", "Megatron's M_a is the peak "
           "of its schedule times a layer's bytes (on one chunk 1F1B's P).", "GiB",
           lambda at: row(at).activations, "~1", megatron_gib, OF["Megatron"]),
    stated("pipemesh.tab4.fold3d-activations", "Table IV and §II-B", "Fold3D's M_a is M B chunks "
           "with 203/6 sbh for Llama2.", "GiB", lambda at: row(at).activations, "~1",
           fold3d_gib(BYTES[LLAMA2]), OF["Fold3D"], "tab4.fold3d-activations-34"),
    stated("pipemesh.tab4.fold3d-activations-34", "Table IV, corrected: its Llama2 has 34 sbh",
           "Fold3D's M_a is M B chunks with 34 sbh for Llama2.", "GiB",
           lambda at: row(at).activations, "~1", fold3d_gib(BYTES[GPT3]), OF["Fold3D"]),
    stated("pipemesh.sec6A.falcon", "§VI-A", "A layer of Falcon takes 79.5 MB in Megatron.", "MiB",
           printed("79.5"), "==", lambda _: 1024 * layer_gib(FALCON, BYTES[FALCON]), ONE),
    stated("pipemesh.sec6A.falcon-mesh", "§VI-A and Table IV", "With 43.5 MB a layer and q = 12, "
           "PipeMesh's M_a on Falcon is 11.6 GB.", "GiB", printed("11.6"), "~1",
           lambda _: max(measured(FALCON_MESH).peak_activations) * 3 * Fraction("43.5") / 1024,
           ONE),
    stated("pipemesh.sec6A.falcon-sample", "§VI-A", "A microbatch of Falcon takes 1.86 GB per "
           "device.", "GiB", printed("1.86"), "~2",
           lambda _: Fraction(96, 4) * layer_gib(FALCON, BYTES[FALCON]), ONE),
    stated("pipemesh.sec6A.llama2-sample", "§VI-A and §II-B", "A microbatch of Llama2 takes 2.66 "
           "GB per device.", "GiB", printed("2.66"), "~2",
           lambda _: Fraction(80, 4) * layer_gib(LLAMA2, BYTES[LLAMA2]), ONE,
           "sec6A.llama2-sample-34"),
    stated("pipemesh.sec6A.llama2-sample-34", "§VI-A, corrected: that is GPT-3's 34 sbh",
           "With 34 sbh a layer a microbatch of Llama2 takes 2.66 GB per device.", "GiB",
           printed("2.66"), "~2", lambda _: 20 * layer_gib(LLAMA2, BYTES[GPT3]), ONE),
)  # fmt: skip
_OTHER = (
    missing("pipemesh.sec4A.gap", "§IV-A", "Iterations take 5.1 % to 7.2 % more than the lower "
            "bound.", "C_comp without recomputation and contention, and T_PP and C_DP apart from "
            "what Table IV reports on the critical path"),
    missing("pipemesh.sec6A.overlap", "§VI-A", "On A100 Megatron overlaps 31.3 % and PipeMesh "
            "82.5 % of DP communication.", "all DP communication of each: one total cannot give "
            "both, 993.6 / 0.687 is not 245.1 / 0.175"),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (*_TIMES, *_MEMORY, *_OTHER)
