"""What a replay has shown, as rows for people and as the exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_list, print_table, say
from bubbleproof.report.table_rows import ReplayRow

if TYPE_CHECKING:
    from bubbleproof.reference_exec.evidence.replay_report import RankComparison, ReplayReport
    from bubbleproof.reference_exec.pytorch.runtime import TorchRuntimeReport


def print_report(name: str, report: ReplayReport, *, json: bool) -> int:
    """Print the evidence; the exit status."""
    if json:
        print_json({"name": name, **report.to_dict()})
    else:
        title = f"{name} (UNSAFE: run without being verified)" if report.unsafe else name
        print_table(title, ("evidence", "predicted", "measured", "verdict"), evidence(report))
        print_list("Not as the model's configuration has it", report.model_notes)
        print_list("Of the stages", report.weight_backward)
        print_list("Not shown by gradients and losses", report.alike)
        print_list("Not counted among live bytes", report.not_counted)
        print_list("Not counted as work", report.not_counted_work)
    return HOLDS if report.ok else BROKEN


def print_failure(name: str, why: str, *, json: bool) -> int:
    """Say why a run ended before it had shown anything: which rank, and where. The exit status."""
    say(why)
    if json:
        print_json({"name": name, "ok": False, "failures": [why]})
    return BROKEN


def evidence(report: ReplayReport) -> list[ReplayRow]:
    """A row for each thing that was predicted and measured."""
    if report.stopped:
        return _verification(report)
    return [
        *_verification(report),
        *_semantics(report),
        *_sums(report),
        *_updates(report),
        *_work(report),
        *_births(report),
        *_peaks(report),
        *_actions(report),
        *_state(report),
    ]


def _row(what: str, predicted: str, measured: str, holds: bool) -> ReplayRow:
    """A row that holds or is violated."""
    return ReplayRow(what, predicted, measured, "holds" if holds else "violated")


def _equal(what: str, predicted: str, is_equal: bool) -> ReplayRow:
    """A row of what is equal or different."""
    return _row(what, predicted, "equal" if is_equal else "different", is_equal)


def _error(report: ReplayReport, to: str, error: float) -> ReplayRow:
    at_most = f"at most {report.tolerance:.0e}"
    return _row(f"relative error to {to}", at_most, f"{error:.1e}", error <= report.tolerance)


def _nearness(report: ReplayReport) -> ReplayRow:
    """The gradients beside float64: undecidable where rounding may hide a microbatch."""
    row = _error(report, "the ordinary float64 backward", report.max_relative_error)
    if not report.rounded_to:
        return row
    share = f"a microbatch brings {report.smallest_share:.0e} or more"
    derived = f"at most {report.tolerance:.0e} by rounding to {report.rounded_to}; {share}"
    return row._replace(
        predicted=derived, verdict=row.verdict if report.is_decidable else "undecidable"
    )


def _verification(report: ReplayReport) -> list[ReplayRow]:
    """What a replay that was forced says of the rules, and what ended it."""
    rules = zip(report.broken_rules, report.violations, strict=True)
    rows = [_row(f"UNSAFE: {rule}", "holds before running", why, False) for rule, why in rules]
    if report.unsafe and not rows:
        rows = [_row("UNSAFE: all rules", "hold before running", "hold", True)]
    if report.stopped:
        rows.append(_row("the run", "comes to its end", report.stopped, False))
    return rows


def _semantics(report: ReplayReport) -> list[ReplayRow]:
    """What NCCL keeps, and so what the program was verified under."""
    if not report.semantics_why:
        return []
    return [_row("communication", f"verified under {report.semantics}", report.semantics_why, True)]


def _where(report: ReplayReport) -> str:
    ranks = f"{report.ranks} ranks"
    if report.zero:
        ranks = f"{report.data_parallel} replicas of {ranks}, ZeRO {report.zero}"
    elif report.data_parallel > 1:
        ranks = f"{report.data_parallel} whole replicas of {ranks}"
    return f"{report.backend}, {ranks}, {report.model} {report.precision}"


def _sums(report: ReplayReport) -> list[ReplayRow]:
    """Gradients and losses."""
    alone = "equal bit for bit to each microbatch alone, summed in order"
    return [
        _equal(f"gradients ({_where(report)})", alone, report.gradients_equal),
        _equal("losses", "equal bit for bit", report.losses_equal),
        _nearness(report),
    ]


def _updates(report: ReplayReport) -> list[ReplayRow]:
    """Weights after the steps, or after those of the hosts."""
    if report.steps:
        when = "after a global barrier" if report.has_barrier else "stage by stage"
        clip = "" if report.clip is None else f", gradients clipped to norm {report.clip:g}"
        of = f" of {report.accumulate} passes each" if report.accumulate > 1 else ""
        scale = f", loss scaled by {report.loss_scale}" if report.loss_scale else ""
        what = f"weights after {report.steps} steps of {report.optimizer}{of}, {when}{clip}{scale}"
        if skipped := report.skipped_steps:
            what += f"; skipped for what is not finite: step {', '.join(map(str, skipped))}"
        expected = "equal bit for bit to steps with the expected gradients"
        row = _error(report, f"torch's {report.optimizer} in float64", report.max_weight_error)
        if report.rounded_to:
            row = row._replace(predicted="", verdict="undecidable")
        return [_equal(what, expected, report.weights_equal), row]
    if not report.num_updated_stages:
        return []
    who = "shards update" if report.zero else "the host updates"
    what = f"weights of {report.num_updated_stages} stages that {who}"
    expected = "equal bit for bit to a step with the expected gradients"
    return [_equal(what, expected, report.weights_equal)]


def _work(report: ReplayReport) -> list[ReplayRow]:
    """What each action of each pass computed, and to how many gradients it added."""
    passes = max((rank.num_passes for rank in report.work), default=0)
    actions = sum(len(rank.actions) for rank in report.work)
    each = f"at each of {actions} actions" + (f" of {passes} passes" if passes > 1 else "")
    if report.work_dependence:
        return [_row(f"work {each}", "the same for all data", report.work_dependence, False)]
    if not report.counts_work:
        return [ReplayRow("work at each action", "", "not counted", "not asked")]
    rows = []
    for quantity, what, expected in (
        ("flops", "floating-point operations", "the model's"),
        ("gradients", "gradients added to", "those of its kind"),
    ):
        off = report.work_failures(quantity)
        rows.append(_row(f"{what} {each}", expected, "; ".join(off) or "equal", not off))
    return rows


def _births(report: ReplayReport) -> list[ReplayRow]:
    """What was there as ranks were made: weights, constants, the data of the batch."""
    if not report.counts_bytes:
        return []
    rows = [_bytes("bytes that each rank begins with", report.born_bytes)]
    if any(report.host_born_bytes.predicted):
        rows.append(_bytes("bytes that each rank's host begins with", report.host_born_bytes))
    return rows


def _peaks(report: ReplayReport) -> list[ReplayRow]:
    """The most bytes that are live at once, by rank and by host."""
    each = "rank" if report.data_parallel == 1 else "rank, replica by replica"
    what = f"peak live activation bytes per {each}"
    if report.num_updated_stages:
        more = "gathered weights and gradients" if report.zero else "weights on the move"
        what = f"peak live bytes per {each}, {more} included"
    rows: list[ReplayRow] = []
    if not report.counts_bytes:
        rows.append(ReplayRow(what, "", "not counted", "not asked"))
    if report.data_dependence:
        rows.append(_row(what, "the same for all data", report.data_dependence, False))
    if not rows:
        rows.append(_bytes(what, report.peak_bytes))
    if report.zero:
        what = f"bytes of sharded and whole model state per {each}"
        rows.append(_bytes(what, report.state_bytes))
    if report.host_peak_bytes.predicted:
        rows.append(_bytes("peak live bytes per rank's host", report.host_peak_bytes))
    return rows


def _bytes(what: str, compared: RankComparison[int]) -> ReplayRow:
    measured, predicted = compared
    expected, found = (" ".join(map(str, counts)) for counts in (predicted, measured))
    return _row(what, expected, found, predicted == measured)


def _actions(report: ReplayReport) -> list[ReplayRow]:
    """Live bytes at each action of each pass, where the model says something of every rank's."""
    rows = []
    for of_hosts, whose in ((False, "live bytes"), (True, "live bytes per rank's host")):
        accounts = report.accounts(of_hosts=of_hosts)
        if not accounts or not all(account.predicted for account in accounts):
            continue
        counted = sum(bool(samples) for account in accounts for samples in account.live_bytes)
        off = [text for account in accounts if (text := account.told())]
        passes = f" of {len(report.passes)} passes" if len(report.passes) > 1 else ""
        what = f"{whose} at each of {counted} actions{passes}"
        rows.append(_row(what, "the model's", "; ".join(off) or "equal", not off))
    return rows


def _state(report: ReplayReport) -> list[ReplayRow]:
    """Bytes of model state by rank, and by host where a host has any, where anything is stepped.

    Its parts are compared one by one.
    """
    if not report.steps and not report.num_updated_stages:
        return []
    places = [("rank", report.model_state)]
    if any(state.weights for state in report.host_model_state.predicted):
        places.append(("rank's host", report.host_model_state))
    return [
        _row(
            f"model state per {name}: weights, gradients, optimizer",
            " ".join(str(state.total) for state in predicted),
            " ".join(str(state.total) for state in measured),
            predicted == measured,
        )
        for name, (measured, predicted) in places
    ]


def torch_evidence(report: TorchRuntimeReport) -> list[ReplayRow]:
    """What was expected of our ranks and of PyTorch's runtime, and what was found."""
    where = f"PyTorch {report.torch_version}, {report.ranks} ranks, {report.model} {report.dtype}"
    ours = "equal" if report.gradients_equal else f"{len(report.differing)} differ"
    if not report.gradients_equal and report.reordered_stages:
        stages = " ".join(map(str, report.reordered_stages))
        ours += f": norms and biases of stages {stages} are summed in another order"
    kept = "kept" if report.replay_ok else "broken"
    alone = "equal bit for bit to each microbatch alone, summed in PyTorch's order"
    return [
        _row("our own replay", "keeps its promises", kept, report.replay_ok),
        _row(
            f"gradients ({where})",
            "equal bit for bit to ours, where sums have our order",
            ours,
            bool(report.gradients_equal or report.reordered_stages),
        ),
        _equal("gradients", alone, report.gradients_as_added),
        _equal("losses", "equal bit for bit", report.losses_equal),
    ]
