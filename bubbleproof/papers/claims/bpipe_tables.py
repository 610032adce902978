"""BPipe's claims on its published tables: sizes, speed-ups, and whether the measured times overlap.

The tables are measurements of the authors' cluster and taken as given here; what follows from them
is computed or, where it is about a schedule, measured on one.
"""

from __future__ import annotations

from fractions import Fraction

from bubbleproof.papers.claims.bpipe_schedules import makespan, makespan_1f1b
from bubbleproof.papers.claims.claim import Claim, Domain, Params, Relation

# Table 7, MFU in hundredths of a percent: Megatron-LM's fastest and slowest configuration and
# BPipe's, per model (billions of parameters).
MFU = {96: (4051, 2431, 5064), 134: (4140, 2401, 5206)}

# Tables 3 and 4: microseconds of a transfer, a forward and a backward; pipelines of section 4.4 and
# Table 2. With twice as many microbatches as ranks the steady phase has begun.
_TIMES = (
    (8, 7630, 36320, 83570),  # 13B, attention recomputed
    (8, 15630, 143370, 287900),  # 96B
    (12, 12060, 126870, 256300),  # 134B
    (8, 22480, 36320, 74120),  # 13B, nothing recomputed
    (8, 580, 36320, 110330),  # 13B, layers recomputed
)
TIMES = Domain(
    text="the five rows of Tables 3 and 4, m = 2p",
    points=tuple(
        sorted(
            ({"p": p, "m": 2 * p, "t": t, "tF": tf, "tB": tb} for p, t, tf, tb in _TIMES),
            key=lambda at: sum(at.values()),
        )
    ),
)
BOTH = Domain(text="both models of Table 7 together", points=({"models": len(MFU)},))


def over_fastest(_: Params) -> Fraction:
    """The smaller of the models' ratios of BPipe's MFU to Megatron-LM's best."""
    return min(Fraction(ours, fastest) for fastest, _, ours in MFU.values())


def over_slowest(_: Params) -> Fraction:
    """The larger of the models' ratios of BPipe's MFU to Megatron-LM's worst."""
    return max(Fraction(ours, slowest) for _, slowest, ours in MFU.values())


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="bpipe.sec1.states",
        paper="bpipe",
        source="BPipe section 1",
        statement="At 20 bytes per parameter GPT-3 175B needs more than 3000 GiB.",
        quantity="GiB",
        relation=Relation.AT_LEAST,
        domain=Domain(text="175 billion parameters", points=({"billions": 175},)),
        predicted=lambda _: Fraction(3000),
        measured=lambda at: Fraction(20 * at["billions"] * 10**9, 1 << 30),
        slack="a round number; it is 3260 GiB",
    ),
    Claim(
        id="bpipe.table7.least",
        paper="bpipe",
        source="BPipe section 4.2, Table 7",
        statement="BPipe trains both models at least 1.25 times as fast as Megatron-LM's best.",
        quantity="ratio of MFU",
        relation=Relation.ABOUT,
        domain=BOTH,
        predicted=lambda _: Fraction("1.25"),
        measured=over_fastest,
        places=2,
    ),
    Claim(
        id="bpipe.table7.most",
        paper="bpipe",
        source="BPipe section 4.2, Table 7",
        statement="BPipe is up to 2.17 times as fast as Megatron-LM's slowest configuration.",
        quantity="ratio of MFU",
        relation=Relation.ABOUT,
        domain=BOTH,
        predicted=lambda _: Fraction("2.17"),
        measured=over_slowest,
        places=2,
    ),
    Claim(
        id="bpipe.table4.overlap",
        paper="bpipe",
        source="BPipe section 4.4, Tables 3 and 4",
        statement="With the measured times every transfer hides behind computation.",
        quantity="makespan",
        relation=Relation.EQUAL,
        domain=TIMES,
        predicted=makespan_1f1b,
        measured=lambda at: Fraction(makespan(at, at["t"])),
    ),
)
