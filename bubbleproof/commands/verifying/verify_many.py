"""``bubbleproof verify A.csv B.json DIR/``: many schedules in one process, on workers if asked.

A folder stands for every table (.csv) in it and below, and for every .json there that says to be a
schedule. Each file is judged by itself, in the order given; one that cannot be read ends nothing.
The exit status is that of the worst: 2 where one cannot be read, else 1 where one breaks a rule,
else 3 where one is undecided. ``--junit`` and ``--sarif`` write the same for programs, of a single
schedule too; with ``--json`` ``ok`` is of all, and ``schedules`` holds the object of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.output import print_json, print_line, print_table, print_text
from bubbleproof.commands.verdicts import asked_semantics
from bubbleproof.commands.verifying.judged_file import FileQuestion, JudgedFile, Trouble, judge
from bubbleproof.commands.verifying.verdict_files import junit, sarif
from bubbleproof.formats.all_or_nothing import written_together
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import write_text
from bubbleproof.formats.format_table import Holds, endings, file_within, format_of, has_dialects
from bubbleproof.formats.inputs import is_schedule_file
from bubbleproof.parallel import open_executor, run_all
from bubbleproof.version import package_version

WORST_FIRST = (2, 1, 3, 0)
STATES = {0: "VALID", 1: "INVALID", 2: "UNREADABLE", 3: "UNDECIDED"}


def run_verify_many(words: Sequence[str], request: VerifyRequest) -> int:
    """Judge all that the words name, print it and write what is asked for."""
    request.leave_out("several schedules, or --junit and --sarif", "certificate", "coq", "spec")
    semantics = asked_semantics(request)
    questions = [
        FileQuestion(
            words=tuple(each), semantics=semantics, problem=request.problem, dialect=dialect
        )
        for each in schedules_of(words)
        for dialect in [request.dialect if has_dialects(each[0]) else None]
    ]
    if all(each.dialect is None for each in questions):
        request.leave_out("schedules of which none is a table (.csv)", "dialect")
    with open_executor(request.workers) as executor:
        judged = run_all(executor, judge, questions)
    _write(judged, request)
    status = next(each for each in WORST_FIRST if each in {found.status for found in judged})
    if request.json:
        print_json({"ok": status == 0, "schedules": [found.content for found in judged]})
    else:
        _print(judged, verbose=request.verbose)
    return status


def schedules_of(words: Sequence[str]) -> list[list[str]]:
    """The words of each schedule: a file each, those of folders, or one family's.

    Raises ``UnusableInput`` for a folder without any.
    """
    if not is_schedule_file(words[0]):
        return [list(words)]
    found = [[name] for word in words for name in _files_of(word)]
    if not found:
        expected = "a table (.csv) or a schedule (.json) in it or below"
        raise UnusableInput("", expected, "none", words[0])
    return found


def _files_of(word: str) -> Iterator[str]:
    if not file_within(word).is_dir():
        yield word
        return
    for path in sorted(Path(word).rglob("*")):
        if path.is_file() and path.name.lower().endswith(endings(Holds.SCHEDULE)):
            known = format_of(path, is_sure=True)
            if known is not None and known.holds is Holds.SCHEDULE:
                yield str(path)


def _write(judged: Sequence[JudgedFile], request: VerifyRequest) -> None:
    with written_together(None, request.junit, request.sarif) as (_, for_junit, for_sarif):
        if request.junit is not None:
            write_text(for_junit, junit(judged))
        if request.sarif is not None:
            write_text(for_sarif, sarif(judged, package_version()))


def _print(judged: Sequence[JudgedFile], *, verbose: bool) -> None:
    """How many are valid; then each that is not, and the first of its troubles, or all."""
    valid = sum(found.status == 0 for found in judged)
    more = "" if verbose else "   (-v: each of them)"
    print_line(f"{valid} of {len(judged)} valid{more}")
    if verbose:
        rows = [(found.path, STATES[found.status], _rules(found)) for found in judged]
        print_table("", ("schedule", "verdict", "rules"), rows)
    for found in judged:
        if found.status and not verbose:
            print_line(f"{found.path}: {STATES[found.status]} ({_rules(found)})")
        for trouble in found.troubles if verbose else _first_of_each(found):
            where = f"{found.path}: " if found.status != 2 else ""  # a refusal names its file
            place = f"{trouble.place}: " if trouble.place and found.status != 2 else ""
            state = "" if trouble.is_decided else f"{trouble.rule} undecided: "
            print_line(f"{where}{place}{state}{trouble.message}")
            if trouble.picture:
                print_text(trouble.picture)


def _first_of_each(found: JudgedFile) -> list[Trouble]:
    """The first trouble of each rule that is broken, whatever the case of it."""
    decided = [trouble for trouble in reversed(found.troubles) if trouble.is_decided]
    return [*{_name(trouble): trouble for trouble in decided}.values()][::-1]


def _rules(found: JudgedFile) -> str:
    return ", ".join(dict.fromkeys(map(_name, found.troubles)))


def _name(trouble: Trouble) -> str:
    """The rule, without the case of it."""
    return trouble.rule.partition(" ")[0]
