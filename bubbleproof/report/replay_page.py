"""One self-contained HTML page about a replay: what it showed, when ranks ran, what they held.

Predicted and measured stand one above the other on one time axis. The bytes that ranks held stand
beside those that the memory model puts there, a panel per rank: along x the samples of the rank's
program in its order, along y live activation bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bubbleproof.formats.files import FilePath
from bubbleproof.reference_exec.evidence.measured import measured_schedule
from bubbleproof.reference_exec.evidence.replay_record import not_checked
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.runtime.trace import RankTrace
from bubbleproof.report.amounts import Scale
from bubbleproof.report.document import replay_rows, replay_table
from bubbleproof.report.html import escape, paragraph, preformatted, section
from bubbleproof.report.page import ReportPage, ScheduleSection, write_page
from bubbleproof.report.plot_svg import AxisRange, SvgPlot, key
from bubbleproof.report.replay_json import ReplayAccount

BYTES_NOTE = (
    "Live activation bytes, each storage once, as each action ends (a forward that drops what it "
    "saved also before it does). The wide line is the memory model, the thin one was measured."
)
_CLOCKS = {
    "virtual": "Ranks took turns in one process: no two bars overlap in time, and the whole is as "
    "long as all ranks' work together.",
    "gloo": "Each rank is a process; all read the machine's one monotonic clock. A bar begins "
    "where its action had the message it waited for.",
    "nccl": "Times of the host's calls, by each machine's own monotonic clock; a GPU computes "
    "later than it is told to.",
}

MAX_PANELS = 16
_PANEL = 150  # pixels
MOST_SAMPLES = 4_000  # of a panel; of more the highest of each run is drawn
_MODEL, _MEASURED = "#c7a24c", "#2f62b8"


def write_replay_page(path: FilePath, told: ReplayAccount) -> None:
    """Write the page, replacing the file whole or not at all."""
    write_page(path, replay_page(told))


def replay_page(told: ReplayAccount) -> ReportPage:
    """The page: predicted and measured are drawn; the prediction alone where nothing ran."""
    report, machine = told.report, told.machine
    named = [("as scheduled", (told.problem, told.schedule))]
    if report.traces:
        measured = measured_schedule(told.problem, told.schedule, report.traces)
        named.insert(0, ("as it ran", measured))
    here = f"{machine.cores} cores ({machine.processor}), {machine.memory_text}"
    return ReportPage(
        title=f"Replay of {told.name}",
        headline=_headline(report),
        summary=_summary(report, told.spec),
        parts=tuple(_parts(report)),
        sections=tuple(ScheduleSection(name=n, problem=p, schedule=s) for n, (p, s) in named),
        versions=(*machine.versions.items(), ("machine", here)),
        num_shown=len(named),
    )


def _parts(report: ReplayReport) -> Iterator[str]:
    """What a clock is, the evidence, live bytes, and what was not counted or checked."""
    if report.traces:
        first = " Of the replicas it is the first." * (report.data_parallel > 1)
        yield paragraph(_CLOCKS[report.backend] + first, css="soft")
    failures = map(preformatted, report.failures)
    yield section("Evidence", replay_table(replay_rows(report)), *failures)
    if report.traces:
        shown = [paragraph(BYTES_NOTE), *live_bytes_panels(report.traces)]
        if len(report.traces) > MAX_PANELS:
            note = f"The first {MAX_PANELS} of {len(report.traces)} ranks."
            shown.append(paragraph(note, css="note"))
        yield section("Live bytes", *shown)
    for title, lines in (
        ("What is not counted among live bytes", report.not_counted),
        ("What is not counted as work", report.not_counted_work),
        ("What was not checked", not_checked(report)),
    ):
        if lines:
            items = "".join(f"<li>{escape(line)}</li>" for line in lines)
            yield section(title, f"<ul>{items}</ul>")


def _headline(report: ReplayReport) -> str:
    """What it came to, in a line."""
    if report.ok:
        return f"All is as predicted: {report.microbatches} microbatches on {_processes(report)}."
    return f"{len(report.failures)} comparisons differ, see below."


def _processes(report: ReplayReport) -> str:
    replicas = f"{report.data_parallel} replicas of " if report.data_parallel > 1 else ""
    return f"{replicas}{report.ranks} ranks"


def _summary(report: ReplayReport, spec: ModelSpec) -> tuple[tuple[str, str], ...]:
    shape = f"batch {spec.batch}, sequence {spec.sequence}, hidden {spec.hidden}"
    unsafe = " UNSAFE: run without being verified." if report.unsafe else ""
    return (
        ("verdict", ("all as predicted" if report.ok else "not as predicted") + unsafe),
        ("ran on", f"{report.backend}, {report.device}, {_processes(report)}"),
        ("communication", ": ".join(filter(None, (report.semantics, report.semantics_why)))),
        ("pipeline", f"{report.stages} stages, {report.microbatches} microbatches"),
        ("model", f"{spec.kind}, {shape}, layers {spec.layers}, {report.precision}"),
        ("seeds", f"interleaving {report.seed}, model and data {spec.seed}"),
        ("losses", " ".join(f"{loss:.6g}" for loss in report.losses[:16])),
        ("seconds", f"{report.seconds:.3f}, start of the ranks included"),
    )


def live_bytes_panels(traces: Sequence[RankTrace]) -> list[str]:
    """A chart for each of the first ``MAX_PANELS`` ranks. Precondition: there is a rank."""
    shown = list(traces[:MAX_PANELS])
    scale = Scale.of("byte", max(_top(trace) for trace in shown))
    legend = key([(_MODEL, "model"), (_MEASURED, "measured")])
    return [legend, *(_panel(trace, scale) for trace in shown)]


def _panel(trace: RankTrace, scale: Scale) -> str:
    """Bytes by sample: the memory model as a wide line, what was measured as a thin one above."""
    samples = [count for own in trace.live_bytes for count in own]
    model = [count for own in trace.predicted for count in own]
    across = AxisRange(0, max(len(samples), len(model), 2) - 1, "sample, in program order")
    top = max(_top(trace), 1) / scale.divisor
    upright = AxisRange(0, top * 1.08, f"{trace.name} ({scale.name})")
    plot = SvgPlot(across, upright, height=_PANEL)
    plot.stairs(_stairs(model, scale), _MODEL, width=5)
    plot.stairs(_stairs(samples, scale), _MEASURED, width=1.4)
    return plot.text


def _stairs(counts: Sequence[int], scale: Scale) -> list[tuple[float, float]]:
    run = -(-len(counts) // MOST_SAMPLES) if counts else 1
    return [(at, max(counts[at : at + run]) / scale.divisor) for at in range(0, len(counts), run)]


def _top(trace: RankTrace) -> int:
    return max((count for own in (*trace.live_bytes, *trace.predicted) for count in own), default=0)
