"""Answers on PipeMesh's claims."""

from __future__ import annotations

from bubbleproof.papers.answers.answer import AuditAnswer, answer

ANSWERS: tuple[AuditAnswer, ...] = (
    answer(
        2,
        "That the printed program ends on the planner's sequences was told of one of section "
        "IV-B's two cases alone; in the other it waits for itself.",
        "pipemesh.alg1.planned pipemesh.alg1.planned-ships pipemesh.alg1.ends-planned "
        "pipemesh.alg1.ends-planned-equal pipemesh.sec6A.ends",
        "The planner's own sequences deadlock its executor: of 228 cases with P up to 3 and B "
        "up to 9, 28 with forwards enough do, all in the other case. The criterion covers both "
        "cases; the old one is kept for equal dequeues, and on Table IV's sequences it ends.",
    ),
    answer(
        6,
        "8/3 of 8192 is no width; with Llama's 22016 a layer stores 34 sbh, and 2.66 and 42.5 "
        "GB come out.",
        "pipemesh.sec6A.llama2-sample pipemesh.tab4.fold3d-activations",
        "22016 is the first reading of both, which holds; the fraction is rejected. The "
        "explanation by GPT-3's layer is gone.",
    ),
    answer(
        13,
        "83.3 and 32.4 % stand for 82.5 and 31.3 % of overlapped communication.",
        "pipemesh.sec6A.overlap pipemesh.sec6A.overlap-estimated",
        "The estimate is a claim of its own, within two points. The printed digits need the total "
        "of either system, which is not given, so they stay what cannot be had.",
        is_followed=False,
    ),
    answer(
        13,
        "The gap to the lower bound comes to 6.6 to 7.4 % for 5.1 to 7.2 %.",
        "pipemesh.sec4A.gap pipemesh.sec4A.gap-estimated",
        "We find 6.6, 4.7, 6.2 and 4.6 % with Megatron's computation and no critical message, and "
        "1.3 to 3.3 % with Table IV's T_PP; 7.4 % in no way tried. The input, C_comp without "
        "contention, is missing.",
        is_followed=False,
    ),
    answer(
        14,
        "The consecutive forwards of section II-A are those of the warm-up.",
        "pipemesh.sec2A.consecutive",
        "That is the first reading, which holds; those before the first backward are rejected.",
    ),
    answer(
        14,
        "M_a is told of up to so many forwards.",
        "pipemesh.sec4A.peak pipemesh.sec4A.peak-all",
        "Up to is a premise of the reading; without it the sentence is a contrast.",
    ),
    answer(
        14,
        "That ZeRO-3 always saves above M = 4 is nowhere said.",
        "pipemesh.sec4A.few-chunks",
        "A contrast beside what is said, that it saves nothing up to there.",
    ),
    answer(
        14,
        "Equation 5 was held against collectives that all had the same passes.",
        "pipemesh.eq5",
        "The collectives share the passes, as section IV-B divides them; each kind alone is a "
        "contrast. The printed rule gathers and reduces in buckets of a pass, where we have one "
        "collective a chunk: the reading asks for room for three.",
    ),
    answer(
        14,
        "Equation 3 fails at M = 1 alone.",
        "pipemesh.eq3 pipemesh.eq3.bound",
        "As an equation at any C_DP it fails at M = 2 as well (24 ticks for 28 at P = 2, B = 4, "
        "C_DP = 7): bubbles hide some. Where the planner puts it, hidden, it holds, and that is "
        "the first reading.",
        is_followed=False,
    ),
    answer(
        14,
        "The sum of D_o, D_g and D_p was held against passes that count twice.",
        "pipemesh.sec4A.sum pipemesh.sec4A.sum-planned",
        "It holds where computation hides what the planner sees to; undivided passes are a "
        "contrast, and ours says what the sum bounds.",
    ),
    answer(
        15,
        "M_p of Table IV is 2.7, 2.8 and 2.7, by the formula 3.4, 3.6 and 3.3.",
        "pipemesh.tab4.parameters",
        "Section IV-A says up to, and with that premise it is no contradiction. That the formula "
        "is what is allocated is a reading, which is rejected; that gathered parameters have no "
        "own shard gives the table to the digit and is nowhere printed.",
        is_followed=False,
    ),
    answer(
        15,
        "Always more than 27.1 % stands against 25.0 to 27.2 %.",
        "pipemesh.sec1.always",
        "A claim. Were 25.0 % over MegaScale alone, it would be 1.7 % ahead of Megatron, where "
        "Table IV has it 0.7 % at most.",
    ),
    answer(
        15,
        "Fold3D's 34.1 % stands against 38.8 to 45.5 %.",
        "pipemesh.sec1.fold3d pipemesh.sec1.fold3d-hidden pipemesh.abstract.fold3d",
        "A claim; of the backwards alone the nearest is 34.2 %. The abstract's more than 34 % "
        "holds; the 23.8 % beside it is 23.9 %.",
    ),
    answer(
        15,
        "The planner's own rule gives psi_p = 1 for 84.4, 90.9 and 86.9 %.",
        "pipemesh.sec6A.zero3",
        "Stronger: no C_DP and no C_bwd give these shares. Of 12 backwards a share below 1 is "
        "below 5/6, of 8 below 3/4; with section VI-A's recomputation GPT-3's is reached, the "
        "other two are not.",
    ),
    answer(
        15,
        "Contradictions that neither the audit nor a claim told.",
        "pipemesh.sec4B.passes pipemesh.sec1.faster pipemesh.sec1.idle pipemesh.sec6B.share "
        "pipemesh.sec6A.llama2-more",
        "Each is a claim now. What was told as refuted and is a contradiction is told as that: "
        "Tables I and II against the text, the table's unit, MFU, days, messages and B/P. "
        "sec4B.passes has a reading: all forwards before the switch of chunk are enough.",
    ),
)
