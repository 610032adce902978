"""The proofs of a fresh clone, and a plan as a theorem: what the commands print, as a page.

    python -m benchmarks.coq_record [--write records/coq.md]

The last commit is cloned into a new folder and ``make proofs`` is run there. A problem is then
solved, and its schedule and certificate are written as a theorem, which Coq compiles; the same file
with its bound raised by one has to be refused. Needs Coq.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from benchmarks.markdown import put_out
from bubbleproof.reference_exec.evidence.machine_versions import this_machine

ROOT = Path(__file__).parents[1]
PROBLEM = """\
ranks = 4
microbatches = 12

[durations]  # ticks of each rank's stage
forward = [3, 9, 2, 4]
backward = [5, 11, 7, 8]

[memory]
capacity = 4
activation = 1
"""
SOLVE = "bubbleproof solve problem.toml -o best.json --certificate best-proof.json"
VERIFY = "bubbleproof verify best.json --certificate best-proof.json --coq Optimal.v"
COMPILE = "coqc -Q build/proofs Bubbleproof Optimal.v"
PLAN = """\
ranks = 3
microbatches = 6

[durations]  # of each rank's work, all chunks and slices together
forward = [4, 6, 2]
input = [4, 6, 4]
weight = [4, 4, 2]

[memory]
capacity = 8
activation = 2

[plan]
chunks = [1, 2]
placements = ["loop", "wave"]
backward = ["whole", "split"]
"""
PLAN_STEPS = (
    "bubbleproof plan plan.toml -o plan --certificate plan-proofs.json",
    "bubbleproof verify plan --certificate plan-proofs.json --coq Plan.v",
    "coqc -Q build/proofs Bubbleproof Plan.v",
)
RAISED = "Raised.v"  # the same with its bound raised by one
TEXT = """\
# The Coq proofs, and a plan as a theorem

Made by `python -m benchmarks.coq_record` from a fresh clone of the last commit. What the theorems
say, and what they leave out, stands in [proofs/README.md](../proofs/README.md).

{machine}

## `make proofs`

```text
{proofs}```

## A plan of one's own

```toml
{problem}```

{steps}The theorems of `Optimal.v`, which Coq computes and prints what they rest on:

```coq
{theorems}
```

## With the bound raised by one

{refused}
## A plan, optimal over its choices

```toml
{plan}```

{plan_steps}The theorems of `Plan.v`:

```coq
{plan_theorems}
```

With the bound raised by one:

{plan_refused}"""


def main(write: Path | None = None) -> None:
    """Run everything and write the page."""
    with TemporaryDirectory() as folder:
        put_out(page(Path(folder) / "bubbleproof"), write)


def page(clone: Path) -> str:
    """The page, of a clone that is made at ``clone``."""
    said(["git", "clone", "--quiet", str(ROOT), str(clone)], ROOT)
    proofs = said(["make", "--no-print-directory", "proofs"], clone)
    (clone / "problem.toml").write_text(PROBLEM)
    steps = [_step(line, clone) for line in (SOLVE, VERIFY, COMPILE)]
    theorem = (clone / "Optimal.v").read_text()
    (clone / RAISED).write_text(raised(theorem))
    return TEXT.format(
        machine=f"{this_machine(('bubbleproof',))}, {_coq_version()}.",
        proofs=proofs,
        problem=PROBLEM,
        steps="".join(steps),
        theorems="\n\n".join(theorems(theorem)),
        refused=_refused(clone),
        plan=PLAN,
        **_planned(clone),
    )


def _refused(clone: Path) -> str:
    """What Coq says of the file whose bound is raised by one."""
    return _step(COMPILE.replace("Optimal.v", RAISED), clone, status=1).rstrip() + "\n"


def _planned(clone: Path) -> dict[str, str]:
    """A plan as a theorem, and with its bound raised by one."""
    (clone / "plan.toml").write_text(PLAN)
    steps = [_step(line, clone) for line in PLAN_STEPS]
    theorem = (clone / "Plan.v").read_text()
    (clone / RAISED).write_text(raised(theorem))
    return {
        "plan_steps": "".join(steps),
        "plan_theorems": "\n\n".join(theorems(theorem)),
        "plan_refused": _refused(clone),
    }


def _step(line: str, folder: Path, status: int = 0) -> str:
    words = line.split()
    command = [sys.executable, "-m", *words] if words[0] == "bubbleproof" else words
    return f"```text\n$ {line}\n{said(command, folder, status)}```\n\n"


def said(command: list[str], folder: Path, status: int = 0) -> str:
    """What a command prints. Raises ``ChildProcessError`` where it ends with another status."""
    environment = {**os.environ, "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode != status:
        raise ChildProcessError(f"{command} ended with {done.returncode}: {done.stdout}")
    lines = done.stdout.replace(str(folder), ".").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def theorems(text: str) -> list[str]:
    """The statements, without the data before them and the proofs behind them."""
    return re.findall(r"^Theorem .*?\.$", text, re.DOTALL | re.MULTILINE)


def raised(text: str) -> str:
    """The same file, where no schedule takes less than one tick more."""
    bound = r"(?<=^  )\d+(?= <= last - first)|(?<=candidate_takes space bundle )\d+"
    changed, count = re.subn(bound, lambda found: f"{int(found[0]) + 1}", text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"expected one bound in the theorem, found {count}")
    return changed


def _coq_version() -> str:
    said = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=True)
    return "Coq " + said.stdout.split("version ")[1].split()[0]


if __name__ == "__main__":
    typer.run(main)
