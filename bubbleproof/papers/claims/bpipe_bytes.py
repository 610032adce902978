"""BPipe's claims on bytes and bandwidth: Eq. 4 to 12, Appendix B's numbers, section 2's 37 GiB.

Symbols of Appendix B: L layers, H heads, h hidden size (Table 5 calls it D and the equations h),
l sequence length, b microbatch size, t tensor and p pipeline parallelism, f seconds of a forward.
Sizes are bytes of one rank's activations of one microbatch, b l h 16-bit numbers unless noted.

The second route to Eq. 4 to 6 is an inventory: what each operation of a transformer layer keeps for
its backward, tensor by tensor (Korthikanti et al., MLSys 2023, section 4).
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.bpipe_schedules import BPIPE, longest_free_transfer, measures_of
from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation, Value
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
MODELS = Domain(
    text="the configurations of Table 3: GPT-3 13B, 96B and 134B",
    points=(GPT3_13B, GPT3_96B, GPT3_134B),
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


def inventory(recomputed: str) -> Value:
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


def eq4(at: Params) -> Fraction:
    """L l b h / (p t) * (34 + 5 H l / h)."""
    base = Fraction(at["L"] * SEQUENCE * at["b"] * at["h"], at["p"] * at["t"])
    return base * (34 + Fraction(5 * at["H"] * SEQUENCE, at["h"]))


def eq5(at: Params) -> Fraction:
    """34 L l b h / (p t)."""
    return Fraction(34 * at["L"] * SEQUENCE * at["b"] * at["h"], at["p"] * at["t"])


def eq6(at: Params) -> Fraction:
    """2 L l b h / p."""
    return Fraction(2 * at["L"] * SEQUENCE * at["b"] * at["h"], at["p"])


def per_forward(size: Value, share: Fraction = Fraction(1)) -> Value:
    """GB/s that move ``share`` of the bytes within one forward (Eq. 7 to 9; 2/3: Eq. 10 to 12)."""
    return lambda at: share * size(at) * MICROSECONDS / at["f"] / GIGA


def moved_per_forward(size: Value) -> Value:
    """GB/s of a transfer in a BPipe schedule whose transfers take a forward of f microseconds.

    The bytes are those that its memory event adds to the acceptor, the time is its task's.
    """

    def bandwidth(at: Params) -> Fraction:
        kept = size(at)
        pipeline = Pipeline(
            num_ranks=at["p"], num_microbatches=2 * at["p"],
            forward=at["f"], backward=2 * at["f"], activation=int(kept),
        )  # fmt: skip
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


def per_free_transfer(size: Value) -> Value:
    """GB/s that move the bytes in the longest transfer that costs no time, at tB = 2 tF.

    That transfer is measured on schedules of p ranks at tF = 2, tB = 4 ticks of f/2.
    """

    def bandwidth(at: Params) -> Fraction:
        ticks = longest_free_transfer({"p": at["p"], "m": 2 * at["p"], "tF": 2, "tB": 4})
        return size(at) * MICROSECONDS / (at["f"] * ticks / 2) / GIGA

    return bandwidth


def _equations(offset: int, scope: str, formula: Value) -> tuple[Claim, Claim, Claim]:
    """The size, the bandwidth and the relaxed bandwidth of one recomputation scope."""
    rows = (
        (4, "keeps these bytes of a microbatch on each rank", "bytes", formula, inventory(scope)),
        (7, "needs this bandwidth to transfer within one forward", "GB/s",
         per_forward(formula), moved_per_forward(inventory(scope))),
        (10, "needs 2/3 of it where an evict and a load share a backward and a forward (tB = 2 tF)",
         "GB/s", per_forward(formula, Fraction(2, 3)), per_free_transfer(inventory(scope))),
    )  # fmt: skip
    size, bandwidth, relaxed = (
        Claim(
            id=f"bpipe.eq{first + offset}",
            paper="bpipe",
            source=f"BPipe Appendix B, Eq. {first + offset}",
            statement=f"Recomputation scope {scope} {what}.",
            quantity=quantity,
            relation=Relation.EQUAL,
            domain=MODELS,
            predicted=predicted,
            measured=measured,
        )
        for first, what, quantity, predicted, measured in rows
    )
    return size, bandwidth, relaxed


def _number(
    name: str, source: str, statement: str, printed: str, measured: Value, at: Params
) -> Claim:
    """A printed number, compared at the decimals it is printed with."""
    return Claim(
        id=f"bpipe.{name}",
        paper="bpipe",
        source=source,
        statement=statement,
        quantity=printed.split(" ", 1)[1],
        relation=Relation.ABOUT,
        domain=Domain(text="the printed configuration", points=(at,)),
        predicted=lambda _: Fraction(printed.split(" ")[0]),
        measured=measured,
        places=len(printed.split(" ")[0].partition(".")[2]),
    )


def _hardware(name: str, source: str, statement: str, missing: str) -> Claim:
    """A measurement on the authors' cluster, which no schedule can give."""
    return Claim(
        id=f"bpipe.{name}",
        paper="bpipe",
        source=source,
        statement=statement,
        quantity="measured on hardware",
        relation=Relation.EQUAL,
        domain=Domain(text="the authors' cluster", points=()),
        missing=missing,
    )


def imbalance_13b(at: Params) -> Fraction:
    """GiB between the first and the last stage by Eq. 1: A_0 times the difference of their mu."""
    peaks = measures_of("1f1b", at["p"], 4 * at["p"]).peak_activations
    return (peaks[0] - peaks[-1]) * inventory("none")(at) / GIB


_APPENDIX_B = "BPipe Appendix B"
_WORKED = (
    _number("appB.bytes", _APPENDIX_B,
            "GPT-3 96B with 4-way tensor and 8-way pipeline parallelism, attention scope and "
            "microbatches of 2 transfers 3.48 GB.",
            "3.48 GB", lambda at: inventory("attention")(at) / GIGA, GPT3_96B),
    _number("appB.bandwidth", _APPENDIX_B, "Within a forward of 143.37 ms that is 24.25 GB/s.",
            "24.25 GB/s", per_forward(inventory("attention")), GPT3_96B),
    _number("appB.bandwidth-none", _APPENDIX_B, "Without recomputation it is 100.31 GB/s.",
            "100.31 GB/s", per_forward(inventory("none")), GPT3_96B),
    _number("sec2.microbatches", "BPipe section 2",
            "With 8 stages the first saves 7 microbatches more than the last.",
            "7 microbatches",
            lambda at: imbalance_13b(at) / (inventory("none")(at) / GIB), GPT3_13B),
    _number("sec2.modelled", "BPipe section 2, Figure 3 by Eq. 1, 2 and 4",
            "By the paper's own model GPT-3 13B on 8 stages without recomputation is imbalanced by "
            "38.96 GiB, 2 GiB more than the figure shows.",
            "38.96 GiB", imbalance_13b, GPT3_13B),
)  # fmt: skip
_MEASURED_BY_THE_AUTHORS = (
    _hardware("sec2.imbalance", "BPipe section 2, Figure 3",
              "The first and the last of 8 stages of GPT-3 13B differ by 37 GiB.",
              "what the first stage (embedding) and the last (head, loss) keep besides Eq. 4, and "
              "the allocator's share; bpipe.sec2.modelled says what Eq. 1, 2 and 4 give"),
    _hardware("sec4.3.balance", "BPipe section 4.3, Figure 8",
              "The memory of GPT-3 134B differs by more than 25 GiB between stages without and by "
              "10 GiB with activation balancing.",
              "the memory of each stage apart from activations, and the allocator's share"),
    _hardware("sec4.4.cost", "BPipe section 4.4, Figure 9",
              "Balancing costs 1.1 % of the time, 11 % with synchronous transfers.",
              "the times of every kernel and transfer on the authors' cluster"),
)  # fmt: skip

CLAIMS: tuple[Claim, ...] = (
    *sorted(
        (
            claim
            for offset, (scope, formula) in enumerate(
                (("none", eq4), ("attention", eq5), ("layer", eq6))
            )
            for claim in _equations(offset, scope, formula)
        ),
        key=lambda claim: int(claim.id.removeprefix("bpipe.eq")),
    ),
    *_WORKED,
    *_MEASURED_BY_THE_AUTHORS,
)
