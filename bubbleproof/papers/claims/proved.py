"""Which theorem implies which claims, on the whole domain of each.

A theorem (``bubbleproof.papers.theorems``, known here by its id alone) gives the makespan and the
peaks of a family for all sizes and durations; work and idle time follow by counting. An audit
proves the theorem anew before it says so.
"""

from __future__ import annotations

_IMPLIED: dict[str, tuple[str, ...]] = {
    "gpipe": (
        "field.gpipe.makespan",
        "field.gpipe.idle-ratio",
        "field.gpipe.idle-over-work",
        "field.gpipe.peak",
    ),
    "1f1b": (
        "bpipe.eq1",
        "bpipe.mu",
        "bpipe.eq2",
        "bpipe.eq3",
        "bpipe.sec3.3.pair",
        "field.1f1b.makespan",
        "field.1f1b.idle-ratio",
        "field.1f1b.idle-over-work",
        "field.1f1b.peak-of-rank",
        "mepipe.table3.dapple.bubble-many",
        "mepipe.table3.dapple.bubble-few",
        "mepipe.table3.dapple.memory-many",
        "mepipe.table3.dapple.memory-few",
    ),
    "terapipe": (
        "mepipe.table3.terapipe.bubble-many",
        "mepipe.table3.terapipe.bubble-few",
        "mepipe.table3.terapipe.memory-many",
        "mepipe.table3.terapipe.memory-few",
    ),
    "bfs": ("field.bfs.bubble-filled",),
    "interleaved": (
        "bpipe.appA.mu",
        "field.interleaved.bubble-divided",
        "field.interleaved.peak-bounded",
        "mepipe.table3.vpp.bubble-many",
        "mepipe.table3.vpp.memory-corrected",
    ),
    "pipemesh": (
        "pipemesh.sec4A.bubble-repaired",
        "pipemesh.sec4A.bubble-halves",
        "pipemesh.sec4A.peak-repaired",
        "pipemesh.sec4A.peak-halves",
        "pipemesh.sec4B.recompute",
    ),
    "zb-h1": ("field.zb-h1.peak",),
}

THEOREMS: dict[str, str] = {
    claim: theorem for theorem, implied in _IMPLIED.items() for claim in implied
}
