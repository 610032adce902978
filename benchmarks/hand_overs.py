"""Plans handed to each framework, and what was checked of each: a table.

    python -m benchmarks.hand_overs [--only deep,chunks] [--write docs/measured/hand-overs.md]

Llama 2 7B on eight cards is planned under four tables ``[plan]``, and each plan is handed to each
target by ``bubbleproof hand-over``. PyTorch's table is trained for ten steps on gloo by PyTorch's
own runtime with ``scale_grads`` on and off (``--check``), and has to have the bits of the loop
without a pipeline; torchtitan's and Automodel's tables have to be that very file (their own code
reads what is written in ``benchmarks.frameworks.hand_over_jobs``); of Megatron's arguments the
layout is read back, as its parser reads it, and the order is compared with Megatron's own. It ends
with status 1 where anything differs. A quarter of an hour's hundredth a plan on two cores: most of
it is ten steps, four times.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.markdown import markdown_table, put_out
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

CLUSTER = """\
[model]
name = "llama-2-7b"

[cluster]
card = "a100-80gb"
cards = 8

[batch]
samples = 32
sequence = 4096

[plan]
"""
PLANS = {
    "deep": "pipeline = [4]\ntensor = [2]\ndata = [1]\nchunks = [1]\n",
    "chunks": "framework = 'megatron-core'\npipeline = [2]\ntensor = [4]\ndata = [1]\n"
    "chunks = [2]\nplacements = ['loop']\n",
    "replicas": "pipeline = [2]\ntensor = [2]\ndata = [2]\nzero = [1]\nchunks = [1]\n",
    "split": "framework = 'any'\npipeline = [4]\ntensor = [2]\ndata = [1]\nchunks = [1]\n"
    "backward = ['split']\nslices = [1]\n",
}
TARGETS = ("torch", "torchtitan", "automodel", "megatron")
TABLE = "schedule.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """One plan handed to one target; ``checked`` what was looked at, ``fault`` what differs."""

    plan: str
    order: str  # its deployment and shape
    target: str
    files: int = 0
    checked: str = ""
    fault: str = ""
    refusal: str = ""

    @property
    def told(self) -> str:
        return self.refusal or self.fault or self.checked


def hand_overs(plan: str, folder: Path) -> list[HandOver]:
    """Make the plan, and hand it to every target. Raises ``ValueError`` where there is no plan."""
    file, planned = folder / "cluster.toml", folder / "plan"
    file.write_text(CLUSTER + PLANS[plan], encoding="utf-8")
    made = _command("plan", str(file), "--work", "1", "-o", str(planned))
    if made.returncode:
        raise ValueError(f"{plan}: {made.stderr.strip()}")
    made_plan = json.loads((planned / "plan.json").read_text(encoding="utf-8"))
    won = made_plan["winner"]
    order = f"{made_plan['deployment']}, v={won['chunks']} {won['placement']} {won['backward']}"
    return [_handed(plan, order, planned, target, folder / target) for target in TARGETS]


def _handed(plan: str, order: str, planned: Path, target: str, folder: Path) -> HandOver:
    check = ["--check"] if target in ("torch", "megatron") else []
    words = ["hand-over", str(planned), "--to", target, "-o", str(folder), "--json", *check]
    answer = _command(*words)
    if answer.returncode == 2:
        return HandOver(plan=plan, order=order, target=target, refusal=f"refused: {_last(answer)}")
    told = json.loads(answer.stdout)
    checks = [(each["what"], each["holds"]) for each in told["checks"]]
    checks = checks or [_parsed(folder, planned)]
    return HandOver(
        plan=plan,
        order=order,
        target=target,
        files=len(told["files"]),
        checked="; ".join(what for what, _ in checks),
        fault="; ".join(f"DIFFERS: {what}" for what, holds in checks if not holds),
    )


def _parsed(folder: Path, planned: Path) -> tuple[str, bool]:
    """Parse the configuration, and compare the table with the plan's."""
    [config] = [path for path in folder.iterdir() if path.suffix in (".args", ".yaml")]
    text = config.read_text(encoding="utf-8")
    keys = text.count("--") if config.suffix == ".args" else _yaml_keys(text)
    told = f"{config.name}, {keys} keys; the schedule is the plan's, byte for byte"
    return told, (folder / TABLE).read_bytes() == (planned / TABLE).read_bytes()


def _yaml_keys(text: str) -> int:
    import yaml  # type: ignore[import-untyped]  # it comes without types

    return len(yaml.safe_load(text))


def _command(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "bubbleproof", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def _last(answer: subprocess.CompletedProcess[str]) -> str:
    return answer.stderr.strip().splitlines()[-1].removeprefix("bubbleproof: ")


def page(rows: Sequence[HandOver], target: str = "PAGE") -> str:
    """The page as Markdown, for the file ``target``."""
    versions = ", ".join(f"{name} {number}" for name, number in this_machine().versions.items())
    whole = sum(not (row.fault or row.refusal) for row in rows)
    table = [(row.plan, row.order, f"`{row.target}`", row.files, row.told) for row in rows]
    return (
        "# Plans handed to each framework\n\n"
        f"Generated by `python -m benchmarks.hand_overs --write {target}`\nwith {versions}.\n\n"
        "Llama 2 7B on eight A100, planned under four tables `[plan]`; the model's layers are "
        "small in the training on gloo.\n"
        f"{whole} of {len(rows)} were handed over and passed what was checked.\n\n"
        f"{markdown_table(('plan', 'order', 'target', 'files', 'what was checked'), table)}"
    )


def main(
    only: Annotated[str, typer.Option(help="These plans, by commas.")] = "",
    write: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Plan, hand over, check, and print or write; see the module's text."""
    console = Console(stderr=True)
    rows: list[HandOver] = []
    for name in only.split(",") if only else PLANS:
        with tempfile.TemporaryDirectory() as folder:
            rows += hand_overs(name, Path(folder))
        console.print(*(f"{row.plan} to {row.target}: {row.told}\n" for row in rows[-4:]))
    put_out(page(rows, str(write or "PAGE")), write)
    raise typer.Exit(1 if any(row.fault for row in rows) else 0)


if __name__ == "__main__":
    typer.run(main)
