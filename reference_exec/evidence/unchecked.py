"""What a replay does not show, in sentences that stand in its report. Loads no torch."""

from __future__ import annotations

from bubbleproof.reference_exec.evidence.replay_report import ReplayReport

_ALWAYS = (
    "Durations: the measured times are shown beside the predicted ones, not compared with them.",
    "What is written after the last action: weights are compared as passes begin and end.",
    "Other sizes, other data: one model ran, on the data of its seed.",
)
_BACKENDS = {
    "virtual": (
        "Real messages: ranks took turns in one process, in one of many possible interleavings, "
        "under one semantics.",
    ),
    "gloo": (
        "Stricter semantics than gloo's: its sends never wait. What NCCL would wait for was "
        "verified at most, not run.",
    ),
    "nccl": ("Orders that the GPUs did not happen to take.",),
}


def not_checked(report: ReplayReport) -> tuple[str, ...]:
    """One sentence for each thing that this replay leaves open."""
    found = [*report.alike, *report.added_first, *_BACKENDS.get(report.backend, ()), *_ALWAYS]
    if not report.steps and not report.num_updated_stages:
        found.append("Optimizer steps: gradients were compared, no weight was updated.")
    if report.device == "cpu":
        found.append("GPUs: all ran on the processor.")
    if report.traces and not all(trace.predicted for trace in report.traces):
        found.append("Bytes of each action: the model was asked for the peaks alone.")
    if report.unsafe:
        found.append("Verification was not required to hold (--unsafe).")
    if report.stopped:
        found.append("Everything after the run stopped.")
    return tuple(found)
