"""The result of a solve with the problem that was solved: what was found, how good it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Self

from bubbleproof.engine_process.loss import EngineLoss
from bubbleproof.facts import Fact, FactCells, FactSource, valued
from bubbleproof.formats.inputs import read_problem_input as read_stated
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.report.amounts import counted, load, time
from bubbleproof.report.schedule_measures import measure_facts
from bubbleproof.solvers import ProofOrigin, Result, Status
from bubbleproof.solvers.result import FOR_SHAPE
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.candidates.cases import Cases
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.crossings import Crossings
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import TickPrices
from bubbleproof.verify.certificates.volume import Volume

if TYPE_CHECKING:  # a solver, and a reader of files, is loaded where one is asked for
    from bubbleproof.formats import ProblemFile
    from bubbleproof.solvers.choices.solving_choices import ChoiceResult

FOR_PIPELINE, OVER_CHOICES = "for this pipeline", "over these choices"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemInput:
    """A problem to solve or to check against; ``file`` is there when it came as TOML.

    ``choices`` is there once a solver chose what the problem is; ``is_demanded`` says that the
    problem has precedences that a command demanded as well.
    """

    name: str
    problem: Problem
    pipeline: Pipeline | None
    file: ProblemFile | None = None
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
    def starts(self) -> Iterator[tuple[str, Program]]:
        """The published orders to begin from, in turn; none for a problem built by hand."""
        from bubbleproof.solvers.shortening.known_orders import published_and_improved

        return iter(()) if self.pipeline is None else published_and_improved(self.pipeline)


def read_problem_input(given: str) -> ProblemInput:
    """The problem of a problem file, or the one that a schedule comes with."""
    found = read_stated(given)
    if not isinstance(found, ScheduleFile):
        return ProblemInput.of(found)
    return ProblemInput(name=found.name, problem=found.problem, pipeline=found.pipeline)


def bounded(source: ProblemInput) -> str:
    """Which schedules the bound of a result is about."""
    if source.choices is not None:
        return "any schedule of this pipeline, whatever is chosen"
    kept = " that keeps what is demanded" if source.is_demanded else ""
    return f"any schedule of this problem{kept}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolvedResult(FactSource, Result):
    """A result with what was ``given`` to solve, and the ``engine`` that was asked for."""

    columns: ClassVar[FactCells] = ("quantity", "expected", "found", "verdict")
    __repr__ = Result.__repr__
    given: ProblemInput
    engine: str = "auto"

    @classmethod
    def of(cls, source: ProblemInput, result: Result, engine: str = "auto") -> Self:
        """A result of the problem."""
        own = {each.name: getattr(result, each.name) for each in fields(Result)}
        return cls(**own, given=source, engine=engine)

    @property
    def problem(self) -> Problem:
        """The problem that was solved, whose schedule it holds."""
        return self.given.problem

    @property
    def pipeline(self) -> Pipeline | None:
        """The pipeline that states it, where there is one."""
        return self.given.pipeline

    @property
    def scope(self) -> str:
        """What an optimum is one of."""
        return FOR_PIPELINE if self.given.choices is None else OVER_CHOICES

    @property
    def statement(self) -> str:
        """The status in words; an optimum names what it is one of."""
        text = super(SolvedResult, self).statement  # slots make another class of this one
        return text if self.given.choices is None else text.replace(FOR_SHAPE, OVER_CHOICES)

    @property
    def solver_name(self) -> str:
        """The solver whose claims it has: CP-SAT where none is named."""
        return "CP-SAT" if self.engine in ("auto", "cpsat") else self.engine

    @property
    def proof_text(self) -> str:
        """How good the schedule is known to be, in one sentence; a claim names who makes it."""
        claimed = f"claimed by {self.solver_name}, uncertified"
        if self.objective == "peak":
            return self._peak_text(claimed) or "no bound"
        if self.status is Status.INFEASIBLE:
            by = {ProofOrigin.CERTIFICATE: "proved, certificate checked"}
            by[ProofOrigin.ENGINE] = claimed
            return by.get(self.infeasible_by, "proved by this argument")
        problem, certificate = self.certified
        text = "no bound is proved"
        if certificate is not None:
            bound = time(self.lower_bound, problem.unit)
            by_what = certificate_content(problem, certificate)[1].replace("{bound}", bound)
            text = f"proved: {by_what}; certificate checked"
        if self.best_bound > self.lower_bound:
            text = f"not below {time(self.best_bound, problem.unit)}: {claimed}; {text}"
        peak = self._peak_text(claimed)
        return f"{text}; {peak}" if peak else text

    @property
    def engine_text(self) -> str:
        """What the engine that was asked for found, and what it claims by itself."""
        name = self.objective.removesuffix("-then-peak")
        found = "no schedule" if self.value is None else f"{name} {self.value}"
        if self.engine_bound is None:
            return f"{self.engine} found {found}, and claims no bound"
        return f"{self.engine} found {found}, and claims that none is below {self.engine_bound}"

    @property
    def certified(self) -> tuple[Problem, Certificate | Cases | None]:
        """The certificate, and the problem that it is about; or those of the cases of choices."""
        choices = self.given.choices
        if choices is None:
            return self.given.problem, self.certificate
        return choices.floor, choices.cases or choices.floor_certificate

    def _peak_text(self, claimed: str) -> str:
        if (bound := self.peak_bound) is None:
            return ""
        by = claimed if bound.proof is ProofOrigin.ENGINE else "by argument"
        least = load(bound.value, self.given.problem.memory_unit)
        return f"peak not below {least}, {by}: {bound.reason}"

    def facts(self) -> Iterator[Fact]:
        """Status, value, bounds and what proves them, measures."""
        source, peak, measured, proof = self.given, self.peak_bound, self.measured, self.proof
        problem, certificate = self.certified
        found = "" if measured is None else "found by"
        words = self.statement
        told = words.replace(FOR_SHAPE, FOR_PIPELINE).replace(
            ProofOrigin.ENGINE.value, f"claimed by {self.solver_name}, uncertified"
        )
        yield from valued("", name=source.name, status=self.status.name)
        yield Fact(key="statement", label="status", value=words, told=told)
        yield Fact(key="objective", label=found and "objective", value=self.objective)
        yield Fact(key="value", value=self.value)
        name = None if proof is None else proof.name
        yield Fact(key="proof", label="proof", value=name, told=self.proof_text)
        yield Fact(key="reason", label=self.reason and "reason", value=self.reason)
        yield from valued("", makespan=self.makespan, peak=self.peak)
        yield from valued("", lower_bound=self.lower_bound, lower_bound_of=bounded(source))
        yield Fact(key="engine_bound", value=self.engine_bound)
        if peak is None:
            yield Fact(key="peak_bound")
        else:
            proved = {"value": peak.value, "proof": peak.proof.name, "reason": peak.reason}
            yield Fact(key="peak_bound", value=proved)
        yield Fact(key="gap", value=self.gap)
        yield Fact(key="origin", label=found, value=self.origin)
        named = None if certificate is None else certificate_content(problem, certificate)[0]
        yield Fact(key="certificate", value=named)
        chosen = () if source.choices is None else source.choices.chosen
        yield Fact(key="chosen", value=None if source.choices is None else chosen)
        yield from (Fact(label="chosen", told=line) for line in chosen if found)
        if measured is None:
            yield Fact(key="measured")
        else:
            units = source.problem.unit, source.problem.memory_unit
            yield from measure_facts(measured, *units, within="measured.")
        told = f"{self.seconds:.2f} s"
        yield Fact(key="seconds", label="time", value=round(self.seconds, 3), told=told)
        for loss in self.losses:
            yield Fact(key="losses[]", value=_loss_to_json(loss))


def _loss_to_json(loss: EngineLoss) -> dict[str, object]:
    """An engine that gave no answer: its name, why, and the sentence for people."""
    return {"engine": loss.who, "kind": loss.kind.name, "statement": str(loss)}


def certificate_content(
    problem: Problem, certificate: Certificate | Cases
) -> tuple[dict[str, object], str]:
    """What a certificate is about, for programs; and for people, with a place for the ``bound``."""
    named, told = _content(problem, certificate)
    return {**named, "bound": certificate.bound}, told


def _content(problem: Problem, certificate: Certificate | Cases) -> tuple[dict[str, object], str]:
    stores, resources = problem.stores, problem.resources
    match certificate:
        case OneMachine(resource=one, tasks=tasks, objective=objective):
            where = resources[one].name
            told = f"{where} is busy or unavoidably waiting for {{bound}}"
            if objective != "makespan":
                told = f"{where} is unavoidably idle for {{bound}} of its span"
            labels = [problem.label(task) for task in tasks]
            return {"kind": "one-machine", "resource": where, "tasks": labels}, told
        case OneStore(resource=one, store=of, begin=begin, end=end):
            where, store = resources[one].name, stores[of].name
            told = f"what {where} has room for in {store} takes {{bound}}"
            within = {"resource": where, "store": store, "begin": begin, "end": end}
            return {"kind": "one-store", **within}, told
        case Volume(store=of):
            store = stores[of].name
            return {"kind": "volume", "store": store}, f"{store} is taken for {{bound}}"
        case Crossings(store=of):
            store = stores[of].name
            told = f"what crosses behind {store} takes {{bound}}"
            return {"kind": "crossings", "store": store}, told
        case TickPrices():
            by = {
                "resources": [resources[each.of].name for each in certificate.resources],
                "stores": [stores[each.of].name for each in certificate.stores],
            }
            names = " and ".join([*by["resources"], *by["stores"]])
            return {"kind": "prices", **by}, f"not below {{bound}}, by dual prices of {names}"
        case MicrobatchWindows():
            windows = [
                {"microbatches": each.count, "bound": each.proof.bound, "times": each.times}
                for each in certificate.windows
            ]
            number = counted(sum(each.times for each in certificate.windows), "window")
            told = f"{number} of microbatches take {{bound}} alone"
            return {"kind": "windows", "windows": windows}, told
        case Cases(num_shown=number):
            told = f"not below {{bound}} in each of {counted(number, 'case')}"
            return {"kind": "cases", "cases": number}, told
    return {"kind": type(certificate).__name__.lower()}, "not below {bound}"
