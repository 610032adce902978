"""Published iterations, estimated by constants fitted without their source and without their card.

``python -m benchmarks.published_times --write docs/measured/times.md``: the rows of
``published_rows.csv`` (each with its source) but those that it says to leave out. A few terms of
the model of times are fitted, each by a factor on where it starts, near 1 (``costs.times.
fitted_constants``): of ``NUMBERS`` of them that with the least mean error where whole sources, a
repository or a paper, are left out. ``--constants FILE`` writes
the factors that the package has, ``--errors FILE`` what is left on rows left out: what
``costs.times.estimate_errors`` tells of other estimates. ``untouched_rows.csv`` has rows that
nothing was fitted to, chosen by or looked at for; they are estimated by what the package has. Takes
a minute.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cost_model_unseen import unseen
from benchmarks.job_ranking import ranked_jobs, ranking_table
from benchmarks.markdown import markdown_table, put_out
from bubbleproof.costs.times.along_paths import paths
from bubbleproof.costs.times.calibration import Fit, uncalibrated
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import sheet_starts
from bubbleproof.costs.times.estimate_errors import error_of
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import JobRow, rows_of
from bubbleproof.costs.times.work import Floats
from bubbleproof.formats.clusters.hardware_toml import CALIBRATED, read_hardware

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+(?=[ @]|$)")
ROWS = Path(__file__).with_name("published_rows.csv")
UNTOUCHED = Path(__file__).with_name("untouched_rows.csv")
EVIDENCE = 300.0  # of a row; a spread of 5 % of 60 rows as much as a constant's own
REMEMBERED = 0.5  # of it, where the source was not looked at again
ALIKE = 6  # rows of a source and model that say as much as so many
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
    Term(name="grouped"),
    Term(name="factor", of="torch"),
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
NUMBERS = (0, 4, 6, 8, 10, 12, 15, 20, len(TERMS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row with its source, and what the model said before its terms were told apart."""

    row: JobRow
    source: str
    before: float | None

    @property
    def kind(self) -> str:
        """Dense, or a mixture."""
        return "mixture" if any(k.experts for k, _ in self.row.model.layer_runs) else "dense"


def published() -> list[Published]:
    """All rows that are not left out."""
    head, *lines = ROWS.read_text(encoding="utf-8").splitlines()
    told = list(csv.DictReader([head, *lines]))
    kept = [(line, one) for line, one in zip(lines, told, strict=True) if not one["left_out"]]
    rows = rows_of("\n".join([head, *(line for line, _ in kept)]), measured=True)
    return [
        Published(
            row=row,
            source=one["source"],
            before=float(one["before_ms"]) / row.measured_ms - 1 if one["before_ms"] else None,
        )
        for row, (_, one) in zip(rows, kept, strict=True)
    ]


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


def source_of(each: Published) -> str:
    """What is left out together: a repository, or a paper."""
    repository = REPOSITORY.match(each.source)
    return repository.group() if repository else each.source


def card_of(each: Published) -> str:
    """The card of a row, of any memory."""
    return "" if each.row.card is None else each.row.card.name.partition("-")[0]


def _size(errors: Floats) -> tuple[str, str, str]:
    large = np.quantile(np.abs(errors), 0.9)
    return _percent(np.abs(errors).mean()), f"{100 * errors.mean():+.1f} %", _percent(large)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


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
In the order of the code. That with the least mean error left out is taken; differences below 0.5 %
are noise.

"""


RANKING = """\
Alternatives for one job, by rows left out and, of A100 (Korthikanti et al., BPipe) and B200
(SimuMax), by calibrations that were not fitted to them.

"""
NOT_LOOKED_AT = """\
`benchmarks/untouched_rows.csv`: all rows of the tables of llm-foundry, torchtitan, Megatron-Bridge
and of other releases of the DGX Cloud recipes that are not among those above. They were written
down before they were estimated, nothing was changed after it, and the constants are the package's.
Of mixtures in Megatron-Bridge's tables the dispatcher, CUDA graphs and recomputed operations are
not told.

"""


def page(
    rows: Sequence[Published],
    study: Study,
    out: Floats,
    numbers: Sequence[tuple[Study, Floats]],
) -> str:
    """The page: of the study that is taken, with each number of terms and its errors left out."""
    within = study.errors()
    cards = study.left_out(card_of)
    kinds = np.array([each.kind for each in rows])
    parts = [HEAD, "## How many constants\n\n", NUMBER]
    table = []
    for each, own in numbers:
        size = _size(own), _size(each.errors())
        chosen = " (taken)" if each is study else ""
        table.append((f"{len(each.terms)}{chosen}", size[1][0], *size[0]))
    header = ("fitted", "all rows, mean", "source left out, mean", "bias", "90 % within")
    parts += [markdown_table(header, table)]
    parts += [
        f"\nWith the card left out, {len(study.terms)} fitted: mean {_size(cards)[0]}, bias ",
        f"{_size(cards)[1]}, 90 % within {_size(cards)[2]}.\n",
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
    dense = _size(out[kinds == "dense"])
    parts += [f"\nDense models left out: mean {dense[0]}, bias {dense[1]}.\n"]
    parts += ["\n## The constants that are fitted\n\n", _terms(study, rows)]
    parts += ["\n## The order of alternatives\n\n", RANKING, _ranking(rows, out)]
    parts += ["\n## Rows that nothing was fitted to or chosen by\n\n", NOT_LOOKED_AT, _untouched()]
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


def _untouched() -> str:
    """Each group's errors, and how many rows are outside the band that is told of them."""
    text = UNTOUCHED.read_text(encoding="utf-8")
    settings = [one["settings"] for one in csv.DictReader(text.splitlines())]
    rows = rows_of(text, measured=True)
    times = estimated_ms(rows, uncalibrated(card("h100")))
    errors = np.array([time / row.measured_ms - 1 for row, time in zip(rows, times, strict=True)])
    groups: dict[str, list[int]] = defaultdict(list)
    for number, (row, unknown) in enumerate(zip(rows, settings, strict=True)):
        told = "mixtures, settings told in part" if unknown else row.runs.products
        kind = "" if row.card is None else row.card.name
        groups[f"{row.runs.name}, {kind}, {told}"].append(number)
        groups["all" if not unknown else f"all {told}"].append(number)
    bands = np.array(
        [error_of(row.model, row.card or card("h100"), row.runs, row.gpus).band for row in rows]
    )
    outside = np.abs(errors) > bands
    table = [
        (name, len(own), *_size(errors[own]), int(outside[own].sum()))
        for name, own in sorted(groups.items())
    ]
    return markdown_table(
        ("rows", "number", "mean", "bias", "90 % within", "outside their band"), table
    )


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
        old = (len(was), *_size(was)[:2]) if len(was) else (0, "", "")
        table.append((name, len(own), *old, _percent(np.abs(within[own]).mean()), *_size(out[own])))
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
    study, out = min(numbers, key=lambda each: float(np.abs(each[1]).mean()))
    if given.constants is not None:
        write_constants(study, given.constants)
    if given.errors is not None:
        write_errors(rows, out, given.errors)
    put_out(page(rows, study, out, numbers), given.write)
    return 0


def write_constants(study: Study, target: Path) -> None:
    """The factors that are fitted, for ``costs.times.constants``."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("constant", "of", "factor"))
        for term, log in zip(study.terms, study.logs, strict=True):
            writer.writerow((term.name, term.of or "all", f"{np.exp(log):.4f}"))


def write_errors(rows: Sequence[Published], errors: Floats, target: Path) -> None:
    """The errors of rows left out, with what tells how near another estimate is."""
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
