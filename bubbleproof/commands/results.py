"""The result of a solve, for people and for programs: what was found, and how good it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubbleproof.commands.output import counted, fields_of
from bubbleproof.engine_process.loss import EngineLoss
from bubbleproof.formats.inputs import read_problem_input as read_stated
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.solvers import ProofOrigin, Result, Status
from bubbleproof.solvers.result import FOR_SHAPE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import Cases
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import TickPrices
from bubbleproof.verify.certificates.volume import Volume

if TYPE_CHECKING:  # a solver, and a reader of files, is loaded where one is asked for
    from bubbleproof.formats import ProblemFile
    from bubbleproof.solvers.choices.solving_choices import ChoiceResult

OVER_CHOICES = "over these choices"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemInput:
    """A problem to solve or to check against; ``file`` is there when it came as TOML.

    ``choices`` is there once a solver chose what the problem is; ``is_demanded`` says that the
    problem has precedences that a command demanded as well.
    """

    name: str
    problem: Problem
    pipeline: Pipeline | None
    file: ProblemFile | None
    choices: ChoiceResult | None = None
    is_demanded: bool = False

    @classmethod
    def of(cls, file: ProblemFile) -> ProblemInput:
        """That of a problem file."""
        pipeline = file.pipeline
        return cls(name=file.name, problem=pipeline.problem(), pipeline=pipeline, file=file)

    @property
    def has_choices(self) -> bool:
        """Whether it leaves something to the solver to choose."""
        return self.file is not None and self.file.allowed is not None

    @property
    def starts(self) -> Sequence[tuple[str, Program]]:
        """The published orders to begin from; none for a problem built by hand."""
        from bubbleproof.solvers.shortening.known_orders import known_orders

        return [] if self.pipeline is None else known_orders(self.pipeline)


def read_problem_input(given: str) -> ProblemInput:
    """The problem of a problem file, or the one that a schedule comes with."""
    found = read_stated(given)
    if not isinstance(found, ScheduleFile):
        return ProblemInput.of(found)
    return ProblemInput(name=found.name, problem=found.problem, pipeline=found.pipeline, file=None)


def statement(source: ProblemInput, result: Result) -> str:
    """The status in words; an optimum names what it is one of."""
    text = result.statement
    return text if source.choices is None else text.replace(FOR_SHAPE, OVER_CHOICES)


def proof_text(source: ProblemInput, result: Result) -> str:
    """How good the schedule is known to be, in one sentence."""
    if result.objective == "peak":
        return _peak_text(source, result) or "no bound"
    if result.status is Status.INFEASIBLE and result.proof is not None:
        return result.proof.value
    bound, scope = bound_text(source, result), FOR_SHAPE if source.choices is None else OVER_CHOICES
    optimal = "optimal" if result.peak_bound is None else "optimal makespan"
    if result.status is Status.OPTIMAL and result.value_proof is ProofOrigin.ENGINE:
        text = f"{optimal} {scope} {ProofOrigin.ENGINE.value}; {bound}"
    elif result.status is Status.OPTIMAL:
        text = f"{optimal} {scope}: {bound}"
    else:
        is_claimed = result.best_bound > result.lower_bound
        claim = f"; engine claims {result.engine_bound}" if is_claimed else ""
        text = f"gap {result.gap} {source.problem.unit}: {bound}{claim}, of {bounded(source)}"
    peak = _peak_text(source, result)
    return f"{text}; {peak}" if peak else text


def bounded(source: ProblemInput) -> str:
    """Which schedules the bound of a result is about."""
    if source.choices is not None:
        return "any schedule of this pipeline, whatever is chosen"
    kept = " that keeps what is demanded" if source.is_demanded else ""
    return f"any schedule of this problem{kept}"


def engine_text(engine: str, result: Result) -> str:
    """What the engine that was asked for found, and what it claims by itself."""
    name = result.objective.removesuffix("-then-peak")
    found = "no schedule" if result.value is None else f"{name} {result.value}"
    if result.engine_bound is None:
        return f"{engine} found {found}, and claims no bound"
    return f"{engine} found {found}, and claims that none is below {result.engine_bound}"


def bound_text(source: ProblemInput, result: Result) -> str:
    """The certified bound and what proves it."""
    problem, certificate = certified(source, result)
    if certificate is None:
        return "no bound"
    by = ""
    if isinstance(certificate, Cases):
        by = f" in each of {counted(certificate.num_shown, 'case')}"
    if isinstance(certificate, OneMachine):
        where = problem.resources[certificate.resource].name
        by = f" by {counted(len(certificate.tasks), 'task')} on {where}"
    if isinstance(certificate, OneStore):
        where = problem.resources[certificate.resource].name
        by = f" by what {where} has room for in {problem.stores[certificate.store].name}"
    if isinstance(certificate, Volume):
        by = f" by how long {problem.stores[certificate.store].name} is taken"
    if isinstance(certificate, TickPrices):
        named = [problem.resources[each.of].name for each in certificate.resources]
        named += [problem.stores[each.of].name for each in certificate.stores]
        by = f" by prices of {' and '.join(named)}"
    if isinstance(certificate, MicrobatchWindows):
        number = sum(each.times for each in certificate.windows)
        by = f" by what {counted(number, 'window')} of microbatches need alone"
    return f"bound {result.lower_bound}{by}, certificate checked"


def certified(source: ProblemInput, result: Result) -> tuple[Problem, Certificate | Cases | None]:
    """The certificate, and the problem that it is about; or those of the cases of choices."""
    if source.choices is None:
        return source.problem, result.certificate
    return source.choices.floor, source.choices.cases or source.choices.floor_certificate


def _peak_text(source: ProblemInput, result: Result) -> str:
    bound = result.peak_bound
    if bound is None:
        return ""
    said = f"no peak below {bound.value} {source.problem.memory_unit} {bound.proof.value}"
    return f"{said}, in no certificate: {bound.reason}"


def result_rows(source: ProblemInput, result: Result) -> list[tuple[str, str]]:
    """The result for people."""
    unit = source.problem.unit
    rows = [("status", statement(source, result))]
    if result.reason:
        rows.append(("reason", result.reason))
    if result.found is not None:
        measured = result.found.measured
        rows += [
            ("objective", result.objective),
            ("makespan", f"{measured.makespan} {unit}"),
            ("found by", result.origin),
            ("idle_ratio", f"{measured.idle_ratio}"),
            ("idle_over_work", f"{measured.idle_over_work}"),
            ("span_idle", f"{measured.span_idle} {unit}"),
            ("peak_memory", f"{list(measured.peak_memory)} {source.problem.memory_unit}"),
        ]
    if source.choices is not None and result.found is not None:
        rows += [("chosen", line) for line in source.choices.chosen]
    rows += [("proof", proof_text(source, result)), ("time", f"{result.seconds:.2f} s")]
    return rows


def result_to_json(source: ProblemInput, result: Result) -> dict[str, object]:
    """The result for programs."""
    peak = result.peak_bound
    return {
        "name": source.name,
        "status": result.status.name,
        "statement": statement(source, result),
        "objective": result.objective,
        "value": result.value,
        "proof": None if result.proof is None else result.proof.name,
        "reason": result.reason,
        "makespan": result.makespan,
        "peak": result.peak,
        "lower_bound": result.lower_bound,
        "lower_bound_of": bounded(source),
        "engine_bound": result.engine_bound,
        "peak_bound": None
        if peak is None
        else {"value": peak.value, "proof": peak.proof.name, "reason": peak.reason},
        "gap": result.gap,
        "origin": result.origin,
        "certificate": _certificate_to_json(*certified(source, result)),
        "chosen": None if source.choices is None else list(source.choices.chosen),
        "measured": None if result.measured is None else fields_of(result.measured),
        "seconds": round(result.seconds, 3),
        **({"losses": [_loss_to_json(loss) for loss in result.losses]} if result.losses else {}),
    }


def _loss_to_json(loss: EngineLoss) -> dict[str, object]:
    """An engine that gave no answer: its name, why, and the sentence for people."""
    return {"engine": loss.who, "kind": loss.kind.name, "statement": str(loss)}


def _certificate_to_json(
    problem: Problem, certificate: Certificate | Cases | None
) -> dict[str, object] | None:
    if certificate is None:
        return None
    if isinstance(certificate, OneMachine):
        return {
            "kind": "one-machine",
            "resource": problem.resources[certificate.resource].name,
            "tasks": [problem.label(task) for task in certificate.tasks],
            "bound": certificate.bound,
        }
    if isinstance(certificate, OneStore):
        return {
            "kind": "one-store",
            "resource": problem.resources[certificate.resource].name,
            "store": problem.stores[certificate.store].name,
            "begin": certificate.begin,
            "end": certificate.end,
            "bound": certificate.bound,
        }
    if isinstance(certificate, Volume):
        store = problem.stores[certificate.store].name
        return {"kind": "volume", "store": store, "bound": certificate.bound}
    if isinstance(certificate, TickPrices):
        return {
            "kind": "prices",
            "resources": [problem.resources[each.of].name for each in certificate.resources],
            "stores": [problem.stores[each.of].name for each in certificate.stores],
            "bound": certificate.bound,
        }
    if isinstance(certificate, MicrobatchWindows):
        windows = [
            {"microbatches": each.count, "bound": each.proof.bound, "times": each.times}
            for each in certificate.windows
        ]
        return {"kind": "windows", "windows": windows, "bound": certificate.bound}
    if isinstance(certificate, Cases):
        return {"kind": "cases", "cases": certificate.num_shown, "bound": certificate.bound}
    return {"kind": type(certificate).__name__.lower(), "bound": certificate.bound}
