"""Answers on T-Pipe's claims."""

from __future__ import annotations

from bubbleproof.papers.answers.answer import AuditAnswer, answer

ANSWERS: tuple[AuditAnswer, ...] = (
    answer(
        3,
        "2.4x, 1.5x and the depths divide printed numbers, where the page computes them.",
        "tpipe.sec6.2.depths tpipe.sec6.2.models tpipe.sec6.2.models-half tpipe.sec6.2.trecomp "
        "tpipe.sec6.2.tpipe tpipe.sec6.2.1f1b",
        "Measured on built schedules and a layer's bytes, for every room from 29.2 to 31.6 GiB. "
        "10.65 GB is 10.6445, which rounds to 10.64; by the rounded 6.39 GB it is 10.65.",
    ),
    answer(
        12,
        "An inner rank has 8 messages a microbatch against 4, exactly twice.",
        "tpipe.appA.rounds tpipe.appA.rounds-exact",
        "Messages between two neighbouring ranks are the first reading, which holds from three "
        "ranks on; all of a step is rejected.",
    ),
    answer(
        13,
        "63.35 % of the memory is reproduced, the throughput is not; one verdict for both.",
        "tpipe.sec6.2.memory tpipe.sec6.2.throughput tpipe.sec6.2.ticks",
        "Split. Of the throughput the schedules' ticks are estimated, 102.26 %.",
    ),
    answer(
        13,
        "With attention scores activations are 1682 times the state, three orders.",
        "tpipe.sec5.states",
        "Read so, and it holds: at the report's 8192 tokens we find 752 times (a Llama has no "
        "dropout), whose nearest power of ten is 1000. Without scores it is two orders, at 131072 "
        "tokens four.",
    ),
    answer(
        14,
        "The skew is that of the total peak, not of each chunk's own.",
        "tpipe.sec2.3.skew",
        "Two readings; the total peak holds.",
    ),
    answer(
        14,
        "75 %, half and 25 % are limits for large p.",
        "tpipe.sec4.1.peak tpipe.sec4.1.half tpipe.appC.quarter",
        "For large p is a premise: the distance to the limit falls as 1/p. At most, on any number "
        "of ranks, is rejected.",
    ),
    answer(
        14,
        "The total peak is said to be about the sum of both.",
        "tpipe.appA.joint",
        "At most the sum holds; the sum itself is rejected, for odd p the two never meet.",
    ),
    answer(
        14,
        "The bubble ratio was held against durations that the appendix excludes.",
        "tpipe.appA.ratio",
        "T_bwd = 2 T_fwd is a premise; any durations are a contrast.",
    ),
    answer(
        14,
        "The limits of Equations 6 and 8 were refuted at p = 2.",
        "tpipe.appD.eq6-large tpipe.appD.eq8-large",
        "For large p is a premise; any number of ranks is a contrast.",
    ),
    answer(
        14,
        "6p + 7(m-1) was held against an order of ours that is shorter.",
        "tpipe.appC.time",
        "Some order takes no more, and a microbatch more takes 7: both hold. Our own order is a "
        "contrast.",
    ),
    answer(
        15,
        "Contradictions that neither the audit nor a claim told.",
        "tpipe.appA.eq1-defined tpipe.appB.one tpipe.sec4.2.sufficient tpipe.appC.blocks "
        "tpipe.appC.efficiency",
        "They were told as refuted. Equation 1 begins a life with the forward, its definition with "
        "the forward's end; Equation 3 needs 0 to 2 rounds where the text has 1; Equation 4 gives "
        "ceil(p/2), and floor(p/2) with a life as Appendix A defines it; 1.5 times stands against "
        "2 times.",
    ),
)
