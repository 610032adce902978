"""BPipe's claims on bytes, bandwidth and tables: Eq. 4 to 12, Appendix B, sections 1, 2 and 4.

Symbols of Appendix B: L layers, H heads, h hidden size (Table 5 calls it D and the equations h),
l sequence length, b microbatch size, t tensor and p pipeline parallelism, f seconds of a forward.
Sizes are bytes of one rank's activations of one microbatch, b l h 16-bit numbers unless noted.

The second route to Eq. 4 to 6 is an inventory: what each operation of a transformer layer keeps for
its backward, tensor by tensor (Korthikanti et al., MLSys 2023, section 4). The tables are
measurements of the authors' cluster and taken as given; what follows from them is computed or,
where it is about a schedule, measured on one.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.bpipe.bpipe_schedules import (
    BPIPE,
    longest_free_transfer,
    makespan,
    makespan_1f1b,
)
from bubbleproof.papers.claims.claim import PaperClaim, missing, stated
from bubbleproof.papers.claims.domain import Params, case, domain
from bubbleproof.papers.claims.measured_pipelines import measures
from bubbleproof.papers.claims.reading import Exact
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.pipeline import Pipeline

SEQUENCE = 2048
GIGA = 10**9
MICROSECONDS = 10**6
GIB = 1 << 30

# Table 1: layers, hidden size, heads; Table 3: microseconds of a forward; Table 2 and section 4.4:
# pipeline, tensor, microbatch size.
GPT3_13B = {"L": 40, "h": 5120, "H": 40, "p": 8, "t": 1, "b": 1, "f": 36320}
GPT3_96B = {"L": 80, "h": 9984, "H": 104, "p": 8, "t": 4, "b": 2, "f": 143370}
GPT3_134B = {"L": 84, "h": 11520, "H": 120, "p": 12, "t": 4, "b": 2, "f": 126870}
MODELS = domain(
    "the configurations of Table 3: GPT-3 13B, 96B and 134B",
    L_h_H_p_t_b_f=(tuple(model.values()) for model in (GPT3_13B, GPT3_96B, GPT3_134B)),
)
ONE_13B = case("the printed configuration", **GPT3_13B)
ONE_96B = case("the printed configuration", **GPT3_96B)
ONE_134B = case("configuration (4)-mb2: a batch of 192, one replica", m=96, **GPT3_134B)
# Table 7, MFU in hundredths of a percent: Megatron-LM's fastest and slowest configuration and
# BPipe's, per model (billions of parameters).
MFU = {96: (4051, 2431, 5064), 134: (4140, 2401, 5206)}
BOTH = case("both models of Table 7 together", models=len(MFU))
# Tables 3 and 4: microseconds of a transfer, a forward and a backward; pipelines of section 4.4 and
# Table 2. With twice as many microbatches as ranks the steady phase has begun.
TIMES = domain(
    "the five rows of Tables 3 and 4, m = 2p",
    p_m_t_tF_tB=(
        (8, 16, 7630, 36320, 83570),  # 13B, attention recomputed
        (8, 16, 15630, 143370, 287900),  # 96B
        (12, 24, 12060, 126870, 256300),  # 134B
        (8, 16, 22480, 36320, 74120),  # 13B, nothing recomputed
        (8, 16, 580, 36320, 110330),  # 13B, layers recomputed
    ),
)

# Kept per layer, in bytes per (sequence x microbatch x hidden): masks take 1 byte, the rest 2.
_OUTSIDE_ATTENTION = {
    "input of the first layer norm": 2,
    "input of the query, key and value products": 2,
    "queries": 2,
    "keys": 2,
    "values": 2,
    "input of the attention's output product": 2,
    "dropout mask after the attention": 1,
    "input of the second layer norm": 2,
    "input of the first linear layer": 2,
    "input of the activation function (4h wide)": 8,
    "input of the second linear layer (4h wide)": 8,
    "dropout mask after the second linear layer": 1,
}
# Kept per layer, in bytes per (head x sequence x sequence x microbatch).
_ATTENTION = {"output of the softmax": 2, "its dropout mask": 1, "input of the value product": 2}


def inventory(recomputed: str) -> Exact:
    """Bytes that one rank keeps per microbatch; ``recomputed`` is none, attention or layer.

    A recomputed layer keeps its input alone, whole on every tensor-parallel rank.
    """

    def kept(at: Params) -> Fraction:
        layers, hidden = Fraction(at["L"], at["p"]), SEQUENCE * at["b"] * at["h"]
        if recomputed == "layer":
            return layers * hidden * 2
        scores = at["H"] * SEQUENCE * SEQUENCE * at["b"] if recomputed == "none" else 0
        whole = hidden * sum(_OUTSIDE_ATTENTION.values()) + scores * sum(_ATTENTION.values())
        return layers * Fraction(whole, at["t"])

    return kept


BASE = f"L*{SEQUENCE}*b*h/p"  # L l b h / p
EQ_4, EQ_5, EQ_6 = f"{BASE}/t * (34 + 5*H*{SEQUENCE}/h)", f"34*{BASE}/t", f"2*{BASE}"


def per_forward(size: Exact) -> Exact:
    """GB/s that move the bytes within one forward."""
    return lambda at: size(at) * MICROSECONDS / at["f"] / GIGA


def moved_per_forward(size: Exact) -> Exact:
    """GB/s of a transfer in a BPipe schedule whose transfers take a forward of f microseconds.

    The bytes are those that its memory event adds to the acceptor, the time is its task's.
    """

    def bandwidth(at: Params) -> Fraction:
        kept = size(at)
        pipeline = Pipeline(
            num_ranks=at["p"],
            num_microbatches=2 * at["p"],
            forward=at["f"],
            backward=2 * at["f"],
            activation=int(kept),
        )
        balanced = BPIPE.balanced(pipeline)
        problem = balanced.problem()
        schedule = BPIPE.schedule(balanced, problem)
        events, actions = problem.events, problem.actions
        moved = actions.is_kind(Kind.EVICT)[events.task] & (events.delta > 0)
        row = int(moved.argmax())
        task = int(events.task[row])
        if task not in problem.locate(schedule.program.actions):
            raise ValueError(
                f"{BPIPE.name} leaves out {problem.label(task)}, which moves the bytes"
            )
        rate = Fraction(int(events.delta[row]) * MICROSECONDS, int(problem.duration[task]))
        return rate / GIGA

    return bandwidth


def per_free_transfer(size: Exact) -> Exact:
    """GB/s that move the bytes in the longest transfer that costs no time, at tB = 2 tF.

    That transfer is measured on schedules of p ranks at tF = 2, tB = 4 ticks of f/2.
    """

    def bandwidth(at: Params) -> Fraction:
        ticks = longest_free_transfer({"p": at["p"], "m": 2 * at["p"], "tF": 2, "tB": 4})
        return size(at) * MICROSECONDS / Fraction(at["f"] * ticks, 2) / GIGA

    return bandwidth


def _equations(offset: int, scope: str, formula: str) -> tuple[PaperClaim, PaperClaim, PaperClaim]:
    """The size, the bandwidth and the relaxed bandwidth of one recomputation scope."""
    bandwidth = f"{formula} * {MICROSECONDS}/f/{GIGA}"

    def equation(
        first: int, what: str, quantity: str, measured: Exact, predicted: str
    ) -> PaperClaim:
        number, statement = first + offset, f"Recomputation scope {scope} {what}."
        return stated(
            f"bpipe.eq{number}",
            f"Appendix B, Eq. {number}",
            statement,
            quantity,
            measured,
            "==",
            predicted,
            MODELS,
        )

    return (
        equation(4, "keeps these bytes of a microbatch on each rank", "bytes", inventory(scope),
                 formula),
        equation(7, "needs this bandwidth to transfer within one forward", "GB/s",
                 moved_per_forward(inventory(scope)), bandwidth),
        equation(10,
                 "needs 2/3 of it where an evict and a load share a backward and a forward (tB = "
                 "2 tF)", "GB/s", per_free_transfer(inventory(scope)), f"2/3 * {bandwidth}"),
    )  # fmt: skip


def imbalance_13b(at: Params) -> Fraction:
    """GiB between the first and the last stage by Eq. 1: A_0 times the difference of their mu."""
    peaks = measures("1f1b", {"p": at["p"], "m": 4 * at["p"]}).peak_activations
    return (peaks[0] - peaks[-1]) * inventory("none")(at) / GIB


def imbalance_134b(name: str) -> Exact:
    """GiB between the fullest and the emptiest stage by Eq. 1 and 5, in the family's schedule."""

    def value(at: Params) -> Fraction:
        peaks = measures(name, {"p": at["p"], "m": at["m"]}).peak_activations
        return (max(peaks) - min(peaks)) * inventory("attention")(at) / GIB

    return value


def over_fastest(_: Params) -> Fraction:
    """The smaller of the models' ratios of BPipe's MFU to Megatron-LM's best."""
    return min(Fraction(ours, fastest) for fastest, _, ours in MFU.values())


def over_slowest(_: Params) -> Fraction:
    """The larger of the models' ratios of BPipe's MFU to Megatron-LM's worst."""
    return max(Fraction(ours, slowest) for _, slowest, ours in MFU.values())


_SCOPES = [
    _equations(offset, *scope)
    for offset, scope in enumerate((("none", EQ_4), ("attention", EQ_5), ("layer", EQ_6)))
]
_WORKED = (
    stated("bpipe.appB.bytes", "Appendix B",
           "GPT-3 96B with 4-way tensor and 8-way pipeline parallelism, attention scope and "
           "microbatches of 2 transfers 3.48 GB.", "GB",
           lambda at: inventory("attention")(at) / GIGA, "~2", "3.48", ONE_96B),
    stated("bpipe.appB.bandwidth", "Appendix B",
           "Within a forward of 143.37 ms that is 24.25 GB/s.", "GB/s",
           per_forward(inventory("attention")), "~2", "24.25", ONE_96B),
    stated("bpipe.appB.bandwidth-none", "Appendix B", "Without recomputation it is 100.31 GB/s.",
           "GB/s", per_forward(inventory("none")), "~2", "100.31", ONE_96B),
    stated("bpipe.sec2.microbatches", "section 2",
           "With 8 stages the first saves 7 microbatches more than the last.", "microbatches",
           lambda at: imbalance_13b(at) / (inventory("none")(at) / GIB), "~0", 7, ONE_13B),
    stated("bpipe.sec2.modelled", "section 2, Figure 3 by Eq. 1, 2 and 4",
           "By the paper's own model GPT-3 13B on 8 stages without recomputation is imbalanced by "
           "38.96 GiB, 2 GiB more than the figure shows.", "GiB", imbalance_13b, "~2", "38.96",
           ONE_13B),
    stated("bpipe.sec4.3.unbalanced", "section 4.3, Figure 8 by Eq. 1, 2 and 5",
           "Without balancing the memory of GPT-3 134B's stages differs by more than 25 GiB, in "
           "activations alone.", "GiB", imbalance_134b("1f1b"), ">=", 25, ONE_134B,
           slack="a round number; it is 28.76 GiB"),
    stated("bpipe.sec4.3.balanced", "ours, for BPipe section 4.3",
           "Balanced, the activations of GPT-3 134B's stages differ by one microbatch's, 2.61 GiB.",
           "GiB", imbalance_134b("bpipe"), "~2", "2.61", ONE_134B),
)  # fmt: skip
_MEASURED_BY_THE_AUTHORS = (
    missing(
        "bpipe.sec2.imbalance",
        "section 2, Figure 3",
        "The first and the last of 8 stages of GPT-3 13B differ by 37 GiB.",
        "what the first stage (embedding) and the last (head, loss) keep besides Eq. 4, and "
        "the allocator's share",
        estimated="38.96 GiB by Eq. 1, 2 and 4 (bpipe.sec2.modelled)",
    ),
    missing(
        "bpipe.sec4.3.balance",
        "section 4.3, Figure 8",
        "With activation balancing the memory of GPT-3 134B's stages differs by 10 GiB.",
        "the memory of each stage apart from activations, and the allocator's share",
        estimated="2.61 GiB of activations by Eq. 1 and 5 (bpipe.sec4.3.balanced)",
    ),
)
_TABLES = (
    stated("bpipe.sec1.states", "section 1",
           "At 20 bytes per parameter GPT-3 175B needs more than 3000 GiB.", "GiB",
           f"20*billions*{GIGA}/{GIB}", ">=", 3000, case("175 billion parameters", billions=175),
           slack="a round number; it is 3260 GiB"),
    stated("bpipe.table7.least", "section 4.2, Table 7",
           "BPipe trains both models at least 1.25 times as fast as Megatron-LM's best.",
           "ratio of MFU", over_fastest, "~2", "1.25", BOTH),
    stated("bpipe.table7.most", "section 4.2, Table 7",
           "BPipe is up to 2.17 times as fast as Megatron-LM's slowest configuration.",
           "ratio of MFU", over_slowest, "~2", "2.17", BOTH),
    stated("bpipe.table4.overlap", "section 4.4, Tables 3 and 4",
           "With the measured times every transfer hides behind computation.", "makespan",
           lambda at: makespan(at, at["t"]), "==", makespan_1f1b, TIMES),
)  # fmt: skip

CLAIMS: tuple[PaperClaim, ...] = (
    *(equations[kind] for kind in range(3) for equations in _SCOPES),
    *_WORKED,
    *_MEASURED_BY_THE_AUTHORS,
    *_TABLES,
)
