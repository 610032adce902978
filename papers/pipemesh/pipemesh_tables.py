"""PipeMesh's Table IV: its numbers, and what schedules and layers make of them.

A row of Table IV is a case ``row`` 0 to 15, in the order printed. Times are in the table's unit,
memory in GiB (which the table writes GB: only so do its model states come out), throughput in
TFLOPS and MFU in per cent. The printed numbers are rounded, so relations between them are asked
only to the rounding. Where numbers of the paper exclude each other is in ``pipemesh_evaluation``.

B means two things. Section IV counts B microbatches per pipeline, Table IV prints the batch size
per iteration under the same letter, and section VI accumulates gradients of B/P microbatches per
device. With microbatches of 1 (section VI) and D replicas a pipeline runs B/D of Table IV's B, so
B/P is a misprint for B/D; at P = D, the table's first four rows, the two agree. How many a pipeline
ran is asked of the table itself: T_bubble is P-1 of the M n passes that the computation takes
(tab4.bubble), n = (P-1) T_comp / (M T_bubble). ``q`` is PipeMesh's buffer queue size.

Source: Li et al., "PipeMesh" (TPDS 2025) sections II, IV and VI, Table IV.
"""

from __future__ import annotations

from fractions import Fraction
from typing import cast

from bubbleproof.papers.claims.claim import PaperClaim, read_as, reading, stated
from bubbleproof.papers.claims.domain import Params, case, domain
from bubbleproof.papers.claims.measured_pipelines import measures
from bubbleproof.papers.claims.reading import UP_TO, Exact, NumberOf
from bubbleproof.papers.formula import Formula
from bubbleproof.papers.pipemesh import pipemesh_formulas as forms
from bubbleproof.papers.pipemesh.pipemesh_memory import (
    BYTES,
    FALCON,
    GPT3,
    LLAMA2,
    LLAMA2_BYTES,
    flops,
)
from bubbleproof.papers.pipemesh.pipemesh_schedules import (
    depth_first_peak,
    measured,
    runs_literally,
)

MODELS = (GPT3, GPT3, LLAMA2, FALCON)  # of four rows each, with the row's
# Batch and parallel sizes (T is 8 throughout), a GPU's TFLOPS.
_GROUP = ("B", "P", "D", "gpus", "peak")
_GROUPS = ((36, 3, 3, 72, 312), (72, 4, 3, 96, 125), (48, 4, 3, 96, 125), (72, 4, 3, 96, 125))
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
_COLUMNS = (
    "M",
    "forward",
    "backward",
    "bubble",
    "dp",
    "pp",
    "gpu",
    "activations",
    "gradients",
    "parameters",
    "throughput",
    "mfu",
)


GIB = 1 << 30
LAYERS = {GPT3: 72, LLAMA2: 80, FALCON: 96}
TOKENS = {GPT3: 3072, LLAMA2: 4096, FALCON: 3072}
HIDDEN = 8192


def _row(number: int, line: str) -> dict[str, Fraction]:
    """A row's columns, and what follows from them.

    ``passes`` are the M B of a rank, since D replicas share the batch; ``psi`` are its billions
    (2^30) of parameters, half of its linear FLOPs per token, in h^2.
    """
    model = MODELS[number // 4]
    found = dict(zip(_COLUMNS, map(Fraction, line.split()), strict=True))
    found |= dict(zip(_GROUP, map(Fraction, _GROUPS[number // 4]), strict=True))
    found["passes"] = found["M"] * found["B"] / found["D"]
    found["compute"] = found["forward"] + found["backward"]
    found["total"] = found["compute"] + found["bubble"] + found["dp"] + found["pp"]  # Eq. 1
    found["psi"] = LAYERS[model] * flops(model) / 2 * HIDDEN**2 / (8 * found["P"]) / GIB
    return {**found, "row": Fraction(number)}


TABLE = tuple(_row(number, line) for number, line in enumerate(_TEXT.split("\n")[1:-1]))


ROUNDED = "the printed numbers are rounded, by less than it allows"


ALL = domain("all 16 rows of Table IV", row=range(16))
OF = {name: domain(f"the rows of {name}", row=range(i, 16, 4)) for i, name in enumerate(SYSTEMS)}
NOT_FOLD3D = domain("the rows of all but Fold3D", row=[r for r in range(16) if r % 4 != 3])
# Falcon's row: 24 microbatches on 4 ranks of 8 chunks of 3 layers, in two operations of q = 12.
FALCON_MESH = {"p": 4, "v": 8, "m": 24, "e": 12, "d": 12}
ONE = case("one case", case=1)


def printed(text: str) -> Exact:
    """A formula of the columns of a case's row."""
    formula = Formula(text)
    return lambda at: cast("Fraction", formula(TABLE[at["row"]]))


def model(at: Params) -> str:
    return MODELS[at["row"] // 4]


def layer_gib(model: str, coefficient: Fraction) -> Fraction:
    """GiB of a layer's activations of one sample on one of 8 tensor-parallel GPUs."""
    return coefficient * TOKENS[model] * HIDDEN / 8 / GIB


def model_flops(at: Params) -> Fraction:
    """Tera floating-point operations of an iteration on one GPU: forward and twice as much."""
    of = model(at)
    layer = flops(of) * TOKENS[of] * HIDDEN**2 + 4 * TOKENS[of] ** 2 * HIDDEN
    return 3 * LAYERS[of] * layer * printed("B/gpus")(at) / 10**12


def peak_gib(units: int, at: Params, coefficient: Fraction) -> Fraction:
    """GiB of so many activations of a chunk; ``coefficient`` sbh bytes are a layer's."""
    of = model(at)
    return units * LAYERS[of] * printed("1/(P*M)")(at) * layer_gib(of, coefficient)


def _shape(at: Params) -> dict[str, int]:
    row = TABLE[at["row"]]
    return {"p": int(row["P"]), "v": int(row["M"]), "m": int(row["B"] / row["D"])}


def megatron_gib(at: Params) -> Fraction:
    """The peak of activations that Megatron's schedule has on its first stage."""
    shape = _shape(at)
    plain = measures("1f1b", shape).peak_activations[0]
    units = depth_first_peak(shape) if shape["v"] > 1 else plain
    return peak_gib(units, at, BYTES[model(at)])


def fold3d_gib(llama2: Fraction) -> Exact:
    """The peak of a breadth-first order, all M B; ``llama2`` sbh bytes are a layer of Llama2's."""

    def gib(at: Params) -> Fraction:
        own = llama2 if model(at) == LLAMA2 else BYTES[model(at)]
        return peak_gib(max(measures("bfs", _shape(at)).peak_activations), at, own)

    return gib


SHARDED = domain(
    "PipeMesh's rows of Table IV on V100 with section VI-A's shares of ZeRO-3, in thousandths",
    row_share=((4, 844), (8, 909), (12, 869)),
)
QUEUES = domain(
    "PipeMesh's rows of Table IV with their buffer queue sizes",
    row_q=((0, 6), (8, 8), (4, 12), (12, 12)),
)


microbatches = printed("(P-1)*compute/(M*bubble)")  # n, from a row's times


def halves(at: Params) -> dict[str, int]:
    """Two operations of half of a row's microbatches each: q of them."""
    shape = _shape(at)
    return {**shape, "e": at["q"], "d": at["q"], "R": 2, "S": 2}


def by_throughput(at: Params, units_per_second: int) -> Fraction:
    """T_iter as the throughput tells it, over the sum of the table's times."""
    return model_flops(at) * units_per_second / printed("total*throughput")(at)


def operations(total: str) -> NumberOf:
    """How many enqueue operations the planner makes of ``total`` microbatches (section IV-B)."""
    return lambda at: len(forms.planned_enqueues(at["q"], int(printed(total)(at))))


def parameter_gib(*, own_shard: bool = True) -> Exact:
    """M_p with a row's printed share of ZeRO-3 parameters, in thousandths."""

    def gib(at: Params) -> Fraction:
        row, share = TABLE[at["row"]], Fraction(at["share"], 1000)
        each = forms.parameter_bytes(int(row["M"]), int(row["D"]), share, own_shard=own_shard)
        return each * row["psi"]

    return gib


_TIMES = (
    stated("pipemesh.tab4.gpus", "Table IV", "T P D is the number of GPUs.", "GPUs",
           printed("8*P*D"), "==", printed("gpus"), ALL),
    stated("pipemesh.tab4.bubble", "Table IV and §IV-A",
           "T_bubble is (P-1)/(M B) of the computation (to one last decimal).", "time off",
           printed("abs(compute*(P-1)/passes - bubble)"), "<=", "0.1", ALL, slack=ROUNDED),
    stated("pipemesh.tab4.unit-ms", "ours, for PipeMesh Table IV: milliseconds",
           "In milliseconds T_iter is what the throughput gives, within 5 %.",
           "T_iter by the throughput over the printed one",
           lambda at: by_throughput(at, 10**3), "~1", 1, ALL),
    read_as("pipemesh.sec6.batch", "Table IV and §VI",
            "Table IV's B is the batch of an iteration, of which a pipeline runs B/D microbatches.",
            "microbatches that a row's times tell", [
                reading("of an iteration, over D replicas", "Table IV's caption: per iteration",
                        microbatches, "~0", printed("B/D"), ALL),
                reading("of a pipeline", "§IV's letter B", microbatches, "~0", printed("B"), ALL,
                        is_contrast=True),
            ]),
    read_as("pipemesh.sec6A.two", "§VI-A",
            "The enqueue sequences of Table IV contain two elements.",
            "enqueue operations of the planner", [
                reading("of B/D microbatches", "Table IV's caption: B per iteration",
                        operations("B/D"), "==", "2", QUEUES),
                reading("of B microbatches", "§IV's letter B", operations("B"), "==", "2", QUEUES,
                        is_contrast=True),
            ]),
    stated("pipemesh.sec6A.ends", "§VI-A and Algorithm 1 as printed",
           "On the sequences of Table IV's configurations the executor's program ends.",
           "1 where it ends", lambda at: runs_literally(halves(at)), "==", 1, QUEUES),
)  # fmt: skip
_MEMORY = (
    stated("pipemesh.tab4.megatron-states", "Table IV", "Megatron's gradients take 2 psi bytes.",
           "GiB", printed("2*psi"), "~1", printed("gradients"), OF["Megatron"]),
    stated("pipemesh.tab4.same-states", "Table IV",
           "Megatron's parameters take what its gradients take.", "GiB", printed("parameters"),
           "==", printed("gradients"), OF["Megatron"]),
    stated("pipemesh.tab4.fold3d-gradients", "Table IV and §II-B",
           "Fold3D's gradients take (2/D + 4/M) psi bytes (to 0.06 GiB).", "GiB off",
           printed("abs(gradients - psi*(2/D + 4/M))"), "<=", "0.06", OF["Fold3D"], slack=ROUNDED),
    stated("pipemesh.tab4.same-gradients", "Table IV and §IV-A",
           "With psi_g = psi PipeMesh's gradients take what Fold3D's take.", "GiB",
           printed("gradients"), "==", lambda at: TABLE[at["row"] + 3]["gradients"],
           OF["PipeMesh"]),
    stated("pipemesh.tab4.parts", "Table IV", "M_o, M_a, M_g and M_p fit M_GPU.", "sum in GiB",
           printed("12*psi/D + activations + gradients + parameters"), "<=", printed("gpu"),
           NOT_FOLD3D, slack="M_GPU holds 2.1 to 2.6 GiB besides"),
    stated("pipemesh.tab4.megatron-activations", "Table IV and §II",
           "Megatron's M_a is the peak of its schedule times a layer's bytes (on one chunk 1F1B's "
           "P).", "GiB", megatron_gib, "~1", printed("activations"), OF["Megatron"]),
    read_as("pipemesh.tab4.fold3d-activations", "Table IV and §II-B",
            "Fold3D's M_a is M B chunks of activations.", "GiB", [
                reading("Llama2's 8/3 h in multiples of 256", "Table III's h = 8192 has no 8/3: "
                        "Llama rounds 21845.3 up to 22016", fold3d_gib(LLAMA2_BYTES), "~1",
                        printed("activations"), OF["Fold3D"]),
                reading("Llama2's 8/3 h as a fraction", "§II-B: 203/6 sbh",
                        fold3d_gib(BYTES[LLAMA2]), "~1", printed("activations"), OF["Fold3D"]),
            ]),
    read_as("pipemesh.tab4.parameters", "Table IV, §IV-A and §VI-A",
            "PipeMesh's M_p is 2(psi - psi_p) + (2/D + 8/M) psi_p with 84.4, 90.9 and 86.9 % of "
            "psi.", "GiB", [
                reading("up to that", "§IV-A: allocates up to", printed("parameters"), "<=",
                        parameter_gib(), SHARDED, [UP_TO],
                        "Table IV has 2.7 or 2.8 of 3.3 to 3.6: the gathered have no own shard"),
                reading("just that", "§IV-A without its up to, as Table IV's M_g is",
                        parameter_gib(), "~1", printed("parameters"), SHARDED),
                reading("without a device's own shard", "8/M (1 - 1/D), nowhere printed",
                        parameter_gib(own_shard=False), "~1", printed("parameters"), SHARDED,
                        is_contrast=True),
            ]),
    stated("pipemesh.sec6A.falcon", "§VI-A", "A layer of Falcon takes 79.5 MB in Megatron.", "MiB",
           lambda _: 1024 * layer_gib(FALCON, BYTES[FALCON]), "==", "79.5", ONE),
    stated("pipemesh.sec6A.falcon-mesh", "§VI-A and Table IV",
           "With 43.5 MB a layer and q = 12, PipeMesh's M_a on Falcon is 11.6 GB.", "GiB",
           lambda _: max(measured(FALCON_MESH).peak_activations) * 3 * Fraction("43.5") / 1024,
           "~1", "11.6", ONE),
    stated("pipemesh.sec6A.falcon-sample", "§VI-A",
           "A microbatch of Falcon takes 1.86 GB per device.", "GiB",
           lambda _: Fraction(96, 4) * layer_gib(FALCON, BYTES[FALCON]), "~2", "1.86", ONE),
    read_as("pipemesh.sec6A.llama2-sample", "§VI-A and §II-B",
            "A microbatch of Llama2 takes 2.66 GB per device.", "GiB", [
                reading("8/3 h in multiples of 256", "Table III's h = 8192 has no 8/3: Llama "
                        "rounds 21845.3 up to 22016",
                        lambda _: 20 * layer_gib(LLAMA2, LLAMA2_BYTES), "~2", "2.66", ONE),
                reading("8/3 h as a fraction", "§II-B: 203/6 sbh",
                        lambda _: 20 * layer_gib(LLAMA2, BYTES[LLAMA2]), "~2", "2.66", ONE),
            ]),
    stated("pipemesh.sec6A.states-less", "§VI-A",
           "On V100 PipeMesh's model states of GPT-3 take 1.8 GB less than Megatron's.", "GB",
           lambda _: TABLE[5]["gradients"] + TABLE[5]["parameters"] - TABLE[4]["gradients"]
           - TABLE[4]["parameters"], "==", "1.8", ONE),
    stated("pipemesh.sec6A.activations-more", "§VI-A",
           "On V100 PipeMesh's activations of GPT-3 take 1.5 GB more than Megatron's.", "GB",
           lambda _: TABLE[4]["activations"] - TABLE[5]["activations"], "==", "1.5", ONE),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (*_TIMES, *_MEMORY)
