"""About two hundred answers of the command, to be the same before and after a change of the house.

``python -m proofs_tests.recorded --write`` records in ``recorded_answers.json`` what each command
answers (a digest of its status, of what it prints and of the files that it writes, without seconds,
versions and paths); ``--texts FOLDER`` writes the texts, so that two commits can be compared by
``diff -r``; a test holds the recorded digests against the answers (some by default, with the
environment variable ``EVERY_ANSWER`` all). What is meant to change stands in ``MEANT``.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from bubbleproof.cli import main
from bubbleproof.theory.families import families
from proofs_tests.commands.output_schemas import seen

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
RECORDED = HERE / "recorded_answers.json"
# Changes that were meant, one line each.
MEANT: tuple[str, ...] = (
    "plan of a model on a cluster --json: times, where the microseconds go",
    "plan --work that leaves candidates open: the reason says that the limit of work ended it",
    "plan, solve --json: lower_bound_of and choices, what a bound is of; plan: the cut of layers",
    "convert --communication of bpipe and toffload: refused, where their moves were left out",
    "hanayo, v-half, v-min: the published order, where an order of ours ran under their name",
    "measure of adapipe, hanayo, svpp, svpp-w --json: a note says what is not their source's",
    "claims --paper field --json: readings of V-Half, V-Min and ZB-V are of the published orders",
    "claims of MEPipe 7.5, PipeMesh IV-B and Algorithm 1, T-Pipe Appendix C, Figure 11: readings",
    "claims of BPipe and MEPipe: those alone that our code computes; of the field: their cases",
    "plan --paper tpipe --json: the note has the two sides of Equation 6",
    "solve of a table that is not there: that there is no such file",
    "solve with choices: a bound by cases no longer says 'whatever is chosen', its scope does",
    "claims --paper pipemesh, tpipe --json: those that are arithmetic on printed numbers went",
    "solve, plan without --json: the answer first, in lines",
    "show of what a line has no room for: drawn to scale",
    "verify --json: rule 6 says that sends and receives match, and that there is no deadlock",
    "convert: what is not written, in those words",
    "costs --json: active parameters; plan, estimate --json: times of named terms, memory by kind",
    "solve of a capped pipeline: a line says what the limit costs",
    "plan, estimate --json: an estimate's band is of the nearest sources; notes, yours, what_if",
    "plan of slices: Seq1F1B, SlimPipe are among the orders; claims --paper field --json: theirs",
    "claims --json: what a schedule computes, each formula once, without contrasts",
    "plan --paper tpipe --json: a candidate that no published order fits has a listed one",
    "plan --paper of nobody: vocabulary is among the papers' planners",
)
_VOLATILE = {"seconds", "versions", "machine", "elapsed", "cores"}
# with the spaces around: a column is as wide as the seconds in it
_SECONDS = re.compile(r" *\b\d+(\.\d+)? ?s\b *")


def commands() -> list[str]:
    """The command lines; ``EXAMPLES`` is the examples' folder, files go where they run."""
    return [*_of_families(), *_of_files(), *_of_claims(), *_refusals()]


def _of_families() -> Iterator[str]:
    for name in families():
        yield f"measure {name} p=2 m=4 --json"
        yield f"measure {name} p=4 m=8 --json"
        yield f"measure {name} p=4 m=8 v=2 --json"
        yield f"measure {name} p=4 m=12 tF=2 tB=5 tI=3 tW=2 --json"
        yield f"verify {name} p=4 m=8 --json"
        yield f"convert {name} p=4 m=8 {name}.json"
    for name in ("svpp", "svpp-w", "terapipe"):
        yield f"measure {name} p=4 m=4 s=2 --json"
        yield f"convert {name} p=4 m=4 s=2 {name}.json"
    for name in ("1f1b", "zb-v", "bpipe", "toffload"):
        yield f"show {name} p=4 m=6"
        yield f"show {name} p=4 m=6 -o x.perfetto.json"
        yield f"convert {name} p=4 m=6 --communication x.csv"
    yield "measure pipemesh p=4 m=8 v=2 e=8 d=8 --json"
    yield "measure adapipe p=4 m=8 f=8 --json"


def _of_files() -> Iterator[str]:
    for name in sorted(path.name for path in EXAMPLES.glob("cluster/gpt3-*.toml")):
        yield f"solve EXAMPLES/cluster/{name} --work 2 --json"
        yield f"solve EXAMPLES/cluster/{name} --work 2 -o x.json --certificate c.json"
    yield "solve EXAMPLES/researcher/split-backward.toml --work 2 --json"
    yield "plan EXAMPLES/researcher/plan.toml --work 2 --json"
    yield "plan EXAMPLES/researcher/plan.toml --work 2 --certificate c.json"
    yield "plan EXAMPLES/cluster/llama-13b-64xA100.toml --work 1 --json"
    yield "plan EXAMPLES/researcher/plans/mepipe-llama-7b.toml --paper mepipe --work 1 --json"
    mesh = "EXAMPLES/researcher/plans/pipemesh-gpt3-58b-v100.toml"
    yield f"plan {mesh} --paper pipemesh --work 1 --json"
    yield "plan EXAMPLES/researcher/plans/tpipe-llama-42b.toml --paper tpipe --work 1 --json"
    yield "plan EXAMPLES/researcher/plans/bpipe-gpt3-13b.toml --paper bpipe --work 1 --json"
    for model in ("llama-2-13b", "llama-2-7b"):
        yield f"costs {model} --json"
        yield f"costs {model} tensor=2 pipeline=4 data=2 zero=1 sequence=4096 --json"
    yield "estimate EXAMPLES/cluster/iterations.csv --hardware a100-80gb --json"


def _of_claims() -> Iterator[str]:
    for paper in ("bpipe", "mepipe", "pipemesh", "tpipe", "field"):
        yield f"claims --paper {paper} --json"
    yield "prove gpipe --json"


def _refusals() -> Iterator[str]:
    yield "measure 1f1b p=0 m=4"
    yield "measure interleaved p=4 m=6 v=0"
    yield "verify nothing.json"
    yield "solve EXAMPLES/plan.csv"
    yield "plan EXAMPLES/cluster/gpt3-13b-8xA100.toml --paper nobody"
    yield "costs nobody"
    yield "show 1f1b p=4"
    yield "convert 1f1b p=4 m=4 x.odd"


def is_of_papers(line: str) -> bool:
    """Whether the answer needs the wing of the papers."""
    return "--paper" in line or line.startswith(("claims", "prove"))


def answered(line: str) -> str:
    """What the command answers: its status, what it prints, and each file that it writes."""
    words = line.replace("EXAMPLES", str(EXAMPLES)).split()
    out, err = io.StringIO(), io.StringIO()
    with TemporaryDirectory() as folder, chdir(folder):
        with (
            patch.object(sys, "argv", ["bubbleproof", *words]),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            status: object = 0
            try:
                main()
            except SystemExit as stopped:
                status = stopped.code or 0
        if "--json" in words and out.getvalue().startswith("{"):
            seen(words, out.getvalue())  # as its schema says
        texts = [f"status {status}", _scrubbed(out.getvalue()), _scrubbed(err.getvalue())]
        for path in sorted(path for path in Path().rglob("*") if path.is_file()):
            texts += [f"== {path}", _scrubbed(path.read_text(encoding="utf-8"))]
    return "\n".join(texts).replace(str(EXAMPLES), "EXAMPLES").replace(folder, "FOLDER")


def _scrubbed(text: str) -> str:
    """Without what the clock and the machine decide; JSON in a form of its own."""
    try:
        found = json.loads(text)
    except ValueError:
        return _SECONDS.sub(" S s ", text)
    return json.dumps(_without(found), indent=1, sort_keys=True)


def _without(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without(part) for key, part in value.items() if key not in _VOLATILE}
    if isinstance(value, list):
        return [_without(part) for part in value]
    return _SECONDS.sub(" S s ", value) if isinstance(value, str) else value


def digest(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a text."""
    return sha256(text.encode()).hexdigest()[:16]


def _write(folder: Path | None) -> None:
    found = {}
    for number, line in enumerate(commands()):
        text = answered(line)
        found[line] = digest(text)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "-", line)[:80]
            (folder / f"{number:03}-{name}.txt").write_text(text, encoding="utf-8")
    if folder is None:
        RECORDED.write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "200")
    _write(Path(sys.argv[2]).absolute() if sys.argv[1:2] == ["--texts"] else None)
