"""Answers on MEPipe's claims."""

from __future__ import annotations

from bubbleproof.papers.answers.answer import AuditAnswer, answer

ANSWERS: tuple[AuditAnswer, ...] = (
    answer(
        3,
        "Figure 5(c)'s bubble ratio is 50 % above that of 5(a), exactly, where bubbles are put "
        "between the backwards of one sample; we put them between samples, too.",
        "mepipe.figure-5.bubble mepipe.figure-5.memory",
        "The generator has both ways (svpp-of-samples, svpp-filled): 24 and 32 ticks give 3/2, 25 "
        "and 32 are the reading that is rejected.",
    ),
    answer(
        4,
        "With n < p Table 3 was refuted by a rescheduling that section 4.3 calls optional.",
        "mepipe.table3.svpp.bubble-few",
        "The best order within f and the generator with or without the rescheduling hold; always "
        "rescheduled it is rejected.",
    ),
    answer(
        4,
        "With n >= p the optimum at p=3 n=4 v=2 s=1 is Table 3's; only our reading of the "
        "generator misses it.",
        "mepipe.table3.svpp.bubble-many",
        "The best order within f holds; the generator is rejected there, rescheduled or not.",
    ),
    answer(
        5,
        "6.375 GB are 12 bytes per parameter, for section 4.5 counts copies in FP32 as static.",
        "mepipe.section-7.4.optimizer",
        "The copy is in the first reading; the moments alone are rejected.",
    ),
    answer(
        5,
        "Static memory includes temporary memory by section 4.5, so it exceeds 24 GB at p = 8.",
        "mepipe.section-7.4.exceeds",
        "What section 7.4 leaves at p = 16, about 5 of 9.125 GB, says that it counts 4.125: 27.5 "
        "GB at p = 8.",
    ),
    answer(
        7,
        "MEPipe as run splits W, and SVPP without it was compared with VPP.",
        "mepipe.section-7.2.bubble mepipe.section-7.4.smallest",
        "Weight gradients apart are the first reading, measured by svpp-w at tF = tI = tW: 7/55 "
        "against VPP's 3/11, 5/101 against 7/71. SVPP alone is rejected.",
    ),
    answer(
        8,
        "With stages and chunks that are powers of two, as printed everywhere, 40 layers allow "
        "4 stages and 8 chunks and 48 layers 8 stages.",
        "mepipe.section-7.2.vpp-stages mepipe.section-7.4.vpp-stages mepipe.section-7.3.chunks",
        "It is the first reading of all three; two chunks a stage agree with it, any even cut is "
        "rejected.",
    ),
    answer(
        9,
        "Hanayo's bubble ratio was refuted at tB != tF alone, which the table does not have; "
        "no claim told of p not dividing n.",
        "mepipe.table3.hanayo.bubble-many mepipe.table3.hanayo.bubble-few",
        "Equal ticks are a premise of the first reading, on every n; at any durations the reading "
        "is rejected, over every order.",
    ),
    answer(
        9,
        "Hanayo's order of ours missed 98 of 252 sizes at three and four chunks.",
        "mepipe.table3.hanayo.bubble-many mepipe.table3.hanayo.memory-many",
        "Mended: where p does not divide n the last p + b microbatches share the slots as "
        "preemptive jobs share machines, and the formula is reached within A at every p up to 16 "
        "and v up to 4. At tB = 2 tF the order is up to 9 % longer there (p <= 7) than the one "
        "before, which had been found for those ticks.",
    ),
    answer(
        10,
        "1.68 against 1.86 is a contradiction of the paper; calling one refuted and the other "
        "true has no basis.",
        "mepipe.abstract.speedup mepipe.section-1.speedup mepipe.section-7.2.speedup-ticks",
        "Told as a contradiction, both places cited. By ticks it is 1.69, with W apart 1.98.",
    ),
    answer(
        11,
        "That each model is 2.5 times as cost-effective is ours; the mean is 2.509.",
        "mepipe.section-7.6.cost",
        "The mean and Llama 13B, of which the abstract speaks, hold; each model is a contrast.",
    ),
    answer(
        11,
        "Unsupported is Megatron's m mod p = 0, not an order that cannot run.",
        "mepipe.table3.vpp.few",
        "That is the reading; the order that runs is a contrast.",
    ),
    answer(
        13,
        "Table 2's marks are decided by our own cost model.",
        "mepipe.table2.marks",
        "Decided so: what a device of two keeps less of than one alone, for TP, CP and DP. What a "
        "plus stands for stays unknown (mepipe.table2.pluses).",
    ),
    answer(
        14,
        "Figure 6 by every tie-break is no claim of the paper.",
        "mepipe.figure-6.bubble",
        "A contrast of the claim that some tie-break does.",
    ),
    answer(
        14,
        '"Around" A/min(s,p) was taken as exact.',
        "mepipe.section-4.4.around",
        "Around is a premise: below twice that holds, exactly that is a contrast.",
    ),
    answer(
        14,
        "Attention scores below 10 % were counted on the whole square.",
        "mepipe.section-4.4.scores",
        "The pairs under the causal mask hold, at 7.5 %; the whole square is rejected.",
    ),
    answer(
        15,
        "1.35 on average contradicts a mean of 1.51 or 1.57.",
        "mepipe.abstract.average mepipe.abstract.average-rest",
        "Told in a claim, but not as a contradiction: the abstract averages over Llama of varying "
        "sizes, and the speedups on 7B and 34B are drawn, not printed. 1.35 comes out if those two "
        "average 1.02 (1.11 beside 1.68), which no sentence excludes. The two means are readings "
        "that are rejected.",
        is_followed=False,
    ),
)
