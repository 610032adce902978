"""What a replay has shown, as rows for people and as the exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_list, print_table

if TYPE_CHECKING:
    from bubbleproof.reference_exec.evidence.replay_report import ReplayReport


def print_report(name: str, report: ReplayReport, *, json: bool) -> int:
    """Print the evidence; the exit status."""
    if json:
        print_json({"name": name, **report.to_dict()})
    else:
        title = f"{name} (UNSAFE: run without being verified)" if report.unsafe else name
        print_table(title, ("evidence", "predicted", "measured", "verdict"), evidence(report))
        print_list("Not counted among live bytes", report.not_counted)
    return HOLDS if report.ok else BROKEN


def evidence(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    """(what, predicted, measured, verdict) rows."""
    if report.stopped:
        return _verification(report)
    return [*_verification(report), *_measurements(report), *_state_evidence(report)]


def _verification(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    """What a replay that was forced says of the rules, and what ended it."""
    rules = zip(report.broken_rules, report.violations, strict=True)
    rows = [(f"UNSAFE: {rule}", "holds before running", why, "violated") for rule, why in rules]
    if report.unsafe and not rows:
        rows = [("UNSAFE: all rules", "hold before running", "hold", "holds")]
    if report.stopped:
        rows.append(("the run", "comes to its end", report.stopped, "violated"))
    return rows


def _where(report: ReplayReport) -> str:
    ranks = f"{report.ranks} ranks"
    if report.zero:
        ranks = f"{report.data_parallel} replicas of {ranks}, ZeRO {report.zero}"
    elif report.data_parallel > 1:
        ranks = f"{report.data_parallel} whole replicas of {ranks}"
    return f"{report.backend}, {ranks}, {report.model} {report.dtype}"


def _each(report: ReplayReport) -> str:
    """What a row has one number for."""
    return "rank" if report.data_parallel == 1 else "rank, replica by replica"


def _measurements(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    rows = [
        (
            f"gradients ({_where(report)})",
            "equal bit for bit to each microbatch alone, summed in order",
            "equal" if report.gradients_equal else "different",
            "holds" if report.gradients_equal else "violated",
        ),
        (
            "losses",
            "equal bit for bit",
            "equal" if report.losses_equal else "different",
            "holds" if report.losses_equal else "violated",
        ),
        (
            "relative error to the ordinary float64 backward",
            f"at most {report.tolerance:.0e}",
            f"{report.max_relative_error:.1e}",
            "holds" if report.max_relative_error <= report.tolerance else "violated",
        ),
    ]
    peaks = [
        (
            f"peak live activation bytes per {_each(report)}",
            report.predicted_peak_bytes,
            report.measured_peak_bytes,
        )
    ]
    if report.steps:
        rows += _weights_evidence(report)
    elif report.num_updated_stages:
        rows.append(
            (
                f"weights of {report.num_updated_stages} stages that "
                f"{'shards' if report.zero else 'the host'} update{'s' * (not report.zero)}",
                "equal bit for bit to a step with the expected gradients",
                "equal" if report.weights_equal else "different",
                "holds" if report.weights_equal else "violated",
            )
        )
    if report.num_updated_stages:
        what = "gathered weights and gradients" if report.zero else "weights on the move"
        peaks = [(f"peak live bytes per {_each(report)}, {what} included", *peaks[0][1:])]
    if report.zero:
        peaks.append(
            (
                f"bytes of sharded and whole model state per {_each(report)}",
                report.predicted_state_bytes,
                report.measured_state_bytes,
            )
        )
    if report.predicted_host_peak_bytes:
        peaks.append(
            (
                "peak live bytes per rank's host",
                report.predicted_host_peak_bytes,
                report.measured_host_peak_bytes,
            )
        )
    if not report.counts_bytes:
        rows.append((peaks.pop(0)[0], "", "not counted", "not asked"))
    if report.data_dependence:
        name, *_ = peaks.pop(0)
        rows.append((name, "the same for all data", report.data_dependence, "violated"))
    for name, predicted, measured in peaks:
        verdict = "holds" if predicted == measured else "violated"
        rows.append((name, " ".join(map(str, predicted)), " ".join(map(str, measured)), verdict))
    has_model = report.traces and all(trace.predicted for trace in report.traces)
    if has_model and not report.data_dependence:
        rows.append(_bytes_of_actions(report))
    return rows


def _state_evidence(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    """Bytes of model state by rank, and by host where a host has any, where anything is stepped.

    Its parts are compared one by one.
    """
    if not report.steps and not report.num_updated_stages:
        return []
    places = [("rank", report.predicted_model_state, report.measured_model_state)]
    if any(state.weights for state in report.predicted_host_model_state):
        on_hosts = (report.predicted_host_model_state, report.measured_host_model_state)
        places.append(("rank's host", *on_hosts))
    return [
        (
            f"model state per {name}: weights, gradients, optimizer",
            " ".join(str(state.total) for state in predicted),
            " ".join(str(state.total) for state in measured),
            "holds" if predicted == measured else "violated",
        )
        for name, predicted, measured in places
    ]


def _bytes_of_actions(report: ReplayReport) -> tuple[str, str, str, str]:
    counted = sum(bool(samples) for trace in report.traces for samples in trace.live_bytes)
    off = [trace.told() for trace in report.traces if trace.num_differing]
    return (
        f"live bytes at each of {counted} actions",
        "the model's",
        "; ".join(off) or "equal",
        "violated" if off else "holds",
    )


def _weights_evidence(report: ReplayReport) -> list[tuple[str, str, str, str]]:
    when = "after a global barrier" if report.has_barrier else "stage by stage"
    error = report.max_weight_error
    return [
        (
            f"weights after {report.steps} steps of {report.optimizer}, {when}",
            "equal bit for bit to steps with the expected gradients",
            "equal" if report.weights_equal else "different",
            "holds" if report.weights_equal else "violated",
        ),
        (
            f"relative error to torch's {report.optimizer} in float64",
            f"at most {report.tolerance:.0e}",
            f"{error:.1e}",
            "holds" if error <= report.tolerance else "violated",
        ),
    ]
