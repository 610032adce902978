"""PyTorch's own pipeline runtime: a table, the modules of each stage, a script that trains by it.

The table is of computations alone; the runtime adds messages and reductions
(``_PipelineScheduleRuntime._load_csv(format="compute_only")``). The script stands in
``hand_over.launched``; a small layer stands in it for each of the model's.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from bubbleproof.costs.deployment import Deployment
from bubbleproof.formats.pytorch_writer import write_table
from bubbleproof.frameworks import TORCH_CLASSES
from bubbleproof.hand_over.handed import HandedFiles, HandedSchedule, require_untied
from bubbleproof.theory.families import Family, family
from bubbleproof.theory.families.interleaved import InterleavedOneForwardOneBackward

TABLE, STAGES, TRAIN, CHECK = "schedule.csv", "stages.json", "train.py", "check_training.py"
_SCRIPTS = "bubbleproof.hand_over.launched"


def torch_files(handed: HandedSchedule) -> HandedFiles:
    """Table, stages and scripts. Raises ``ValueError`` for what a table cannot say."""
    require_untied(handed, "torch")
    table, losses = table_of(handed)
    planned, ranks = handed.planned, handed.pipeline.num_ranks
    if planned is None:
        losses.append("the schedule tells no model: each stage is given one layer")
    else:
        losses += _of_deployment(planned.deployment)
    return HandedFiles(
        files={
            TABLE: table,
            STAGES: _stages(handed),
            TRAIN: _script("train"),
            CHECK: _script("check_training"),
        },
        start=f"torchrun --nproc-per-node {ranks} {TRAIN} --steps 10",
        losses=tuple(losses),
        has_table=True,
        checked=tuple(
            f"the order is that of PyTorch's class {name}, which builds it without a table"
            for name in classes_of(handed)
        ),
    )


def classes_of(handed: HandedSchedule) -> list[str]:
    """The schedule classes of torch that have the order, cell by cell, and take such sizes."""
    pipeline, ranks = handed.pipeline, handed.pipeline.num_ranks
    microbatches, chunks = pipeline.num_microbatches, pipeline.num_chunks
    own: dict[str, Family] = {"1F1B": family("1f1b"), "GPipe": family("gpipe")}
    if chunks > 1 and microbatches >= ranks:
        group = microbatches // (microbatches // ranks)
        own = {"Interleaved1F1B": InterleavedOneForwardOneBackward(group)}
    ours = handed.given.compute.orders(ranks)[:ranks]
    return [
        each.name
        for each in TORCH_CLASSES
        if handed.is_loop and each.name in own
        if not each.refusal(ranks=ranks, chunks=chunks, microbatches=microbatches)
        if not own[each.name].refusal(pipeline)
        if own[each.name].program(pipeline).orders(ranks)[:ranks] == ours
    ]


def table_of(handed: HandedSchedule) -> tuple[str, list[str]]:
    """The table of computations, and what it leaves out."""
    given = handed.given
    with TemporaryDirectory() as folder:
        path = Path(folder) / TABLE
        losses = write_table(path, given.compute, problem=given.problem, communication=False)
        return path.read_text(encoding="utf-8"), list(losses)


def _stages(handed: HandedSchedule) -> str:
    planned = handed.planned
    told = {
        "ranks": list(handed.pipeline.stage_ranks),
        "modules": handed.modules(),
        "microbatches": handed.pipeline.num_microbatches,
        "samples": planned.deployment.micro_batch if planned else 1,
    }
    return json.dumps(told, indent=1) + "\n"


def _script(name: str) -> str:
    """A script as it stands in the package, which in its folder is alone with the others."""
    text = (files(_SCRIPTS) / f"{name}.py").read_text(encoding="utf-8")
    return text.replace(f"from {_SCRIPTS}.train import", "from train import")


def _of_deployment(at: Deployment) -> list[str]:
    """What of a plan's deployment the script does not do."""
    found = []
    for name, size in (("tensor", at.tensor), ("context", at.context), ("expert", at.expert)):
        if size > 1:
            found.append(f"{name} = {size}: {TRAIN} does not cut inside a stage; wrap `part_of`")
    if at.data > 1:
        found.append(f"data = {at.data}: {TRAIN} runs one replica; wrap `part_of` by DDP or FSDP")
    if at.scope != "none":
        found.append(f"recompute {at.scope}: wrap the layers of `part_of` by torch's checkpoint")
    return found
