"""Examples below the help of commands: whole command lines that can be copied."""

from __future__ import annotations

from collections.abc import Sequence

EXAMPLES = {
    "run": (
        "bubbleproof run problem.toml",
        "bubbleproof run problem.toml --backend virtual -o runs/problem",
    ),
    "solve": (
        "bubbleproof solve problem.toml -o best.json --certificate proof.json",
        "bubbleproof solve problem.toml --objective makespan-then-peak --time-limit 10",
        "bubbleproof solve problem.toml --work 2 --require '0F1<0B0'",
    ),
    "repair": ("bubbleproof repair schedule.csv --problem problem.toml -o repaired.json",),
    "pareto": ("bubbleproof pareto problem.toml -o front.svg --schedules runs/front",),
    "plan": (
        "bubbleproof plan plan.toml -o runs/plan --certificate proofs.json",
        "bubbleproof plan cluster.toml --yours 'tensor=4 pipeline=4 chunks=5'",
    ),
    "hand-over": (
        "bubbleproof hand-over runs/plan --to torchtitan -o runs/handed",
        "bubbleproof hand-over 1f1b p=2 m=4 --to torch-2.13 -o runs/handed --check",
    ),
    "bench": ("bubbleproof bench problem.toml --engine cpsat --engine sat --time-limit 5",),
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
    "costs": (
        "bubbleproof costs llama-2-13b tensor=2 pipeline=4 data=8 zero=1",
        "bubbleproof costs cluster.toml tensor=4 pipeline=4 data=4 -o one.toml",
    ),
    "calibrate": ("bubbleproof calibrate rows.csv -o hardware.toml",),
    "estimate": ("bubbleproof estimate rows.csv --hardware h100",),
    "replay": (
        "bubbleproof replay 1f1b p=2 m=4",
        "bubbleproof replay schedule.csv --backend gloo --steps 3",
        "bubbleproof replay zb-h1 p=2 m=4 --model my_model.py:build",
    ),
    "profile": ("bubbleproof profile --ranks 2 --microbatches 4 -o measured.toml",),
    "hang": (
        "bubbleproof hang dumps/",
        "bubbleproof hang dumps/ --schedule schedule.csv",
    ),
    "trace": ("bubbleproof trace traces/ -o runs/trace",),
    "show": (
        "bubbleproof show 1f1b p=4 m=8",
        "bubbleproof show zb-v p=4 m=8 -o zb-v.svg",
    ),
    "serve": (
        "bubbleproof serve",
        "bubbleproof serve zb-h1 p=4 m=8 --port 9001",
    ),
    "convert": (
        "bubbleproof convert zb-h1 p=4 m=8 table.csv --communication --torch 2.13",
        "bubbleproof convert schedule.csv schedule.json",
    ),
}


def examples(command: str) -> str:
    """The examples of a command of the core."""
    return below_help(EXAMPLES[command])


def below_help(lines: Sequence[str]) -> str:
    """Examples as a help shows them, each on a line of its own that is not broken (``\\b``)."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
