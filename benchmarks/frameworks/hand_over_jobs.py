"""Ten jobs handed to torchtitan and Automodel, and read there by the frameworks' own code.

``python -m benchmarks.frameworks.hand_over_jobs FOLDER`` plans each job for each framework, hands
the plan over, and asks the wheels (``wheels``): what was written is loaded, or the job is refused
by name, where it is planned. It prints a table, records it beside this file, and ends with status 1
where a reader refuses what was written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import bubbleproof as bp
from benchmarks.frameworks.wheels import answers, environment, unpacked
from bubbleproof.formats.plans.plan_json import read_plan
from bubbleproof.frameworks import framework_named
from bubbleproof.hand_over.automodel_target import CONFIG as YAML
from bubbleproof.hand_over.handed_over import handed_schedule
from bubbleproof.hand_over.targets_list import handed_to
from bubbleproof.hand_over.torchtitan_target import CONFIG, WORDS
from bubbleproof.planners.cluster_planned import NoClusterPlan

RECORD = Path(__file__).with_name("answers") / "jobs.json"
TARGETS = {
    "torchtitan-0.3": "torchtitan==0.3.0",
    "torchtitan-0.2": "torchtitan==0.2.2",
    "automodel-0.7": "nemo-automodel==0.7.0",
}
MIXTURE = """family = "mixture"
layers = 48
hidden = 2048
heads = 32
kv_heads = 4
head_width = 128
feed_forward = 768
vocabulary = 151936
experts = 128
experts_per_token = 8"""


def job(model: str, cards: int, samples: int, plan: str) -> str:
    """The text of a file; of its framework nothing is said yet."""
    told = model if "=" in model else f'name = "{model}"'
    return (
        f"[model]\n{told}\n[cluster]\ncard = 'h100'\ncards = {cards}\n[batch]\n"
        f"samples = {samples}\nsequence = 2048\n[plan]\nframework = 'TARGET'\n"
        f"micro_batch = [1]\n{plan}"
    )


JOBS = {
    "no pipeline": job("llama-2-7b", 8, 16, "pipeline=[1]\ntensor=[2]\nzero=[2,3]\n"),
    "1F1B": job("llama-3-8b", 8, 16, "pipeline=[4]\ntensor=[2]\nchunks=[1]\nzero=[2]\n"),
    "chunks, uneven": job("llama-3-8b", 16, 64, "pipeline=[4]\nchunks=[3]\ntensor=[2]\nzero=[2]\n"),
    "weights shared": job("llama-3-8b", 16, 64, "pipeline=[2]\ntensor=[1]\nzero=[3]\nchunks=[2]\n"),
    "context": job("llama-3-8b", 16, 32, "pipeline=[4]\ncontext=[2]\ntensor=[2]\nzero=[2]\n"),
    "recomputed": job("llama-3-70b", 64, 64, "pipeline=[8]\ntensor=[8]\nscope=['full']\n"),
    "experts": job(MIXTURE, 32, 64, "pipeline=[4]\ntensor=[1]\nexpert=[8]\nchunks=[2]\n"),
    "split, a V": job(
        "llama-2-7b", 8, 16,
        "pipeline=[4]\ntensor=[2]\nplacements=['wave']\nchunks=[2]\nbackward=['split']\n",
    ),
    "few microbatches": job("llama-2-7b", 16, 8, "pipeline=[4]\ntensor=[1]\ndata=[4]\n"),
    "tied": job("llama-3.2-1b", 8, 16, "pipeline=[4]\ntensor=[2]\n"),
    "learned positions": job("gpt3-6.7b", 16, 32, "pipeline=[4]\ntensor=[4]\n"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job and a target: the deployment that was planned, and ``loaded`` or why it is ``refused``.

    ``fault`` is what the reader says of files that were written.
    """

    job: str
    target: str
    deployment: str = ""
    loaded: str = ""
    refused: str = ""
    fault: str = ""


def written(text: str, target: str, folder: Path) -> tuple[str, int, Mapping[str, str]]:
    """The deployment of a job's plan, its cards and the files that hand-over writes of it.

    Raises ``ValueError`` where it is refused.
    """
    file = folder / "job.toml"
    file.write_text(text.replace("TARGET", target), encoding="utf-8")
    found = bp.plan(file, work=1)
    if isinstance(found, NoClusterPlan):
        raise ValueError(found.rows[0].reason)
    bp.write(folder / "plan", found)
    plan = read_plan(folder / "plan" / "plan.json")
    handed = handed_schedule(plan)
    devices = handed.require_plan(target).deployment.devices
    return f"{plan.deployment}, {plan.winner}", devices, handed_to(target, handed).files


def row_of(name: str, target: str, folder: Path) -> tuple[JobRow, list[object]]:
    """The row of a job, and what its target's reader is to be asked."""
    folder.mkdir(parents=True)
    try:
        deployment, cards, files = written(JOBS[name], target, folder)
    except ValueError as refused:
        return JobRow(job=name, target=target, refused=str(refused).rpartition("job.toml: ")[2]), []
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    words = {
        "torchtitan": files.get(WORDS, "").split(),
        "torchtitan-toml": ["--job.config_file", CONFIG],
        "automodel": [YAML],
    }[framework_named(target, "job").family]
    script = f"read_{framework_named(target, 'job').product}"
    return JobRow(job=name, target=target, deployment=deployment), [
        script, str(folder), [str(cards), *words],
    ]  # fmt: skip


def rows_of(target: str, python: Path, packages: Path, folder: Path) -> list[JobRow]:
    """All jobs for a target, each loaded by its own reader or refused."""
    asked = [row_of(name, target, folder / target / str(at)) for at, name in enumerate(JOBS)]
    told = iter(answers(python, packages, "read_wheel", [each for _, each in asked if each]))
    found = []
    for row, question in asked:
        answer = next(told) if question else {}
        loaded = f"{TARGETS[target]}, {answer.get('version')}" if "told" in answer else ""
        fault = answer.get("refused", "")
        found.append(JobRow(**{**asdict(row), "loaded": loaded, "fault": fault}))
    return found


def main() -> None:
    """Plan, hand over, ask, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    python, rows = environment(folder), list[JobRow]()
    with TemporaryDirectory() as place:
        for target, wanted in TARGETS.items():
            rows += rows_of(target, python, unpacked(python, folder, wanted), Path(place))
    for row in rows:
        told = row.fault or row.refused or f"loaded by {row.loaded}"
        sys.stdout.write(f"{row.job} | {row.target} | {row.deployment} | {told}\n")
    RECORD.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    RECORD.write_text(f"[\n{lines}\n]\n")
    sys.exit(any(row.fault for row in rows))


if __name__ == "__main__":
    main()
