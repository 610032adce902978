"""What each family of frameworks runs of what a plan may choose.

Which frameworks there are, with their versions, is ``target_runtimes``' matter; ``any`` stands for
all that a schedule of ours may be. From:

megatron
    ``megatron/training/arguments.py``: the distributed optimizer shares optimizer state alone
    (ZeRO 1); ``megatron/core/pipeline_parallel/schedules.py``: 1F1B, and interleaved 1F1B, whose
    microbatches we take in whole rounds of the ranks; layers are cut by the layout string.
torch
    ``torch/distributed/pipelining``: any order of whole samples, from a table. FSDP shares
    gradients (weights kept through the step) or weights too; without it nothing is shared.
torchtitan, automodel
    torch's runtime; stages in a loop or, with torchtitan, in a V.
deepspeed
    ``deepspeed/runtime/pipe/engine.py``: 1F1B of one chunk, with ZeRO 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubbleproof.theory.pipelines.programs.target_runtimes import RUNTIMES, runtime_named

ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkChoices:
    """What a framework runs; by ``orders`` the schedules' families where it builds its own.

    ``zero`` are the levels without a pipeline, ``staged_zero`` those with one. ``rounds``: several
    chunks take microbatches in whole rounds of the ranks.
    """

    zero: tuple[int, ...] = (0, 1, 2, 3)
    staged_zero: tuple[int, ...] = (0, 1, 2, 3)
    placements: tuple[str, ...] = ("loop", "wave")
    backward: tuple[str, ...] = ("whole", "split")
    slices: tuple[int, ...] = (1, 2, 4)
    chunks: bool = True
    context: bool = True
    expert: bool = True
    rounds: bool = False
    orders: tuple[str, ...] = ()


_TABLE = FrameworkChoices(zero=(0, 2, 3), staged_zero=(0, 2, 3), slices=(1,))
FAMILIES = {
    ANY: FrameworkChoices(),
    "megatron": FrameworkChoices(
        zero=(0, 1),
        staged_zero=(0, 1),
        placements=("loop",),
        backward=("whole",),
        slices=(1,),
        rounds=True,
        orders=("1f1b", "interleaved"),
    ),
    "torch": _TABLE,
    "torchtitan": _TABLE,
    "automodel": FrameworkChoices(
        zero=(0, 2, 3), staged_zero=(0, 2, 3), slices=(1,), placements=("loop",)
    ),
    "deepspeed": FrameworkChoices(
        staged_zero=(0, 1),
        placements=("loop",),
        backward=("whole",),
        slices=(1,),
        chunks=False,
        context=False,
        orders=("1f1b",),
    ),
}


def framework_choices(name: str) -> FrameworkChoices:
    """What the framework of a name runs. Raises ``ValueError`` naming those that there are.

    >>> framework_choices("megatron-core").zero
    (0, 1)
    """
    if name == ANY:
        return FAMILIES[ANY]
    return FAMILIES[runtime_named(name, "plan framework").family]


def framework_of_costs(software: str) -> str:
    """The framework whose times the software's are; ``any`` where it is none of the list."""
    plain = software.removesuffix("-overlapped")
    return next((each.name for each in RUNTIMES if each.costs == plain), ANY)
