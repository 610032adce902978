"""Malformed files and words: whatever stands in a key or a cell, one line and nothing written.

Each key of a file with ``[model] [cluster] [batch]``, of a hardware file, each column of rows and
each word of ``costs`` is given values of other kinds, of other ranges and of other scripts. A
command takes them (0), finds that nothing fits (1), or refuses them in one line of plain words (2).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import rmtree

import pytest

from bubbleproof.commands.costs import NAMES
from bubbleproof.costs.times.job_rows import COUNTS, MEASURED
from bubbleproof.formats.clusters.model_toml import ModelLayout
from bubbleproof.formats.layouts.cluster_layout import BatchLayout, ClusterLayout, ClusterPlanLayout
from bubbleproof.formats.layouts.plan_layout import JitterLayout
from bubbleproof.formats.layouts.problem_file_layout import SolveLayout
from bubbleproof.formats.validation import Layout
from proofs_tests.commands.conftest import Answer, Run
from proofs_tests.commands.test_plan_cluster import TEXT
from proofs_tests.costs.measured_cases import A100, B200
from proofs_tests.sized import sized

VALUES = (
    "true",
    "-1",
    "0",
    "1.5",
    "1e-9",
    "nan",
    "inf",
    "-inf",
    "9007199254740993",
    "9" * 300,
    '""',
    '"x"',
    '"-1 GiB"',
    '"0 GB/s"',
    "[]",
    "[0]",
    "[-1]",
    "[1, 1]",
    '["x"]',
    "[[0]]",
    "[3]",
    "{}",
    "{x = 1}",
    "1979-05-27",
    "07:32:00",
    '"\\u0000"',
    '"\u0663"',
    "[0, 0, 10]",
    "4097",
)
CELLS = ("-1", "0", "1.5", "nan", "1e400", "\u0663", "x", "", "9" * 20, "1_0", "0x8", '"8', "7")
TABLES: dict[str, type[Layout]] = {
    "model": ModelLayout,
    "cluster": ClusterLayout,
    "batch": BatchLayout,
    "plan": ClusterPlanLayout,
    "plan.jitter": JitterLayout,
    "solve": SolveLayout,
}
# The words of libraries, which are for those who wrote the layouts.
FOREIGN = re.compile(r"Input should|[Vv]alue error|pydantic|constrained|_type|Traceback|NoneType")
STRIDE = sized(36, full=1)
TURN = sized(6, full=1)
LONGEST = 600  # characters of a line


def require_plain(answer: Answer, folder: Path, given: set[str]) -> None:
    assert answer.status in (0, 1, 2, 3), answer.err  # 3: a plan had a second, and a large file
    if answer.status:
        assert {path.name for path in folder.iterdir()} == given
    if answer.status == 2:
        assert answer.out == ""
        assert answer.err.count("\n") == 1
        assert len(answer.err) < LONGEST + len(str(folder))
        assert not FOREIGN.search(answer.err), answer.err


def written(content: Mapping[str, object], name: str = "") -> Iterator[str]:
    """The lines of a TOML file whose texts stand as they are."""
    if name:
        yield f"[{name}]"
    yield from (f"{key} = {value}" for key, value in content.items() if isinstance(value, str))
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from written(value, f"{name}.{key}" if name else key)


def small(table: str, key: str, value: str) -> str:
    """A file of few deployments with another value at a key."""
    content = {
        name: {each: json.dumps(told) for each, told in keys.items()}
        for name, keys in tomllib.loads(TEXT).items()
    }
    content["plan"] |= {"pipeline": "[2]", "micro_batch": "[1]", "zero": "[0]", "chunks": "[1]"}
    content["solve"] = {"time_limit": "1"}
    content.setdefault(table, {})[key] = value
    return "\n".join(written(content))


@pytest.mark.parametrize("table", TABLES)
def test_any_value_of_any_key_of_a_cluster_file(command: Run, tmp_path: Path, table: str) -> None:
    path, out = tmp_path / "small.toml", tmp_path / "out"
    for place, key in enumerate([*TABLES[table].model_fields, "colour"]):
        for value in VALUES[place % STRIDE :: STRIDE]:
            path.write_text(small(table, key, value), encoding="utf-8")
            answer = command("plan", path, "-o", out, "--certificate", out / "c.json", "--json")
            require_plain(answer, tmp_path, {path.name})
            if answer.status == 0:
                json.loads(answer.out)
                rmtree(out)
            if key == "colour":
                assert "no key 'colour'" in answer.err


def test_any_cell_of_any_column_of_rows(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    head, first, *others = A100.splitlines()
    for place, name in enumerate(head.split(",")):
        assert name in {*COUNTS, MEASURED, "hidden", "heads"}
        for value in CELLS[place % (2 * TURN) :: 2 * TURN]:
            cells = first.split(",")
            cells[place] = value
            text = "\n".join([head, ",".join(cells), *others])
            Path("rows.csv").write_text(text, encoding="utf-8")
            require_plain(
                command("estimate", "rows.csv", "--hardware", "a100-80gb"), tmp_path, {"rows.csv"}
            )
            told = command("calibrate", "rows.csv", "-o", "new.toml", "--card", "a100-80gb")
            require_plain(told, tmp_path, {"rows.csv"})
            Path("new.toml").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "columns gpus"),
        (A100.splitlines()[0].encode(), "no rows below the names"),
        (A100.encode("utf-16"), "UTF-8 text"),
        (A100.encode() + b"\xe9", "UTF-8 text"),
        (b"\0" * 100, "a zero byte"),
        (A100.replace(",", ";").encode(), "columns gpus"),
        (A100.replace(",", "\t").encode(), "columns gpus"),
        (A100.upper().encode(), "columns gpus"),
        (A100.replace("\n", ",9\n").replace("ms,9", "ms").encode(), "a cell for each"),
    ],
)
def test_a_file_that_is_no_rows(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_bytes(content)
    for words in (
        ("calibrate", "rows.csv", "-o", "x.toml"),
        ("estimate", "rows.csv", "--hardware", "b200"),
    ):
        answer = command(*words)
        assert answer.status == 2
        assert told in answer.err
        require_plain(answer, tmp_path, {"rows.csv"})
        assert command(words[0], tmp_path, *words[2:]).status == 2  # a folder


def test_rows_as_other_programs_write_them(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quoted = "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in B200.split())
    forms = (B200, "\ufeff" + B200, B200.replace("\n", "\r\n"), quoted, B200.replace(",", ", "))
    answers = set()
    for text in forms:
        Path("rows.csv").write_bytes(text.encode())
        answer = command("estimate", "rows.csv", "--hardware", "b200", "--json")
        assert answer.status == 0, answer.err
        answers.add(answer.out)
    assert len(answers) == 1


@pytest.mark.parametrize("output", ["rows.csv/x.toml", "folder.toml", "x.csv", ""])
def test_an_output_that_cannot_be_is_refused_before_a_fit(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.toml").mkdir()
    Path("rows.csv").write_text("no rows")
    answer = command("calibrate", "rows.csv", "-o", output)
    require_plain(answer, tmp_path, {"folder.toml", "rows.csv"})
    assert answer.status == 2
    assert "columns" not in answer.err


def test_any_value_of_any_constant_of_hardware(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(B200)
    assert command("calibrate", "rows.csv", "-o", "good.toml", "--card", "b200").status == 0
    good = Path("good.toml").read_text()
    given = {"rows.csv", "good.toml", "x.toml"}
    for line in (
        "card = .*",
        "rows = .*",
        "scope_one_node = .*",
        "odd = .*",
        "odd = { value = [^,]*",
    ):
        key = line.partition(" = {")[0] if "[^,]" not in line else "odd = { value"
        for value in VALUES[len(line) % TURN :: TURN]:
            told = f"{key.partition(' = .')[0]} = {value}"
            Path("x.toml").write_text(re.sub(line, lambda _, told=told: told, good, count=1))
            require_plain(command("estimate", "rows.csv", "--hardware", "x.toml"), tmp_path, given)


@pytest.mark.parametrize("key", [*NAMES, "tensr", ""])
def test_any_word_of_costs(command: Run, tmp_path: Path, key: str) -> None:
    for value in (*CELLS, "none", " full", "64", "99999999999")[len(key) % TURN :: TURN]:
        answer = command("costs", "llama-2-7b", f"{key}={value}")
        require_plain(answer, tmp_path, set())
        assert answer.status != 1
