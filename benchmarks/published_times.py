"""Published iterations, estimated by constants fitted without their source and without their card.

``python -m benchmarks.published_times --write docs/measured/times.md``: the rows of
``published_rows.csv`` (each with its source) but those that it says to leave out. A few terms of
the model of times are fitted, each by a factor on where it starts, near 1 (``costs.times.
constants``): of ``NUMBERS`` of them the fewest with nearly the least mean error where whole
sources, a repository or a paper, are left out. ``--constants FILE`` writes the factors that the
package has, ``--errors FILE`` the errors of rows that no constant has seen, of which the bands of
estimates are made (``costs.times.estimate_errors``): those left out, and those of
``untouched_rows.csv``, to which nothing was fitted and which are estimated by what the package has.
Takes two minutes.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cost_model_unseen import unseen
from benchmarks.job_ranking import ranked_jobs, ranking_table
from benchmarks.markdown import markdown_table, put_out
from benchmarks.published_rows import (
    Published,
    card_of,
    errors_as_kept,
    percent,
    published,
    size_of,
    source_of,
    untouched,
)
from benchmarks.untouched_times import NOT_LOOKED_AT, untouched_table
from bubbleproof.costs.times.along_paths import paths
from bubbleproof.costs.times.calibration import Fit, uncalibrated
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import sheet_starts
from bubbleproof.costs.times.job_rows import JobRow
from bubbleproof.costs.times.work import Floats
from bubbleproof.formats.clusters.hardware_toml import CALIBRATED, read_hardware

EVIDENCE = 300.0  # of a row; a spread of 5 % of 60 rows as much as a constant's own
REMEMBERED = 0.5  # of it, where the source was not looked at again
ALIKE = 6  # rows of a source and model that say as much as so many
SAME = 0.001  # of a mean error: the fewest terms within it of the least are taken
SOURCES = ("SimuMax", "Korthikanti", "BPipe")  # cards and software with a calibration of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A constant, fitted for rows of a card or of a software, or of all."""

    name: str
    of: str = ""

    def holds(self, row: JobRow) -> bool:
        """Whether a row is of it."""
        kind = "" if row.card is None else row.card.name.partition("-")[0]
        return self.of in ("", kind, row.runs.name, row.runs.like)


# In the order of what they are worth. A rate of H100 would not be told from the software's factor.
TERMS = (
    Term(name="factor", of="megatron-core-overlapped"),
    Term(name="fp8"),
    Term(name="matmul", of="a100"),
    Term(name="matmul", of="b200"),
    Term(name="matmul", of="gb200"),
    Term(name="exchange"),
    Term(name="iteration"),
    Term(name="operands"),
    Term(name="dispatch"),
    Term(name="exposed_gradient"),
    Term(name="exposed_expert"),
    Term(name="blocking"),
    Term(name="exposed_tensor"),
    Term(name="stream"),
    Term(name="attention"),
    Term(name="memory"),
    Term(name="launch"),
    Term(name="exposed_context"),
    Term(name="exposed_shard"),
    Term(name="network_gradient"),
    Term(name="logits"),
    Term(name="message"),
    Term(name="group"),
    Term(name="straggler"),
)
NUMBERS = (0, 4, 6, 7, 8, 10, 12, 16, 20, len(TERMS))


class Study:
    """The rows that are fitted, as one fit of any number of terms and any part of the rows."""

    def __init__(self, rows: Sequence[Published], number: int) -> None:
        self.rows, self.terms = rows, TERMS[:number]
        own = [each.row for each in rows]
        where = np.array([[float(term.holds(row)) for row in own] for term in self.terms])
        names = [term.name for term in self.terms]
        self.fit = Fit(
            own, uncalibrated(card("h100")), names, where.reshape(number, len(own)), sheet_starts
        )
        alike = Counter((each.source, each.row.model.name) for each in rows)
        weights = [alike[each.source, each.row.model.name] for each in rows]
        self.evidence = EVIDENCE * np.minimum(1.5, np.sqrt(ALIKE / np.array(weights)))
        self.evidence *= [REMEMBERED if "as remembered" in each.source else 1.0 for each in rows]
        self.logs = self.fitted(np.ones(len(rows), dtype=bool))
        self.along = paths(self.fit.of, self.fit.factors(self.logs))

    def fitted(self, which: Floats, *, near: bool = False) -> Floats:
        """The logarithms of the terms' factors by these rows."""
        self.fit.evidence = np.where(which, self.evidence, 0.0)
        if not self.terms:
            return np.zeros(0)
        start = self.logs if near else np.zeros(len(self.terms))
        return self.fit.run(start, self.along if near else None)[0]

    def errors(self, logs: Floats | None = None) -> Floats:
        """Estimated over measured time less one."""
        found = self.fit.errors(self.logs if logs is None else logs, self.along)
        return np.asarray(np.exp(found) - 1)

    def left_out(self, group: Callable[[Published], str]) -> Floats:
        """Each row's error by constants fitted without its group."""
        groups = np.array([group(each) for each in self.rows])
        found = np.zeros(len(self.rows))
        for name in dict.fromkeys(groups):
            logs = self.fitted(groups != name, near=True)
            found = np.where(groups == name, self.errors(logs), found)
        return found


HEAD = """\
# Times of published iterations

Generated by `python -m benchmarks.published_times --write docs/measured/times.md`; not edited.
A100 (vTrain) and B200 (SimuMax), which have calibrations of their own, are judged in
[the model of times, judged](cost-model.md).

The rows, each with its source, stand in `benchmarks/published_rows.csv`; it says which are left
out, and why. The *form* of the model was settled with these rows in sight; what is judged here
is what constants carry over. *Error* is estimated over measured time, less one. **Left out**: by
constants that were fitted without all rows of the source. *Before*: the model as it was, where it
took the row.

"""
NUMBER = """\
In the order of the code. The fewest are taken whose mean error left out is within 0.1 % of the
least; differences below 0.5 % are noise.

"""


BESIDE = """
Three more rest on rows that are judged nowhere here (`left_out` in `published_rows.csv` says so):
0.7 of the attention's rate for llm-foundry's kernel (6 rows: 7B on A100-80GB), 0.72 of the 16-bit
rate for GB300 (4 rows: Megatron-Bridge 25.11), and 0.08 of `collective` from card to card in a ring
of shards (8 rows: llm-foundry's 125M and 7B on 2 to 16 nodes of A100-40GB; all 31 rows there give
0.084, other parts of them 0.03 to 0.14).
"""


RANKING = """\
Alternatives for one job, by rows left out and, of A100 (Korthikanti et al., BPipe) and B200
(SimuMax), by calibrations that were not fitted to them.

"""


def page(
    rows: Sequence[Published],
    study: Study,
    out: Floats,
    numbers: Sequence[tuple[Study, Floats]],
    apart: Sequence[Published],
    errors: Floats,
) -> str:
    """The page: of the study that is taken, with each number of terms and its errors left out; of
    rows ``apart`` from it their errors."""
    within = study.errors()
    cards = study.left_out(card_of)
    kinds = np.array([each.kind for each in rows])
    parts = [HEAD, "## How many constants\n\n", NUMBER]
    table = []
    for each, own in numbers:
        size = size_of(own), size_of(each.errors())
        chosen = " (taken)" if each is study else ""
        table.append((f"{len(each.terms)}{chosen}", size[1][0], *size[0]))
    header = ("fitted", "all rows, mean", "source left out, mean", "bias", "90 % within")
    parts += [markdown_table(header, table)]
    parts += [
        f"\nWith the card left out, {len(study.terms)} fitted: mean {size_of(cards)[0]}, bias ",
        f"{size_of(cards)[1]}, 90 % within {size_of(cards)[2]}.\n",
    ]
    groups: tuple[tuple[str, Callable[[Published], str]], ...] = (
        ("kind", lambda each: each.kind),
        ("card", lambda each: each.row.card.name if each.row.card else ""),
        ("software", lambda each: each.row.runs.name),
        ("products", lambda each: each.row.runs.products),
        ("source", source_of),
        ("card and kind", lambda each: f"{card_of(each)}, {each.kind}"),
    )
    for title, group in groups:
        parts += [f"\n## By {title}\n\n", _by(rows, group, out, within, title)]
    dense = size_of(out[kinds == "dense"])
    parts += [f"\nDense models left out: mean {dense[0]}, bias {dense[1]}.\n"]
    parts += ["\n## The constants that are fitted\n\n", _terms(study, rows), BESIDE]
    parts += ["\n## The order of alternatives\n\n", RANKING, _ranking(rows, out)]
    parts += [
        "\n## Rows that nothing was fitted to\n\n",
        NOT_LOOKED_AT,
        untouched_table(apart, errors),
    ]
    return "".join(parts)


def _ranking(rows: Sequence[Published], out: Floats) -> str:
    """Of rows left out, and of those that calibrations of the package were not fitted to."""
    estimated = [
        (each.row, each.row.measured_ms * (1 + e)) for each, e in zip(rows, out, strict=True)
    ]
    for name in ("a100-80gb", "b200"):
        judged = unseen(read_hardware(CALIBRATED / f"{name}.toml"))
        estimated += [(one.row, one.row.measured_ms * (1 + one.error)) for one in judged]
    return ranking_table(ranked_jobs(estimated))


def _by(
    rows: Sequence[Published],
    group: Callable[[Published], str],
    out: Floats,
    within: Floats,
    title: str,
) -> str:
    places: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(rows):
        places[group(each)].append(number)
    table = []
    for name, own in sorted(places.items()):
        was = np.array([b for n in own if (b := rows[n].before) is not None])
        old = (len(was), *size_of(was)[:2]) if len(was) else (0, "", "")
        table.append(
            (name, len(own), *old, percent(np.abs(within[own]).mean()), *size_of(out[own]))
        )
    header = (title, "rows", "of them before", "before, mean", "before, bias", "all rows, mean")
    return markdown_table((*header, "left out, mean", "bias", "90 % within"), table)


def _terms(study: Study, rows: Sequence[Published]) -> str:
    table = []
    for term, log in zip(study.terms, study.logs, strict=True):
        own = [each for each in rows if term.holds(each.row)]
        table.append(
            (term.name, term.of or "all", f"{np.exp(log):.3f}", len(own),
             len({source_of(each) for each in own}))
        )  # fmt: skip
    return markdown_table(("constant", "of", "factor on its start", "rows", "sources"), table)


def main(words: Sequence[str] | None = None) -> int:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published_times")
    parser.add_argument("--write", type=Path, metavar="PAGE.md")
    parser.add_argument("--constants", type=Path, metavar="FILE.csv")
    parser.add_argument("--errors", type=Path, metavar="FILE.csv")
    given = parser.parse_args(words)
    rows = [each for each in published() if not any(name in each.source for name in SOURCES)]
    numbers = [(each := Study(rows, number), each.left_out(source_of)) for number in NUMBERS]
    means = [float(np.abs(own).mean()) for _, own in numbers]
    study, out = numbers[next(n for n, mean in enumerate(means) if mean <= min(means) + SAME)]
    if given.constants is not None:
        write_constants(study, given.constants)
    apart = untouched()
    errors = errors_as_kept(apart)
    if given.errors is not None:
        write_errors([*rows, *apart], np.concatenate([out, errors]), given.errors)
    put_out(page(rows, study, out, numbers, apart, errors), given.write)
    return 0


def write_constants(study: Study, target: Path) -> None:
    """The factors that are fitted, for ``costs.times.constants``."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("constant", "of", "factor"))
        for term, log in zip(study.terms, study.logs, strict=True):
            writer.writerow((term.name, term.of or "all", f"{np.exp(log):.4f}"))


def write_errors(rows: Sequence[Published], errors: Floats, target: Path) -> None:
    """The errors of rows that no constant has seen, with what tells how near an estimate is."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = ("card", "software", "kind", "products", "cards", "parameters", "error")
        writer.writerow(("source", "model", *names))
        for each, error in zip(rows, errors, strict=True):
            row = each.row
            weights = row.model.layers * 12 * row.model.hidden**2
            writer.writerow(
                (source_of(each), row.model.name, card_of(each), row.runs.name, each.kind,
                 row.runs.products, row.gpus, weights, f"{error:.4f}")
            )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
