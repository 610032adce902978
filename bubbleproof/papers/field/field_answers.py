"""Answers on the field's claims."""

from __future__ import annotations

from bubbleproof.papers.answers.answer import AuditAnswer, answer

ANSWERS: tuple[AuditAnswer, ...] = (
    answer(
        14,
        "1F1B's p microbatches were refuted with fewer than p.",
        "field.1f1b.peak",
        "At most p, and just p of p or more, hold; just p of fewer is a contrast.",
    ),
    answer(
        14,
        "The zero-bubble formulas were refuted at any m and any durations.",
        "field.zb-h1.bubble field.zb-h2.bubble field.zb-v.bubble",
        "Microbatches enough and W no longer than what waits are premises; without them a formula "
        "is a contrast.",
    ),
    answer(
        14,
        "Chimera was refuted at any durations, and by units that are joined one way.",
        "field.chimera.bubble field.chimera.double",
        "Whole units of equal ticks hold. With backwards twice as long some order holds at p = 4; "
        "units joined directly are rejected.",
    ),
    answer(
        14,
        "DualPipe was refuted at unequal times.",
        "field.dualpipe.bubble field.dualpipev.bubble",
        "tF = tI >= tW is a premise; any durations are a contrast, and ours says what holds there.",
    ),
    answer(
        14,
        "The same for the others of the field, of which the audit names none.",
        "field.interleaved.bubble field.interleaved.peak field.bfs.bubble field.v-half.peak "
        "field.v-half.bubble field.v-min.peak field.v-min.bubble",
        "Groups of p, a filled pipeline, large p and an order that is ours are told as such; no "
        "claim of the field is refuted.",
    ),
)
