"""Every format: its endings, what its beginning says, what it holds, who reads and writes it.

A format is one entry of ``FORMATS``: commands, functions, ``verify`` of folders and help texts ask
here. Of formats with one ending the beginning decides, and where it does not, the first is meant;
a file with another ending or none is known by its beginning alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

from bubbleproof.formats.files import PLAN_NAME, SCHEDULE_NAME

OPENING = 4096  # bytes that tell a format


class Holds(Enum):
    """What a file holds; a picture, which a trace for Perfetto is too, is written alone."""

    SCHEDULE = auto()
    PROBLEM = auto()
    PLAN = auto()
    TRACE = auto()
    LAYOUT = auto()
    PICTURE = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format; ``name`` has its article, as in "a PyTorch table".

    ``marks`` is a regular expression that something in the file's beginning matches. ``reader``
    takes a path, of a table its dialect too, and ``writer`` a path and a ``ScheduleFile``;
    ``places`` tells where actions stand in the file. All are ``MODULE.FUNCTION``, loaded when they
    are used. ``is_whole``: a schedule's problem and its times are in it. ``use`` tells somebody who
    gave the file, there called ``FILE``, in the place of another thing what it is good for.
    """

    name: str
    holds: Holds
    endings: tuple[str, ...] = ()
    marks: str = ""
    reader: str = ""
    writer: str = ""
    places: str = ""
    dialects: tuple[str, ...] = ()
    is_whole: bool = False
    use: str = ""

    def read(self, path: str, dialect: str | None = None) -> Any:
        """What the file says. Raises ``UnusableInput`` in one line."""
        return _loaded(self.reader)(path, *([] if dialect is None else [dialect]))

    def write(self, path: str | Path, schedule: object) -> None:
        """Write a ``ScheduleFile``; an existing file is replaced whole or not at all."""
        _loaded(self.writer)(path, schedule)

    def placed(self, path: str, dialect: str | None) -> Any:
        """Where each action stands in the file, by its text; nothing where the format has none."""
        return _loaded(self.places)(path, dialect) if self.places else {}

    def told_at(self, opening: str) -> float:
        """Where a file's beginning says that it is one; infinity where it does not."""
        found = re.search(self.marks, opening) if self.marks else None
        return inf if found is None else found.start()


def _loaded(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def _json(name: str) -> str:
    return rf'"format"\s*:\s*"bubbleproof/{name}"'


def _table(*names: str) -> str:
    return rf"(?m:^[ \t]*\[[ \t]*(?:{'|'.join(names)})[ \t]*\])"


_HERE = "bubbleproof.formats."
FORMATS: tuple[Format, ...] = (
    Format(
        name="a schedule",
        holds=Holds.SCHEDULE,
        endings=(".json",),
        marks=_json("schedule"),
        reader=_HERE + "schedule_json.read_schedule",
        writer=_HERE + "schedule_json.write_schedule",
        is_whole=True,
        use="verify, show and hand-over take it",
    ),
    Format(
        name="a PyTorch table",
        holds=Holds.SCHEDULE,
        endings=(".csv",),
        reader=_HERE + "inference.read_timed_table",
        writer=_HERE + "pytorch_writer.write_program",
        places=_HERE + "table_places.table_places",
        dialects=("new", "old"),
        use="it tells no durations and no memory; verify, show and replay take it",
    ),
    Format(
        name="a plan",
        holds=Holds.PLAN,
        endings=(".json",),
        marks=_json("plan"),
        reader=_HERE + "plans.plan_folder.read_plan_at",
        is_whole=True,
        use="verify, show and hand-over take it",
    ),
    Format(
        name="a problem",
        holds=Holds.PROBLEM,
        endings=(".toml",),
        reader=_HERE + "problem_toml.read_problem",
        use="solve it first (bubbleproof solve FILE -o best.json)",
    ),
    Format(
        name="a model on a cluster",
        holds=Holds.OTHER,
        endings=(".toml",),
        marks=_table("cluster", "batch"),
        use="plan it first (bubbleproof plan FILE -o runs/plan)",
    ),
    Format(
        name="a model without a cluster",
        holds=Holds.OTHER,
        endings=(".toml",),
        marks=rf"(?s)\A(?!.*{_table('cluster', 'batch')}).*?{_table('model')}",
        use="bubbleproof costs FILE tells what it needs; [cluster] and [batch] make a plan of it",
    ),
    Format(
        name="a card with its constants",
        holds=Holds.OTHER,
        endings=(".toml",),
        marks=_table("constants"),
        use="estimate takes it as --hardware FILE, a model on a cluster as its hardware",
    ),
    Format(
        name="a certificate",
        holds=Holds.OTHER,
        endings=(".json",),
        marks=_json("(?:plan-)?certificate"),
        use="verify takes it beside what it is about, as --certificate FILE",
    ),
    Format(
        name="the report of a replay",
        holds=Holds.OTHER,
        endings=(".json",),
        marks=_json("replay"),
        use="replay its schedule anew",
    ),
    Format(
        name="a Megatron layout",
        holds=Holds.LAYOUT,
        endings=(".layout", ".args"),
        marks=r"\A\s*E[Etm|,()*\d\s]*L\s*\Z|--pipeline-model-parallel-layout\b",
        reader="bubbleproof.formats.layout_string.read_layout",
        use="it says where layers lie, not how long they take; bubbleproof measure FILE reads it, "
        "replay takes it as --layers FILE, and a problem gives the times of its stages "
        "([durations] forward = [...])",
    ),
    Format(
        name="a trace of a run",
        holds=Holds.TRACE,
        endings=(".json", ".json.gz"),
        marks=r'"(?:traceEvents|distributedInfo|schemaVersion)"',
        use="bubbleproof trace FILE reads it",
    ),
    Format(
        name="a dump of the Flight Recorder",
        holds=Holds.OTHER,
        endings=(".json", ".pkl"),
        marks=r'\A\x80|"(?:pg_config|comm_lib_version)"',
        use="bubbleproof hang FILE reads it",
    ),
    Format(
        name="rows of iterations",
        holds=Holds.OTHER,
        endings=(".csv",),
        marks=r"\A[^\n]*\b(?:gpus|global_batch|micro_batch)\b",
        use="estimate and calibrate take them",
    ),
    Format(name="a page", holds=Holds.PICTURE, endings=(".html",)),
    Format(name="a picture", holds=Holds.PICTURE, endings=(".svg", ".pdf", ".png")),
    Format(
        name="a picture for Perfetto",
        holds=Holds.PICTURE,
        endings=(".perfetto.json",),
        marks=r'"displayTimeUnit"',
        writer=_HERE + "perfetto.write_trace_of",
    ),
)
# What a file without a known ending looks like.
_LIKE = {
    ".json": r"\A\s*\{",
    ".toml": r"(?m)\A(?:\s*#.*)*\s*(?:\[+[\w .]+\]+|[\w.]+[ \t]*=)",
    ".csv": r"\A[,\s]*\(?[0-9]+[A-Z]",
}


def format_of(path: str | os.PathLike[str], *, is_sure: bool = False) -> Format | None:
    """The format of a file, or of what a folder of a plan or a run is given for; None for others.

    ``is_sure``: nothing is taken for the first format with its ending that does not say so.
    """
    file = file_within(path)
    name, opening = file.name.lower(), _opening(file)
    alike = [each for each in FORMATS if name.endswith(each.endings)]
    told = min(alike or FORMATS, key=lambda each: each.told_at(opening))
    if told.told_at(opening) < inf:
        return told
    if not alike:
        ending = ending_of(opening)
        alike = [each for each in FORMATS if ending in each.endings]
    return next((each for each in alike if not (is_sure and each.marks)), None)


def has_dialects(path: str) -> bool:
    """Whether a file's format has dialects, of which one may have to be told."""
    known = format_of(path)
    return known is not None and bool(known.dialects)


def ending_of(text: str) -> str:
    """The ending that a file of this beginning would have; empty where nothing shows it."""
    return next((ending for ending, like in _LIKE.items() if re.search(like, text)), "")


def file_within(path: str | os.PathLike[str]) -> Path:
    """The schedule in the folder of a plan or a run, or its plan; the path itself of all others."""
    where = Path(path)
    names = (where / SCHEDULE_NAME, where / PLAN_NAME)
    try:
        return next((each for each in names if each.is_file()), where)
    except OSError:  # a name that is too long is no folder's
        return where


def _opening(file: Path) -> str:
    try:
        if not file.is_file():  # a device or a pipe is not asked
            return ""
        with file.open("rb") as stream:
            return stream.read(OPENING).decode("latin-1")
    except (OSError, ValueError):
        return ""


def endings(*holds: Holds) -> tuple[str, ...]:
    """The endings of what holds one of these."""
    return tuple(ending for each in FORMATS if each.holds in holds for ending in each.endings)


def written() -> dict[str, Format]:
    """The formats that a schedule is written in, by the ending that asks for each."""
    return {ending: each for each in FORMATS if each.writer for ending in each.endings}


def written_as(target: str) -> Format | None:
    """The format in which a schedule is written to a file of this name, where there is one."""
    known = written()
    asked = max((ending for ending in known if target.endswith(ending)), key=len, default=None)
    return None if asked is None else known[asked]


def listed(words: Sequence[str]) -> str:
    """``a, b or c``."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def files_named(known: Iterable[str]) -> str:
    """How a help text names files with these endings: ``FILE.json, FILE.csv``."""
    return ", ".join(f"FILE{ending}" for ending in known)
