"""``bubbleproof replay SCHEDULE --backend torch-runtime``: PyTorch's own runtime beside ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.commands.evidence import equal_row, print_failure, row_of
from bubbleproof.commands.inputs import read_schedule_input
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, say
from bubbleproof.commands.replay_options import ReplayRequest
from bubbleproof.commands.torch_limits import room_needed
from bubbleproof.reference_exec.drivers.gloo_server import start_server
from bubbleproof.report.table_rows import ReplayRow
from bubbleproof.verify.communication.matching import Semantics

if TYPE_CHECKING:
    from bubbleproof.reference_exec.pytorch.runtime import TorchRuntimeReport

BACKEND = "torch-runtime"
WORKER = "bubbleproof.reference_exec.pytorch.worker"  # what each of its processes needs


def run_replay_torch(request: ReplayRequest) -> int:
    """Replay by both executors and compare; status 1 where bits differ without a reason.

    Raises ``ValueError`` for what is not verified or what a PyTorch table cannot say, and
    ``ModuleNotFoundError`` without torch.
    """
    given = read_schedule_input(request.schedule, dialect=request.run.dialect)
    start_server("bubbleproof.cli", WORKER)  # which loads torch while this process does
    from bubbleproof.reference_exec.pytorch.runtime import compare_with_torch_runtime

    try:
        with room_needed():
            report = compare_with_torch_runtime(
                given.known_pipeline,
                given.timed(),
                request.model.spec(),
                program=given.program if given.has_communication else None,
                semantics=request.communication.comm or Semantics.BUFFERED,
                timeout=request.communication.timeout,
                progress=None if request.output.json else say,
            )
    except RuntimeError as error:  # a failed process
        return print_failure(given.name, str(error), json=request.output.json)
    if request.output.json:
        print_json({"name": given.name, **report.to_dict()})
    else:
        print_table(given.name, ("evidence", "expected", "found", "verdict"), evidence(report))
    return HOLDS if report.ok else BROKEN


def evidence(report: TorchRuntimeReport) -> list[ReplayRow]:
    """What was expected of both executors, and what was found."""
    where = f"PyTorch {report.torch_version}, {report.ranks} ranks, {report.model} {report.dtype}"
    ours = "equal" if report.gradients_equal else f"{len(report.differing)} differ"
    if not report.gradients_equal and report.reordered_stages:
        stages = " ".join(map(str, report.reordered_stages))
        ours += f": norms and biases of stages {stages} are summed in another order"
    kept = "kept" if report.replay_ok else "broken"
    alone = "equal bit for bit to each microbatch alone, summed in PyTorch's order"
    return [
        row_of("our own replay", "keeps its promises", kept, report.replay_ok),
        row_of(
            f"gradients ({where})",
            "equal bit for bit to ours, where sums have our order",
            ours,
            bool(report.gradients_equal or report.reordered_stages),
        ),
        equal_row("gradients", alone, report.gradients_as_added),
        equal_row("losses", "equal bit for bit", report.losses_equal),
    ]
