"""Every framework that a schedule can be handed to, by name, and the page of what is lost."""

from __future__ import annotations

from difflib import get_close_matches

from bubbleproof.hand_over.automodel_target import automodel_files
from bubbleproof.hand_over.handed import HandedFiles, HandedSchedule, TargetWriter
from bubbleproof.hand_over.megatron_target import megatron_files
from bubbleproof.hand_over.torch_target import torch_files
from bubbleproof.hand_over.torchtitan_target import torchtitan_files

TARGETS: dict[str, TargetWriter] = {
    "torch": torch_files,
    "torchtitan": torchtitan_files,
    "automodel": automodel_files,
    "megatron": megatron_files,
}
LOSES = "LOSES.md"


def require_target(name: str) -> None:
    """Raise ``ValueError`` naming the targets where there is none of that name."""
    if name not in TARGETS:
        close = get_close_matches(name[:60], TARGETS, n=1, cutoff=0.4)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"--to must be one of {', '.join(TARGETS)}, got {name[:60]!r}{hint}")


def handed_to(target: str, handed: HandedSchedule) -> HandedFiles:
    """What a target is given. Raises ``ValueError`` for what it would get wrong."""
    require_target(target)
    return TARGETS[target](handed)


def page_of_losses(target: str, handed: HandedSchedule, made: HandedFiles) -> str:
    """``LOSES.md``: what the target does not do of what was planned, and how it is started."""
    lines = [
        f"# {handed.name}, handed to {target}",
        "",
        f"Started by `{made.start}`.",
        "",
        "What it does not do of what was planned:",
        "",
        *(f"- {loss}." for loss in made.losses or ("nothing that is known",)),
    ]
    return "\n".join(lines) + "\n"
