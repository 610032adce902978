"""What is not among the live bytes of a replay, in phrases that stand in its report.

Loads no torch.
"""

from __future__ import annotations

from collections.abc import Sequence

_ALWAYS = (
    "What an action allocates and frees within itself, such as work space.",
    "Parameters, buffers and constants of the model, gradients and optimizer state, but where a "
    "host or replicas move them; a run that steps compares them as model state.",
    "Messages, from when they are made or awaited until they are used; on processes a sent one "
    "stays to the end of the pass.",
    "The data of the batch, and losses and gradients that are kept to be compared.",
    "What the allocator rounds up, keeps in reserve or fragments; buffers of gloo, NCCL, cuBLAS.",
    "Memory that no tensor shows: Python objects, copies made by numpy, what a C++ extension keeps "
    "to itself; and sparse tensors.",
)


def uncounted(kept_bytes: Sequence[int]) -> tuple[str, ...]:
    """One phrase each; ``kept_bytes`` are what stages of a user's model may keep, by process."""
    if not any(kept_bytes):
        return _ALWAYS
    kept = ", ".join(map(str, kept_bytes))
    own = f"What stages keep of their last forward until the next: at most {kept} bytes by rank."
    return (*_ALWAYS, own)
