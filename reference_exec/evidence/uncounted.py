"""What is not among the live bytes of a replay, in phrases that stand in its report.

Loads no torch.
"""

from __future__ import annotations

from collections.abc import Sequence

_ALWAYS = (
    "What an action allocates and frees within itself, such as work space.",
    "At each action: parameters, buffers and constants of the model, gradients, optimizer state "
    "and data, but where a host or replicas move them. They are compared as ranks are made, and "
    "weights, gradients and optimizer state as each pass begins and ends.",
    "Tensors that only a reference cycle holds, which nobody reaches.",
    "Messages, from when they are made or awaited until they are used; on processes a sent one "
    "stays to the end of the pass.",
    "Losses and gradients that are kept to be compared.",
    "What was there before the ranks were made, unless the code of the model's file reaches it and "
    "torch counts a write into it (`.data` and arrays of numpy write uncounted).",
    "What the allocator rounds up, keeps in reserve or fragments; buffers of gloo, NCCL, cuBLAS.",
    "Memory that no tensor shows: Python objects, copies made by numpy, what a C++ extension keeps "
    "to itself; and sparse tensors.",
)


def uncounted(kept_bytes: Sequence[int], written_bytes: Sequence[int] = ()) -> tuple[str, ...]:
    """One phrase each; the bytes, by process, are what stages of a user's model may keep, and what
    was there before and they write into.
    """
    own = []
    if any(kept_bytes):
        kept = ", ".join(map(str, kept_bytes))
        own.append(
            f"What stages keep of their last forward until the next: at most {kept} bytes by rank."
        )
    if any(written_bytes):
        written = ", ".join(map(str, written_bytes))
        own.append(
            "Tensors that were there before the ranks were made and that stages write into: "
            f"{written} bytes by rank."
        )
    return (*_ALWAYS, *own)
