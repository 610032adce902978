"""Readers under the fuzzer: each with its files to begin from, and what counts as a finding.

A reader is given a file's bytes and ends in a value, or in a ``ValueError`` of one line of at most
``LONGEST_LINE`` characters. ``finding`` tells what else it did, by the error's name and the line of
ours that it came from.
"""

from __future__ import annotations

import gzip
import json
import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bubbleproof.commands.serving.judged_view import JudgedView, judged_view
from bubbleproof.commands.serving.offered_schedules import OfferedSchedule
from bubbleproof.commands.serving.view_request import ViewRequest, read_request
from bubbleproof.door_files import read
from bubbleproof.formats import (
    ScheduleFile,
    infer_pipeline,
    read_certificate,
    read_problem,
    read_schedule,
    write_schedule,
)
from bubbleproof.formats.certificate_json import certificate_content
from bubbleproof.formats.clusters.cluster_toml import read_cluster_file
from bubbleproof.formats.clusters.hardware_toml import CALIBRATED, read_hardware, read_rows
from bubbleproof.formats.clusters.model_toml import read_model
from bubbleproof.formats.flight_recorder import read_dump
from bubbleproof.formats.inference import read_timed_table
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.formats.plans.bundle_json import read_bundle
from bubbleproof.formats.plans.plan_json import read_plan
from bubbleproof.formats.pytorch_csv import Dialect, read_table
from bubbleproof.report.page import ReportPage, ScheduleSection, render
from bubbleproof.theory.families import member
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.traces.span_names import read_names
from bubbleproof.traces.trace_spans import read_trace
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.crossings import Crossings
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindow, MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from bubbleproof.verify.certificates.volume import Volume

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
ROWS = Path(__file__).with_name("h100_rows.csv")
LONGEST_LINE = 1000
PROBLEM = Pipeline(num_ranks=2, num_microbatches=3, capacity=2).problem()
NAMES = """\
[[span]]
pattern = 'fwd (?P<stage>\\d+)/(?P<microbatch>\\d+)'
kind = "F"
[[span]]
pattern = 'bwd (?P<stage>\\d+)'
kind = "B"
microbatches = 4
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzTarget:
    """A reader, the name that its files have, and the contents to begin from.

    ``command`` makes files to begin from where no function does in short: words for
    ``python -m bubbleproof``, with the file that they write.
    """

    read: Callable[[str], object]
    file: str
    seeds: Callable[[], list[bytes]]
    command: tuple[tuple[str, ...], str] | None = None


def _texts(*patterns: str) -> Callable[[], list[bytes]]:
    return lambda: [p.read_bytes() for each in patterns for p in sorted(EXAMPLES.rglob(each))]


def _tables() -> list[bytes]:
    """PyTorch's tables, the first of one dialect alone."""
    old = b"0F0,0F1,,0B0,0W0,0B1,0W1\n,1F0,1B0,1W0,1F1,1B1,1W1\n"
    new = b"0F0,0F1,,0I0,0W0,0I1,0W1\n,1F0,1I0,1W0,1F1,1I1,1W1\n"
    sharded = b"0UNSHARD,0F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0\n"
    return [new, old, sharded, *_texts("*order.csv", "crossed.csv", "just-in-time.csv")()]


def _old_tables() -> list[bytes]:
    return sorted(_tables(), key=lambda content: b"I" in content)


def _schedules() -> list[bytes]:
    found = member("zb-h1", p=2, m=2)
    given = ScheduleFile.of(found.problem, found.schedule)
    return [_written(given), _pipeline_schedule()]


def _pipeline_schedule() -> bytes:
    found = member("1f1b", p=2, m=2)
    return _written(ScheduleFile.of(found.problem, found.schedule, pipeline=found.pipeline))


def _written(file: ScheduleFile) -> bytes:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        write_schedule(path := Path(folder) / "s.json", file)
        return path.read_bytes()


def _certificates() -> list[bytes]:
    last, machine = PROBLEM.task("1F2"), OneMachine(resource=0, tasks=(0,), bound=1)
    window = MicrobatchWindow(count=1, ranks=(1,), proof=machine)
    tariff = (Tariff(of=1, steps=((0, 1),)),)
    lemmas = (Lemma(literals=((">=", last, 1),)), Lemma(literals=()))
    kinds: tuple[Certificate, ...] = (
        OneMachine(resource=1, tasks=(last,), bound=1),
        OneStore(resource=1, store=1, begin=0, end=0, bound=1),
        Volume(store=1, bound=1),
        Crossings(store=1, bound=1),
        TickPrices(resources=tariff, stores=tariff, bound=2),
        MicrobatchWindows(first=PROBLEM.task("1F0"), store=1, windows=(window,), bound=1),
        Drup(bound=2, lemmas=lemmas),
    )
    return [json.dumps(certificate_content(PROBLEM, each)).encode() for each in kinds]


def _traces() -> list[bytes]:
    whole = [gzip.decompress(p.read_bytes()) for p in sorted(EXAMPLES.glob("ci/trace/rank*.gz"))]
    content = json.loads(whole[0])
    content["traceEvents"] = content["traceEvents"][:12]
    return [json.dumps(content).encode()]


def _dumps(protocol: int | None) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        texts = _texts("hang/*.json")()
        if protocol is None:
            return texts
        return [pickle.dumps(json.loads(text), protocol=protocol) for text in texts]

    return seeds


def _table_in(dialect: Dialect) -> Callable[[str], object]:
    return lambda path: infer_pipeline(read_table(path, dialect=dialect).program)


@cache
def _space() -> PlanSpace:
    found = read_problem(EXAMPLES / "researcher" / "plan.toml").plan
    if found is None:
        raise ValueError("examples/researcher/plan.toml has no table [plan]")
    return found


def _paged(given: ScheduleFile) -> str:
    """The page of what a reader accepts, with its data: it must be one that can be drawn."""
    if given.schedule is None:
        return ""
    shown = ScheduleSection(name=given.name, problem=given.problem, schedule=given.schedule)
    return render(ReportPage(title="fuzz", sections=(shown,)))


def _asked(path: str) -> JudgedView | None:
    """A question of ``serve``'s page, judged where it is of one digit a parameter (quick)."""
    text = Path(path).read_bytes().decode(errors="replace")  # the server refuses other bytes
    question = read_request(text, ViewRequest)
    if any(len(value) > 1 for value in question.parameters.values()):
        return None
    return judged_view(question, [_small()])


@cache
def _small() -> OfferedSchedule:
    return OfferedSchedule.of(read_schedule_input(["1f1b", "p=2", "m=3"]))


def _questions() -> list[bytes]:
    orders = judged_view(read_request('{"family": null}', ViewRequest), [_small()]).told["orders"]
    asked: list[dict[str, object]] = [
        {"family": None, "given": 0, "orders": orders, "capacity": {"units": 2}},
        {"family": "zb-h1", "parameters": {"p": "2", "m": "4", "tI": "1"}, "capacity": None},
        {"family": None, "changes": {"forward": 2, "backward": [3, 3], "latency": 1}},
        {"family": "pipemesh", "parameters": {"p": "2", "m": "4", "v": "2", "e": "4", "d": "4"}},
    ]
    return [json.dumps(each).encode() for each in asked]


_TOML = _texts("*capped.toml", "memory-choices.toml", "plan.toml", "split-backward.toml")
_PLANNED = (
    "plan",
    str(EXAMPLES / "researcher" / "plan.toml"),
    "-o",
    "out",
    "--certificate",
    "out/c.json",
)
TARGETS: Mapping[str, FuzzTarget] = {
    "problem": FuzzTarget(read=read_problem, file="a.toml", seeds=_TOML),
    "cluster": FuzzTarget(
        read=read_cluster_file, file="a.toml", seeds=_texts("llama-13b*.toml", "plans/*.toml")
    ),
    "model": FuzzTarget(read=read_model, file="a.toml", seeds=_texts("llama-13b*.toml")),
    "hardware": FuzzTarget(
        read=read_hardware,
        file="a.toml",
        seeds=lambda: [p.read_bytes() for p in sorted(CALIBRATED.glob("*.toml"))],
    ),
    "span names": FuzzTarget(read=read_names, file="a.toml", seeds=lambda: [NAMES.encode()]),
    "table, new": FuzzTarget(read=_table_in("new"), file="a.csv", seeds=_tables),
    "table, old": FuzzTarget(read=_table_in("old"), file="a.csv", seeds=_old_tables),
    "table, dialect told by itself": FuzzTarget(read=read, file="a.csv", seeds=_tables),
    "rows of iterations": FuzzTarget(
        read=lambda path: read_rows(path, measured=True),
        file="a.csv",
        seeds=lambda: [ROWS.read_bytes()],
    ),
    "schedule": FuzzTarget(read=read_schedule, file="a.json", seeds=_schedules),
    "certificate": FuzzTarget(
        read=lambda path: read_certificate(path, PROBLEM), file="a.json", seeds=_certificates
    ),
    "plan": FuzzTarget(
        read=read_plan, file="a.json", seeds=list, command=(_PLANNED, "out/plan.json")
    ),
    "bundle": FuzzTarget(
        read=lambda path: read_bundle(path, _space()),
        file="a.json",
        seeds=list,
        command=(_PLANNED, "out/c.json"),
    ),
    "trace": FuzzTarget(read=read_trace, file="a.json", seeds=_traces),
    "dump, JSON": FuzzTarget(read=read_dump, file="a_0", seeds=_dumps(None)),
    "dump, pickle": FuzzTarget(read=read_dump, file="a_0", seeds=_dumps(2)),
    "question of serve": FuzzTarget(read=_asked, file="a.json", seeds=_questions),
    "page of a schedule": FuzzTarget(
        read=lambda path: _paged(read_schedule(path)), file="a.json", seeds=_schedules
    ),
    "page of a table": FuzzTarget(
        read=lambda path: _paged(read_timed_table(path)), file="a.csv", seeds=_tables
    ),
}


def finding(read: Callable[[str], object], path: str) -> str:
    """What a reader did with a file that it must not do; empty where all is well."""
    try:
        read(path)
    except ValueError as error:
        told = str(error)
        if isinstance(error, UnicodeError):
            return _named(error)
        if "\n" in told or not told.strip():
            return f"no line, or several: {_named(error)}"
        return f"a long line: {_named(error)}" if len(told) > LONGEST_LINE else ""
    except Exception as error:  # whatever it is, it is what is looked for
        return _named(error)
    return ""


def _named(error: Exception) -> str:
    """The error's name and where it was raised, as far as that is ours."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "benchmarks" not in frame.filename and "site-packages" not in frame.filename
    ]
    return f"{type(error).__name__} at {places[-1] if places else 'nowhere'}: {str(error)[:120]!r}"
