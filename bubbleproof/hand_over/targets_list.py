"""What writes the files of each family of frameworks, and the page of what they lack.

Which frameworks there are, with their versions, is ``bubbleproof.frameworks``' matter.
"""

from __future__ import annotations

from bubbleproof.frameworks import framework_named
from bubbleproof.hand_over.automodel_target import automodel_files
from bubbleproof.hand_over.handed import HandedFiles, HandedSchedule, TargetWriter
from bubbleproof.hand_over.megatron_target import megatron_files
from bubbleproof.hand_over.torch_target import torch_files
from bubbleproof.hand_over.torchtitan_target import torchtitan_files, torchtitan_toml_files

WRITERS: dict[str, TargetWriter] = {  # by family
    "torch": torch_files,
    "torchtitan": torchtitan_files,
    "torchtitan-toml": torchtitan_toml_files,
    "automodel": automodel_files,
    "megatron": megatron_files,
}
UNSUPPORTED = "UNSUPPORTED.md"


def require_target(name: str) -> None:
    """Raise ``ValueError`` where there is no target of that name, or nothing that it reads."""
    if framework_named(name, "--to").family not in WRITERS:
        raise ValueError(
            f"--to {name}: it builds its orders itself and reads no file of them; "
            f"verify --runtime {name} checks a schedule for it"
        )


def handed_to(target: str, handed: HandedSchedule) -> HandedFiles:
    """What a target is given. Raises ``ValueError`` for what it would get wrong."""
    require_target(target)
    return WRITERS[framework_named(target, "--to").family](handed)


def page_of_losses(target: str, handed: HandedSchedule, made: HandedFiles) -> str:
    """``UNSUPPORTED.md``: the features that the target lacks, and how it is started."""
    lines = [
        f"# {handed.name}, handed to {target}",
        "",
        f"Started by `{made.start}`.",
        "",
        f"Features that {target} lacks:",
        "",
        *(f"- {loss}." for loss in made.losses or ("none that is known",)),
    ]
    return "\n".join(lines) + "\n"
