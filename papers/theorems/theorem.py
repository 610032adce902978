"""Theorems: what is claimed for all parameters, and the obligations that together prove it.

An ``Obligation`` is closed: its premises imply its goal for all values of its symbols. Proving a
theorem is refuting the negation of each obligation (``prover``); nothing here loads Z3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from bubbleproof.facts import Fact, FactSource
from bubbleproof.papers.theorems.polynomials import Coefficient, Environment, Symbol
from bubbleproof.papers.theorems.products import Linearisation
from bubbleproof.papers.theorems.terms import LogicFormula, Term, all_of, implies, negate


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """The premises imply the goal, for all integers and reals.

    ``hints`` are pairs (index term, term that is never negative) whose product the proof needs a
    sign lemma for, beyond those that ``products`` finds by itself; a hint cannot make a false
    obligation pass.
    """

    name: str
    premises: tuple[LogicFormula, ...]
    goal: LogicFormula
    hints: tuple[tuple[Term, Term], ...] = ()

    @property
    def formula(self) -> LogicFormula:
        return implies(all_of(*self.premises), self.goal)

    def holds(self, environment: Environment) -> bool:
        """Whether it holds at the given values, evaluated without Z3."""
        return self.formula.holds(environment)

    def refuted_by(self, environment: Environment) -> bool:
        """Whether the values meet every premise and break the goal."""
        return not self.holds(environment)

    def script(self, fixed: Mapping[Symbol, Coefficient] | None = None) -> str:
        """The negation as SMT-LIB text, which every prover is given; symbols may be fixed."""
        linear = Linearisation(fixed=dict(fixed or {}))
        return linear.script(negate(self.formula), self.hints)


ObligationPart = tuple[str, tuple[LogicFormula, ...], LogicFormula]


def obligations_of(
    parts: Iterable[ObligationPart],
    premises: tuple[LogicFormula, ...],
    hints: tuple[tuple[Term, Term], ...] = (),
) -> tuple[Obligation, ...]:
    """The parts (name, premises of its own, goal) as obligations that share premises and hints."""
    return tuple(
        Obligation(name=name, premises=(*premises, *own), goal=goal, hints=hints)
        for name, own, goal in parts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """A statement, what it assumes, what its letters mean, and the obligations that prove it.

    ``argument`` says, for a reader, why the obligations give the statement: which induction they
    are the steps of. Every letter in a statement is a symbol.
    """

    id: str
    statement: str
    assumptions: tuple[str, ...]
    symbols: str
    argument: str
    obligations: tuple[Obligation, ...]

    def __post_init__(self) -> None:
        names = [o.name for o in self.obligations]
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"{self.id}: obligations must have names of their own, got {names}")


class ProofVerdict(Enum):
    """What became of a theorem or an obligation."""

    PROVED = "proved: no counter-model exists"
    FAILED = "failed: a counter-model breaks it"
    UNKNOWN = "unknown: neither proved nor refuted in the time given"
    DISPUTED = "disputed: one prover proves what another does not"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondAnswer:
    """What another prover says of the same text: ``unsat`` (proved), ``sat`` or ``unknown``."""

    prover: str
    answer: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ObligationProof:
    """What became of one obligation; ``counter_model`` gives each symbol's value where it fails."""

    name: str
    verdict: ProofVerdict
    seconds: float
    counter_model: dict[str, str] | None = None
    second: SecondAnswer | None = None

    @property
    def is_disputed(self) -> bool:
        """Whether a second prover was asked, and one of the two proves it and the other does not.

        What Z3 leaves UNKNOWN stays so, whatever the other says.
        """
        if self.second is None or self.verdict is ProofVerdict.UNKNOWN:
            return False
        return (self.verdict is ProofVerdict.PROVED) != (self.second.answer == "unsat")

    def __str__(self) -> str:
        values = ", ".join(
            f"{name} = {value}" for name, value in (self.counter_model or {}).items()
        )
        return f"{self.name}: {self.verdict.value}" + (f", {values}" if values else "")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TheoremProof(FactSource):
    """What became of a theorem: PROVED if all obligations are, FAILED if one is refuted.

    It is DISPUTED where two provers were asked of an obligation and one of them alone proves it.
    """

    theorem: Theorem
    obligations: tuple[ObligationProof, ...]

    @property
    def verdict(self) -> ProofVerdict:
        if self.disputed:
            return ProofVerdict.DISPUTED
        found = {o.verdict for o in self.obligations}
        for verdict in (ProofVerdict.FAILED, ProofVerdict.UNKNOWN):
            if verdict in found:
                return verdict
        return ProofVerdict.PROVED

    @property
    def disputed(self) -> tuple[str, ...]:
        """The obligations that one prover alone proves, each with what the other says of it."""
        return tuple(
            f"{o.name}: Z3 {o.verdict.name.lower()}, {o.second.prover} {o.second.answer}"
            for o in self.obligations
            if o.second is not None and o.is_disputed
        )

    @property
    def seconds(self) -> float:
        return sum(o.seconds for o in self.obligations)

    @property
    def second_answers(self) -> tuple[SecondAnswer, ...]:
        """The second prover's answers, in the order of the obligations; none if not asked."""
        return tuple(o.second for o in self.obligations if o.second is not None)

    def facts(self) -> Iterator[Fact]:
        """The theorem and each obligation; ``seconds`` are wall-clock and not reproducible."""
        theorem, found = self.theorem, self.verdict
        yield Fact(key="id", value=theorem.id)
        told, state = f"{theorem.id}: {theorem.statement}", found.name.lower()
        yield Fact(
            key="statement", label="theorem", value=theorem.statement, told=told, verdict=state
        )
        yield Fact(key="assumptions", value=theorem.assumptions)
        yield from (Fact(label="assumed", value=each) for each in theorem.assumptions)
        yield Fact(key="symbols", label="symbols", value=theorem.symbols)
        yield Fact(key="argument", label="argument", value=theorem.argument)
        yield Fact(key="verdict", value=found.name)
        yield Fact(key="seconds", value=round(self.seconds, 3))
        yield Fact(key="obligations", value=[_plain(o) for o in self.obligations])
        for each in self.obligations:
            yield Fact(label="obligation", value=str(each), verdict=each.verdict.name.lower())


def _plain(proof: ObligationProof) -> dict[str, object]:
    """One obligation as plain data; with a second prover's answer where there is one."""
    plain: dict[str, object] = {
        "name": proof.name,
        "verdict": proof.verdict.name,
        "seconds": round(proof.seconds, 3),
        "counter_model": proof.counter_model,
    }
    if proof.second is not None:
        told = {"answer": proof.second.answer, "seconds": round(proof.second.seconds, 3)}
        plain[proof.second.prover] = told
    return plain
