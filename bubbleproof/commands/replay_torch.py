"""``bubbleproof replay SCHEDULE --backend torch-runtime``: PyTorch's own runtime beside ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.commands.inputs import read_schedule_input
from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, say
from bubbleproof.commands.replay_options import ReplayRequest
from bubbleproof.commands.torch_limits import room_needed
from bubbleproof.reference_exec.drivers.gloo_server import start_server
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
    except RuntimeError as error:  # a failed process; its message says which and where
        say(str(error))
        if request.output.json:
            print_json({"name": given.name, "ok": False, "failures": [str(error)]})
        return BROKEN
    if request.output.json:
        print_json({"name": given.name, **report.to_dict()})
    else:
        print_table(given.name, ("evidence", "expected", "found", "verdict"), evidence(report))
    return HOLDS if report.ok else BROKEN


def evidence(report: TorchRuntimeReport) -> list[tuple[str, str, str, str]]:
    """(what, expected, found, verdict) rows."""
    where = f"PyTorch {report.torch_version}, {report.ranks} ranks, {report.model} {report.dtype}"
    ours = "equal" if report.gradients_equal else f"{len(report.differing)} differ"
    if not report.gradients_equal and report.reordered_stages:
        stages = " ".join(map(str, report.reordered_stages))
        ours += f": norms and biases of stages {stages} are summed in another order"
    return [
        (
            "our own replay",
            "keeps its promises",
            *_judged(report.replay_ok, "kept", "broken"),
        ),
        (
            f"gradients ({where})",
            "equal bit for bit to ours, where sums have our order",
            ours,
            "holds" if report.gradients_equal or report.reordered_stages else "violated",
        ),
        (
            "gradients",
            "equal bit for bit to each microbatch alone, summed in PyTorch's order",
            *_judged(report.gradients_as_added, "equal", "different"),
        ),
        ("losses", "equal bit for bit", *_judged(report.losses_equal, "equal", "different")),
    ]


def _judged(holds: bool, right: str, wrong: str) -> tuple[str, str]:
    return (right, "holds") if holds else (wrong, "violated")
