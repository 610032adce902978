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

from bubbleproof.commands.inputs import IN_FOLDER, SUFFIXES
from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.options.targets import written_together
from bubbleproof.commands.output import print_json, print_table, print_text
from bubbleproof.commands.verify import asked_semantics
from bubbleproof.commands.verifying.judged_file import FileQuestion, JudgedFile, judge
from bubbleproof.commands.verifying.junit_xml import junit
from bubbleproof.commands.verifying.sarif import sarif
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.files import write_text
from bubbleproof.formats.schedule_json import FORMAT
from bubbleproof.parallel import open_executor, run_all
from bubbleproof.version import package_version

WORST_FIRST = (2, 1, 3, 0)
STATES = {0: "holds", 1: "violated", 2: "unusable", 3: "undecided"}


def is_many(words: Sequence[str], request: VerifyRequest) -> bool:
    """Whether this asks for several schedules, or for files about one."""
    if request.junit is not None or request.sarif is not None:
        return True
    if len(words) == 1:
        return _is_folder_of_files(words[0])
    return all(word.lower().endswith(SUFFIXES) or Path(word).is_dir() for word in words)


def run_verify_many(words: Sequence[str], request: VerifyRequest) -> int:
    """Judge all that the words name, print it and write what is asked for."""
    for option, given in (("--certificate", request.certificate), ("--spec", request.spec)):
        if given:
            raise ValueError(f"{option} goes with one schedule, without --junit and --sarif")
    semantics = asked_semantics(request)
    questions = [
        FileQuestion(
            words=tuple(each), semantics=semantics, problem=request.problem, dialect=dialect
        )
        for each in _schedules(words)
        for dialect in [request.dialect if each[0].lower().endswith(".csv") else None]
    ]
    with open_executor(request.workers) as executor:
        judged = run_all(executor, judge, questions)
    _write(judged, request)
    status = next(each for each in WORST_FIRST if each in {found.status for found in judged})
    if request.json:
        print_json({"ok": status == 0, "schedules": [found.content for found in judged]})
    else:
        _print(judged)
    return status


def _schedules(words: Sequence[str]) -> list[list[str]]:
    """The words of each schedule: a file each, those of folders, or one family's."""
    is_family = not (words[0].lower().endswith(SUFFIXES) or Path(words[0]).is_dir())
    if is_family:
        return [list(words)]
    found = [[name] for word in words for name in _files_of(word)]
    if not found:
        expected = "a table (.csv) or a schedule (.json) in it or below"
        raise UnusableInput("", expected, "none", words[0])
    return found


def _is_folder_of_files(word: str) -> bool:
    folder = Path(word)
    names = (IN_FOLDER, "plan.json")
    return folder.is_dir() and not any((folder / name).is_file() for name in names)


def _files_of(word: str) -> Iterator[str]:
    if not _is_folder_of_files(word):
        yield word
        return
    for path in sorted(Path(word).rglob("*")):
        suffix = path.suffix.lower()
        if path.is_file() and (suffix == ".csv" or (suffix == ".json" and _says_schedule(path))):
            yield str(path)


def _says_schedule(path: Path) -> bool:
    """Whether a JSON file says near its beginning that it is a schedule."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return f'"{FORMAT}"' in file.read(200)


def _write(judged: Sequence[JudgedFile], request: VerifyRequest) -> None:
    with written_together(None, request.junit, request.sarif) as (_, for_junit, for_sarif):
        if request.junit is not None:
            write_text(for_junit, junit(judged))
        if request.sarif is not None:
            write_text(for_sarif, sarif(judged, package_version()))


def _print(judged: Sequence[JudgedFile]) -> None:
    rows = [
        (found.path, STATES[found.status], ", ".join(dict.fromkeys(t.rule for t in found.troubles)))
        for found in judged
    ]
    print_table(f"{len(judged)} schedules", ("schedule", "verdict", "rules"), rows)
    for found in judged:
        for trouble in found.troubles:
            where = f"{found.path}: " if found.status != 2 else ""  # a refusal names its file
            place = f"{trouble.place}: " if trouble.place and found.status != 2 else ""
            state = "" if trouble.is_decided else f"{trouble.rule} undecided: "
            print_text(f"\n{where}{place}{state}{trouble.message}\n{trouble.picture}".rstrip())
    holds = sum(found.status == 0 for found in judged)
    print_text(f"\n{holds} of {len(judged)} hold")
