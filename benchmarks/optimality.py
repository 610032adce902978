"""Are the published schedules optimal? Each family against the exact optimum under its own memory.

For every family at the sizes of ``sizes`` (durations 1, 2 or 1, 1, 1) the problem is solved again
with each store's capacity set to the load that the family's schedule reaches there. A makespan that
equals the solver's checked bound is *optimal*; a shorter checked schedule shows that it is
*beaten*; otherwise it is *open*, and the gap to the bound is given. Where only the engine claims
that nothing is shorter, the case counts as *claimed*.

    python -m benchmarks.optimality [--ranks 8] [--time-limit 3] [--workers 2] [--write FOLDER]

``--keep FILE`` appends each case as a line of JSON and takes what is there as done, so a sweep that
was interrupted goes on. Ctrl-C writes the page of what there is.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from pathlib import Path

import typer
from rich.progress import Progress

from benchmarks.optimality_page import markdown
from benchmarks.optimality_sources import REASONS, authors
from benchmarks.verdicts.judged import capped
from bubbleproof.faults import FaultError
from bubbleproof.solvers import ProofOrigin, SolveOptions, Status, solve
from bubbleproof.solvers.bounds import lower_bounds
from bubbleproof.theory.families import families, make_parameters
from bubbleproof.theory.model.measures import measure

ALL_MICROBATCHES = 4  # up to so many ranks every m up to 3p is looked at, but for slices
RANKS = (2, 3, 4, 6, 8)
LEFT_OUT = ("source", "reason", "verdict")  # of a row: the page has them
CHUNKS, SLICES = (1, 2, 3), (1, 2, 3, 4)
Size = tuple[str, int, int, int, int]  # family, p, m, v, s


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One schedule of a family and what the solver makes of its problem (ticks, units).

    ``known`` is the authors' makespan and ``source`` where it stands; ``reason`` is why the family
    is longer than ``best`` or ``bound``, empty where that is unknown or where it is not.
    """

    family: str
    p: int
    m: int
    v: int
    s: int
    published: int
    peak: int
    known: int | None
    source: str
    best: int
    bound: int
    verdict: str
    reason: str

    @property
    def excess(self) -> Fraction:
        """How much longer the schedule is than the bound, or the shortest that was found."""
        least = self.best if self.verdict == "claimed" else self.bound
        return Fraction(self.published - least, least)

    @property
    def size(self) -> Size:
        return self.family, self.p, self.m, self.v, self.s


def parameters(size: Size) -> dict[str, int]:
    """The parameters of a size that its family takes."""
    name, p, m, v, s = size
    options = families()[name].options
    return (
        {"p": p, "m": m}
        | ({"v": v} if "v" in options else {})
        | ({"s": s} if "s" in options else {})
    )


def decide(size: Size, time_limit: float) -> Case:
    """Solve one case. Precondition: the size is legal."""
    name, p, m, v, s = size
    member = families()[name].member(make_parameters(parameters(size)))
    problem = capped(member.problem, member.schedule)
    measured = measure(problem, member.schedule)
    published = measured.makespan
    options = SolveOptions(time_limit=time_limit, threads=1)
    try:
        result = solve(problem, options, [(name, member.schedule.program)])
    except FaultError:
        best, bound, verdict = published, lower_bounds(problem).best.bound, "open"
    else:
        best = published if result.makespan is None else min(published, result.makespan)
        bound = result.lower_bound
        if best < published:
            verdict = "beaten"
        elif result.status is Status.OPTIMAL:
            verdict = "optimal" if result.proof is ProofOrigin.CERTIFICATE else "claimed"
        else:
            verdict = "open"
    known, source = authors(name, p, m, v, s) or (None, "")
    case = Case(
        family=name,
        p=p,
        m=m,
        v=v,
        s=s,
        published=published,
        peak=max(measured.peak_activations),
        known=known,
        source=source,
        best=best,
        bound=bound,
        verdict=verdict,
        reason="",
    )
    reason = REASONS.get(name)
    if case.excess and reason is not None and reason.holds(parameters(size), published):
        return replace(case, reason=reason.text)
    return case


def counts(p: int, *, is_thin: bool) -> list[int]:
    """The microbatches looked at: all up to 3p, or those around the turns of a family."""
    if p <= ALL_MICROBATCHES and not is_thin:
        return list(range(1, 3 * p + 1))
    return sorted({1, p - 1, p, p + 1, 2 * p, 3 * p})


def sizes(ranks: int) -> Iterator[Size]:
    """Every size that is looked at and that its family takes."""
    for name, family in families().items():
        chunks = CHUNKS if "v" in family.options else (1,)
        slices = SLICES if "s" in family.options else (1,)
        for p in (p for p in RANKS if p <= ranks):
            for v in chunks:
                for s in slices:
                    for m in counts(p, is_thin=s > 1):
                        if _is_legal((name, p, m, v, s)):
                            yield name, p, m, v, s


def _is_legal(size: Size) -> bool:
    family = families()[size[0]]
    try:
        return family.refusal(family.pipeline(make_parameters(parameters(size)))) is None
    except ValueError:
        return False


def survey(wanted: list[Size], time_limit: float, workers: int, keep: Path | None) -> list[Case]:
    """All cases, with progress on standard error; what was done stays when it is interrupted."""
    cases = read_kept(keep)
    todo = [size for size in wanted if size not in cases]
    with (
        ProcessPoolExecutor(workers) as pool,
        Progress(disable=not sys.stderr.isatty()) as progress,
    ):
        bar = progress.add_task("solving", total=len(todo))
        running = [pool.submit(decide, size, time_limit) for size in todo]
        try:
            for done in as_completed(running):
                case = done.result()
                cases[case.size] = case
                progress.advance(bar)
                if keep is not None:
                    with keep.open("a", encoding="utf-8") as stream:
                        stream.write(json.dumps(asdict(case)) + "\n")
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
    return [cases[size] for size in wanted if size in cases]


def read_kept(keep: Path | None) -> dict[Size, Case]:
    """The cases of a file of ``--keep``."""
    if keep is None or not keep.exists():
        return {}
    lines = keep.read_text(encoding="utf-8").splitlines()
    return {case.size: case for case in (Case(**json.loads(line)) for line in lines)}


def write_rows(cases: Iterable[Case], path: Path) -> None:
    """Every case as a row of CSV; what its numbers show stands on the page."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        names = [each.name for each in fields(Case) if each.name not in LEFT_OUT]
        writer.writerow(names)
        for case in cases:
            writer.writerow([getattr(case, name) for name in names])


def main(
    ranks: int = max(RANKS),
    time_limit: float = 3.0,
    workers: int = 2,
    keep: Path | None = None,
    write: Path | None = None,
) -> None:
    """Survey, and write or print the page; see the module's text."""
    wanted = list(sizes(ranks))
    cases = survey(wanted, time_limit, workers, keep)
    page = markdown(cases, time_limit, len(wanted))
    if write is None:
        sys.stdout.write(page)
        return
    (write / "optimality.md").write_text(page, encoding="utf-8")
    write_rows(cases, write / "optimality.csv")


if __name__ == "__main__":
    typer.run(main)
