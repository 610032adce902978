"""No option of any command is ever ignored: it changes the answer, or it is refused in one line.

The options are those that the command line declares; one without a case here fails. A case is
``OUTCOME | words | the option with its value``:

- ``refused``: status 2, one line that names the option, and nothing written. Its value, or what is
  asked about, has no meaning for it;
- ``changes``: with the option the status, the answer or the files that are written differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from typer import Typer
from typer.main import get_command

from bubbleproof.cli import app
from bubbleproof.solvers.bound_search import BoundSearch
from proofs_tests.commands.conftest import Answer, Run
from proofs_tests.costs.measured_cases import B200

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = "ranks = 2\nmicrobatches = 3\n[durations]\nforward = 1\nbackward = 2\n"
FILES = {
    "small.toml": SMALL + "[memory]\nactivation = 1\n",
    "tight.toml": SMALL + "[memory]\nactivation = 1\ncapacity = 1\n",
    # One resource shows 78 ticks, and 80 are optimal.
    "open.toml": "ranks = 4\nmicrobatches = 8\n[durations]\nforward = 2\nbackward = 4\n"
    "[memory]\ncapacity = 4\n[links]\nlatency = 1\n",
    "rows.csv": B200,
    "plan.toml": SMALL + "[memory]\nactivation = 1\n[plan]\nchunks = [1]\n",
    "two.toml": SMALL + "[memory]\nactivation = 1\n[plan]\nchunks = [1, 2]\n",
}
LIMITS = """
refused | {0} | --time-limit 0
refused | {0} | --work 0
refused | {0} | --threads 0
refused | {0} | --seed -1
refused | {0} | --memory 1KiB
"""
MODEL = """
refused | {0} --model nothing:here | --hidden 16
refused | {0} --model nothing:here | --layers 2
refused | {0} | --heads 1
refused | {0} | --kv-heads 2
refused | {0} --model transformer | --kv-heads 2
refused | {0} --model nothing:here | --sequence 8
refused | {0} --model nothing:here | --batch 8
refused | {0} --model nothing:here | --vocabulary 9
refused | {0} --model hf:config.json | --vocabulary 9
refused | {0} | --tied
refused | {0} | --dtype float8
refused | {0} | --model-seed -1
refused | {0} | --model nothing
"""
ELSEWHERE = """
refused | {0} | --scheduler tcp://127.0.0.1:1
refused | {0} | --cluster tcp://127.0.0.1:1
"""
DETAIL = """
changes | {0} | -q
changes | {0} | -v
changes | {0} | --all
refused | {0} -q | -v
"""
CASES = {
    "run": LIMITS.format("run small.toml") + """
refused | run small.toml | --backend nothing
changes | run small.toml --backend virtual | -o there
changes | run small.toml --backend virtual -o runs | --json
changes | run small.toml --backend virtual -o runs | --verbose
""",
    "solve": LIMITS.format("solve small.toml") + """
changes | solve small.toml | --engine pulp
changes | solve small.toml | --objective span_idle
changes | solve small.toml | --within 1
refused | solve small.toml --engine pulp | --work 2
refused | solve small.toml --engine pulp-cbc | --threads 3
changes | solve open.toml --engine cpsat | --certified
changes | solve small.toml | --require 0B0<0F1
changes | solve small.toml | --forbid 0F1<0B0
refused | solve small.toml | --keep a.json
refused | solve small.toml | --keep-ranks 0
refused | solve small.toml | --keep-until 3
changes | solve small.toml | -o best.json
changes | solve small.toml | --certificate c.json
refused | solve small.toml --objective peak | --certificate c.json
changes | solve small.toml | --verbose
refused | solve small.toml --json | --verbose
changes | solve small.toml | --json
""",
    "repair": DETAIL.format("repair a.json") + """
changes | repair a.json | --problem tight.toml
refused | repair a.json | --dialect new
refused | repair a.json | --time-limit 0
changes | repair a.json | -o r.json
changes | repair a.json | --json
""",
    "pareto": ELSEWHERE.format("pareto small.toml") + DETAIL.format("pareto small.toml") + """
refused | pareto small.toml | --time-limit 0
refused | pareto small.toml | --workers 0
refused | pareto small.toml | -o front.txt
changes | pareto small.toml | --schedules there
changes | pareto small.toml | --json
""",
    "plan": LIMITS.format("plan plan.toml") + ELSEWHERE.format("plan plan.toml") + """
refused | plan plan.toml | --workers 0
refused | plan plan.toml --scheduler tcp://127.0.0.1:1 | --workers 3
changes | plan plan.toml | --certificate c.json
changes | plan plan.toml | --paper bpipe
refused | plan plan.toml | --yours tensor=2
refused | plan plan.toml | --tokens 1e12
refused | plan plan.toml | --what-if network=2x
refused | plan plan.toml | --card h100
refused | plan plan.toml | --framework any
refused | plan plan.toml | --cards 8
refused | plan plan.toml | --samples 8
refused | plan plan.toml | --sequence 8
refused | plan plan.toml | --hardware own.toml
refused | plan plan.toml | --assumptions
changes | plan plan.toml | -o there
changes | plan plan.toml | --json
changes | plan plan.toml | --verbose
changes | plan plan.toml | --all
changes | plan two.toml | --why
""",
    "hand-over": DETAIL.format("hand-over a.json --to torch-2.13 -o there") + """
changes | hand-over a.json -o there | --to torch-2.13
changes | hand-over a.json --to torch-2.13 | -o there
changes | hand-over a.json --to torch-2.13 -o there | --check
changes | hand-over a.json --to torch-2.13 -o there | --json
""",
    "bench": DETAIL.format("bench small.toml --engine cpsat") + """
changes | bench small.toml | --engine cpsat
refused | bench small.toml | --time-limit 0
refused | bench small.toml | --threads 0
changes | bench small.toml --engine cpsat | --decide
changes | bench small.toml --engine cpsat | --json
""",
    "verify": """
changes | verify a.json | --problem tight.toml
changes | verify a.json | --comm buffered
refused | verify a.json --spec | --comm buffered
refused | verify plan.toml --certificate bundle.json | --comm buffered
changes | verify a.json | --runtime torch-2.13
refused | verify a.json --spec | --runtime torch-2.13
refused | verify plan.toml --certificate bundle.json | --runtime torch-2.13
changes | verify s.json | --certificate s-bound.json
refused | verify a.json a.csv | --certificate s-bound.json
refused | verify a.json --spec | --certificate s-bound.json
changes | verify s.json --certificate s-bound.json | --coq s.v
refused | verify a.json | --coq a.v
refused | verify a.json a.csv | --coq a.v
refused | verify a.json --spec | --coq a.v
refused | verify planned | --coq a.v
changes | verify planned --certificate bundle.json | --coq a.v
refused | verify plan.toml --certificate bundle.json | --coq a.v
changes | verify a.json | --spec
refused | verify a.json a.csv | --spec
refused | verify a.json | --dialect new
refused | verify planned | --dialect new
refused | verify a.json s.json | --dialect new
refused | verify a.json | --workers 3
refused | verify a.json --spec | --workers 3
refused | verify planned | --workers 3
refused | verify a.json a.csv | --workers 0
changes | verify a.json | --junit x.xml
changes | verify a.json | --sarif x.sarif
changes | verify a.json | --verbose
changes | verify a.json --spec | --verbose
changes | verify a.json s.json | --verbose
changes | verify planned | --verbose
refused | verify a.json --json | --verbose
changes | verify a.json | --json
""",
    "measure": """
changes | measure 1f1b p=2 m=3 | --why
changes | measure 1f1b p=2 m=3 | --verbose
refused | measure 1f1b p=2 m=3 --json | --verbose
changes | measure 1f1b p=2 m=3 | --json
""",
    "diff": DETAIL.format("diff a.json s.json") + """
refused | diff a.json s.json | --dialect new
changes | diff a.json s.json | --json
""",
    "costs": DETAIL.format("costs llama-2-13b") + """
refused | costs llama-2-13b | -o costs.toml
changes | costs llama-2-13b | --json
""",
    "calibrate": DETAIL.format("calibrate rows.csv -o hardware.toml") + """
changes | calibrate rows.csv | -o hardware.toml
refused | calibrate rows.csv -o hardware.toml | --card nothing
refused | calibrate rows.csv -o hardware.toml | --yours tensor=2
refused | calibrate rows.csv -o hardware.toml | --took 2s
changes | calibrate rows.csv -o hardware.toml | --json
""",
    "estimate": DETAIL.replace(
        "{0}", "estimate {examples}/cluster/iterations.csv --hardware h100"
    ) + """
changes | estimate {examples}/cluster/iterations.csv | --hardware h100
changes | estimate {examples}/cluster/iterations.csv --hardware h100 | --json
""",
    "replay": MODEL.format("replay a.json") + DETAIL.format("replay a.json") + """
refused | replay a.json | --backend nothing
refused | replay a.json --backend torch-runtime | --device cuda
refused | replay a.json --backend gloo | --seed 3
refused | replay a.json --backend torch-runtime | --seed 3
refused | replay a.json --backend torch-runtime | --unsafe
refused | replay a.json --backend torch-runtime | --no-count-bytes
refused | replay a.json --backend torch-runtime | --no-count-work
refused | replay a.json | --share-gpu
refused | replay a.json | --dialect new
refused | replay a.json | --steps 0
refused | replay a.json | --optimizer nothing
refused | replay a.json | --learning-rate -1
refused | replay a.json --backend torch-runtime | --barrier
refused | replay a.json | --clip 0
refused | replay a.json | --accumulate 0
refused | replay a.json | --loss-scale 3
refused | replay a.json --backend torch-runtime | --data-parallel 2
refused | replay a.json --backend torch-runtime | --zero 1
refused | replay a.json | --comm nothing
refused | replay a.json | --timeout 30
refused | replay a.json | --torchrun
refused | replay a.json | -o x.txt
changes | replay a.json | --explain
changes | replay a.json | --json
""",
    "profile": MODEL.format("profile -o p.toml --ranks 2 --microbatches 2") + """
refused | profile --ranks 2 --microbatches 2 | -o p.txt
refused | profile -o p.toml --microbatches 2 | --ranks 0
refused | profile -o p.toml --ranks 2 | --microbatches 0
refused | profile -o p.toml --ranks 2 --microbatches 2 | --chunks 0
refused | profile -o p.toml --ranks 2 --microbatches 2 | --placement nothing
changes | profile -o p.toml --ranks 1 --microbatches 1 --repeats 1 --warmup 1 | --whole
refused | profile -o p.toml --ranks 2 --microbatches 2 | --latency -1
refused | profile -o p.toml --ranks 2 --microbatches 2 | --capacity nothing
refused | profile -o p.toml --ranks 2 --microbatches 2 | --device nothing
refused | profile -o p.toml --ranks 2 --microbatches 2 | --warmup -1
refused | profile -o p.toml --ranks 2 --microbatches 2 | --repeats 0
refused | profile -o p.toml --ranks 2 --microbatches 2 | --tick nothing
changes | profile -o p.toml --ranks 1 --microbatches 1 --repeats 1 --warmup 1 | -q
changes | profile -o p.toml --ranks 1 --microbatches 1 --repeats 1 --warmup 1 | -v
changes | profile -o p.toml --ranks 1 --microbatches 1 --repeats 1 --warmup 1 | --json
""",
    "hang": DETAIL.replace("{0}", "hang {examples}/ci/hang") + """
changes | hang {examples}/ci/hang | --schedule a.json
changes | hang {examples}/ci/hang | --json
""",
    "trace": DETAIL.replace("{0}", "trace {examples}/ci/trace") + """
changes | trace {examples}/ci/trace | --schedule a.json
refused | trace {examples}/ci/trace | --names small.toml
changes | trace {examples}/ci/trace | -o there
changes | trace {examples}/ci/trace | --json
""",
    "show": """
changes | show a.json | -o a.perfetto.json
changes | show a.json | --window 0:4
changes | show a.json | -q
changes | show a.json | -v
refused | show a.json -o a.perfetto.json | --window 0:4
refused | show a.json | --width 100
refused | show a.json -o a.html | --width 100
refused | show a.json | --dialect new
""",
    "serve": """
refused | serve a.json | --port 99999999
refused | serve a.json -v | -q
refused | serve a.json -q | -v
refused | serve a.json | --dialect new
""",
    "convert": """
changes | convert a.json b.csv | --communication
refused | convert a.json b.csv -v | -q
refused | convert a.json b.csv -q | -v
refused | convert a.json b.json | --communication
refused | convert a.json b.perfetto.json | --communication
refused | convert a.json b.csv | --torch 2.13
refused | convert a.json b.json --communication | --torch 2.13
changes | convert a.csv b.json | --problem tight.toml
refused | convert a.json b.csv | --dialect new
""",
    "families": DETAIL.format("families") + "changes | families | --json",
    "cards": DETAIL.format("cards") + "changes | cards | --json\nrefused | cards h100 | --all",
    "models": DETAIL.format("models") + "changes | models | --json",
    "frameworks": DETAIL.format("frameworks") + "changes | frameworks | --json",
}  # fmt: skip


class Case(NamedTuple):
    """What is expected of the option (its words) after the words before."""

    outcome: str
    before: str
    option: str


def cases_of(command: str, cases: Mapping[str, str] = CASES) -> list[Case]:
    """The cases of a command."""
    text = cases.get(command, "").replace("{examples}", str(EXAMPLES))
    return [Case(*(part.strip() for part in line.split("|"))) for line in text.splitlines() if line]


def declared(of: Typer = app) -> dict[str, set[str]]:
    """The options of each command by their first name, hidden ones included."""
    commands = get_command(of).commands  # type: ignore[attr-defined]  # it is a group
    return {
        name: {each.opts[0] for each in command.params if each.param_type_name == "option"}
        for name, command in commands.items()
    }


ALL = [case for command in declared() for case in cases_of(command)]


def test_every_option_that_is_declared_has_a_case() -> None:
    assert set(CASES) == set(declared())
    for command, options in declared().items():
        assert {case.option.split()[0] for case in cases_of(command)} == options, command


@pytest.fixture
def folder(tmp_path: Path, command: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small files of every kind, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, "utf-8")
    for words in (
        "convert 1f1b p=2 m=3 a.json",
        "convert 1f1b p=2 m=3 a.csv",
    ):
        assert command(*words.split()).status == 0
    return tmp_path


def _prepare(command: Run, words: str) -> None:
    """The files that take longer, where they are named."""
    if "s.json" in words or "s-bound.json" in words:
        command(*["solve", "small.toml", "-o", "s.json", "--certificate", "s-bound.json"])
    if "planned" in words or "bundle.json" in words:
        command(*["plan", "plan.toml", "-o", "planned", "--certificate", "bundle.json"])


@pytest.mark.parametrize("case", [c for c in ALL if c.outcome == "refused"], ids=" ".join)
def test_it_is_refused_in_one_line_that_names_it(case: Case, folder: Path, command: Run) -> None:
    _prepare(command, case.before)
    refused(case, folder, command)


def refused(case: Case, folder: Path, command: Run) -> None:
    """In one line that names the option, and nothing is written."""
    there = files(folder)
    answer = command(*case.before.split(), *case.option.split())
    assert answer.status == 2, answer
    assert answer.out == ""
    told = [line for line in answer.err.splitlines() if line.startswith("bubbleproof: ")]
    assert len(told) == 1, answer.err
    assert names(told[0], case.option), told[0]
    assert files(folder) == there


def names(line: str, option: str) -> bool:
    """Whether the line names the option, or its value where that is what is wrong."""
    name, *value = option.split()
    words = name.lstrip("-").replace("-", "[-_ ]")
    return bool(re.search(rf"\b{words}\b", line)) or bool(value and value[0] in line)


@pytest.mark.parametrize("case", [c for c in ALL if c.outcome == "changes"], ids=" ".join)
def test_it_changes_the_answer(
    case: Case, folder: Path, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case.before.startswith(("replay", "profile")) or "--check" in case.option:
        pytest.importorskip("torch")
    if "--certified" in case.option:  # nobody proves what the engine claims
        monkeypatch.setattr(BoundSearch, "_certify_claim", lambda _: None)
    _prepare(command, case.before + case.option)
    changed(case, folder, command)


def changed(case: Case, folder: Path, command: Run) -> None:
    """What is answered or written is another thing with the option."""
    without = told(command(*case.before.split())), files(folder)
    given = told(command(*case.before.split(), *case.option.split())), files(folder)
    assert given != without


def told(answer: Answer) -> tuple[int, str]:
    """Status and answer, without seconds, which differ anyway."""
    return answer.status, re.sub(r"\d+\.\d+ ?s\b|\"seconds\": [\d.]+", "T", answer.out)


def files(folder: Path) -> dict[str, bytes]:
    """What is in the folder and below, without what tells a time."""
    return {
        str(path.relative_to(folder)): re.sub(rb"\d+\.\d+", b"T", path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }
