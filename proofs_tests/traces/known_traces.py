"""Traces whose truth is known, and what ``trace`` says of them.

    python -m proofs_tests.traces.known_traces [RUNS]

Each run is drawn: a family and its size, whether RECVs block or are posted, whether gloo tells of
receipts, whether SENDs wait, whether each direction has a communicator and a thread of its own, how
many SENDs and RECVs are tried again, how far the clocks lie apart and drift, jitter, and a stage
that is three times as slow in one kind, or none. A stage that is named and was not slow is *wrong*;
a slow one that is not named, but said to be open for the clocks, is *open*.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.markdown import markdown_table
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, Action, Kind
from bubbleproof.traces.stragglers import perhaps_stragglers, stragglers
from bubbleproof.traces.trace_spans import read_trace
from bubbleproof.traces.traced_steps import traced_job
from bubbleproof.traces.traced_waits import TimeSpent, traced_times
from proofs_tests.traces.made_traces import Lasting, MadeRun

FAMILIES = {"1f1b": (Kind.F, Kind.B), "gpipe": (Kind.F, Kind.B), "zb-h1": (Kind.F, Kind.I, Kind.W)}
RUNTIMES = ("blocking", "blocking, two communicators", "posted", "posted, receipts", "sends wait")
WAITING = (TimeSpent.MESSAGE, TimeSpent.LINK)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTrace:
    """What was drawn, and what ``trace`` made of it; times in ns, of all ranks and steps."""

    name: str
    runtime: str
    skew: int
    answer: str
    waited: int
    told: int
    launched: int
    in_recv: bool


def known_trace(seed: int, folder: Path) -> KnownTrace:
    """Draw a run, write its traces and read them."""
    draw = random.Random(seed)
    name, p, m = draw.choice([*FAMILIES]), draw.choice([3, 4]), draw.choice([4, 6, 8])
    runtime = draw.choice(RUNTIMES)
    skew = draw.choice([0, 0, 50_000_000, 100_000_000, 1_000_000_000])
    drift = draw.choice([0, 0, 50])
    slow = (draw.choice(FAMILIES[name]), draw.randrange(p)) if draw.random() < 0.75 else None
    run = MadeRun(
        name=name,
        params={"p": p, "m": m},
        lasting=lasting(draw, slow, draw.choice([0, 0.05])),
        steps=draw.choice([1, 3]),
        flight=draw.choice([1_000, 30_000]),
        receipts=runtime == "posted, receipts",
        blocking=runtime.startswith("blocking"),
        sends_wait=runtime == "sends wait",
        beside=runtime.endswith("two communicators"),
        retried=retried(draw, draw.choice([0, 0, 0.05, 0.3])),
    ).run()
    shifts = {rank: draw.randint(-skew, skew) for rank in range(1, p)}
    paths = run.write(folder, shifts, dict.fromkeys(range(1, p), drift))
    times = traced_times(traced_job([read_trace(path) for path in paths]))
    spent = sum((step.spent(r) for step in times.steps for r in range(p)), Counter[TimeSpent]())
    wanted = set() if slow is None else {slow}
    named = {(each.kind, each.stage) for each in stragglers(times)}
    left = {(each.kind, each.stage) for each in perhaps_stragglers(times)}
    answer = "right" if named == wanted else "open" if wanted <= left and not named else "wrong"
    return KnownTrace(
        name=f"{seed}: {name} p={p} m={m} {runtime} skew {skew} drift {drift} slow {slow}",
        runtime=runtime,
        skew=skew,
        answer=answer,
        waited=run.waited,
        told=sum(spent[cause] for cause in WAITING),
        launched=spent[TimeSpent.LAUNCH],
        in_recv=times.model.in_recv,
    )


def lasting(draw: random.Random, slow: tuple[Kind, int] | None, jitter: float) -> Lasting:
    """1 ms, a little more at random, three times that where it is slow."""

    def ticks(action: Action, _step: int) -> int:
        factor = 3 if slow == (action.kind, action.stage) else 1
        return round(1_000_000 * factor * (1 + draw.uniform(0, jitter)))

    return ticks


def retried(draw: random.Random, share: float) -> Callable[[Action, int], bool]:
    """So many SENDs and RECVs, at random."""
    return lambda action, _step: action.kind in COMMUNICATION_KINDS and draw.random() < share


def known_table(number: int) -> tuple[str, Counter[str]]:
    """The table of so many runs, and how many answers of each kind; a refused run is *wrong*."""
    rows: dict[tuple[str, str], list[KnownTrace]] = {}
    answers = Counter[str]()
    for seed in range(number):
        with TemporaryDirectory() as folder:
            try:
                found = known_trace(seed, Path(folder))
            except UnusableInput:
                answers["wrong"] += 1
                continue
        skew = "one host" if not found.skew else f"+-{found.skew // 1_000_000} ms"
        rows.setdefault((found.runtime, skew), []).append(found)
        answers[found.answer] += 1
    header = ("runtime", "clocks", "runs", "right", "open", "wrong", "waits told / true")
    return markdown_table(header, (_row(*key, runs) for key, runs in sorted(rows.items()))), answers


def _row(runtime: str, skew: str, runs: Sequence[KnownTrace]) -> tuple[object, ...]:
    answers = Counter(run.answer for run in runs)
    share = sum(run.told for run in runs) / max(1, sum(run.waited for run in runs))
    counts = [answers[each] for each in ("right", "open", "wrong")]
    return (runtime, skew, len(runs), *counts, f"{share:.3f}")


def main(words: list[str]) -> int:
    """Print the table of so many runs; 1 where a stage is named that was not slow."""
    table, answers = known_table(int(words[0]) if words else 400)
    sys.stdout.write(table)
    return int(answers["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
