"""Examples below the help of commands: whole command lines that can be copied."""

from __future__ import annotations

EXAMPLES = {
    "verify": (
        "bubbleproof verify 1f1b p=4 m=8",
        "bubbleproof verify schedule.csv --runtime torch-2.13",
        "bubbleproof verify schedules/ --workers 8 --sarif verify.sarif",
    ),
    "measure": (
        "bubbleproof measure zb-h1 p=4 m=8",
        "bubbleproof measure 1f1b p=4 m=8 tF=3 tB=5 --why",
    ),
    "diff": ("bubbleproof diff '1f1b p=4 m=8' 'zb-h1 p=4 m=8'",),
    "show": (
        "bubbleproof show 1f1b p=4 m=8",
        "bubbleproof show zb-v p=4 m=8 -o zb-v.svg",
    ),
    "claims": (
        "bubbleproof claims --paper bpipe",
        "bubbleproof claims bpipe.mu --set p=8 m=32 s=3",
    ),
}


def examples(command: str) -> str:
    """The examples of a command, each on a line of its own."""
    return "\n\n".join(["Examples:", *EXAMPLES[command]])
