"""``bubbleproof costs``: what it answers, writes and refuses."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run
from proofs_tests.commands.test_plan_cluster import TEXT

KEYS = {"parameters", "flops", "saved_bytes", "state_bytes"}


def told(command: Run, *words: object) -> dict[str, object]:
    answer = command("costs", *words, "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert isinstance(found, dict)
    return found


def test_the_keys_of_the_contract(command: Run) -> None:
    found = told(command, "llama-2-7b")
    assert found.keys() >= KEYS
    # 32000 x 4096 words on either end, and the last norm's 4096; published: 6,738,415,616.
    assert found["parameters"] == {
        "layer": (6_738_415_616 - 2 * 32000 * 4096 - 4096) // 32,
        "embedding": 32000 * 4096,
        "head": 32000 * 4096 + 4096,
        "total": 6_738_415_616,
        "active": 6_738_415_616,
    }
    assert found["flops"].keys() >= {"F", "I", "W"}  # type: ignore[attr-defined]  # a table
    assert found["saved_bytes"].keys() == {"none", "attention", "full"}  # type: ignore[attr-defined]  # a table
    assert found["state_bytes"] == 18 * 6_738_415_616


def test_parameters_are_those_of_bpipe(command: Run) -> None:
    """Table 4's configuration and Eq. 4 to 6, with L l b h / p = 52428800 (examples/)."""
    found = told(
        command, "gpt3-13b", "pipeline=8", "micro_batch=1", "sequence=2048", "accounting=bpipe"
    )
    unit = 40 * 2048 * 5120 // 8
    assert found["saved_bytes"] == {
        "none": unit * (34 + 80),
        "attention": unit * 34,
        "full": unit * 2,
    }


def test_the_table_for_people(command: Run) -> None:
    answer = command("costs", "Mixtral-8x7B", "tensor=8", "data=8", "expert=8", "zero=1")
    assert answer.status == 0
    assert answer.out.startswith("mixtral-8x7b has 46.7 B parameters (12.9 B active) and keeps ")
    assert "TP8 PP1 DP8 EP8 · micro-batch 1 · ZeRO-1" in answer.out
    assert len(answer.out.splitlines()) <= 10
    table = command("costs", "mixtral-8x7b", "tensor=8", "data=8", "expert=8", "zero=1", "-v")
    assert "46,702,792,704" in table.out
    assert "state bytes" in table.out


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


def test_a_file_names_a_model_too(command: Run, cluster: Path) -> None:
    found = told(command, cluster)
    # Four layers of 4 h h + 3 h f + 2 h, words on both ends, the last norm.
    layer = 4 * 256**2 + 3 * 256 * 512 + 2 * 256
    assert found["parameters"]["total"] == 4 * layer + 2 * 1000 * 256 + 256  # type: ignore[index]  # a table


def test_a_deployment_is_written_as_a_problem(command: Run, cluster: Path, tmp_path: Path) -> None:
    target = tmp_path / "problem.toml"
    sizes = ("tensor=2", "pipeline=2", "micro_batch=2", "zero=1", "scope=full")
    assert command("costs", cluster, *sizes, "-o", target).status == 0
    content = tomllib.loads(target.read_text(encoding="utf-8"))
    assert (content["ranks"], content["microbatches"]) == (2, 4)
    planned = json.loads(command("plan", target, "--json").out)
    assert planned["verified"] is True
    # The joint planner of all deployments has the same of this one.
    cluster.write_text(
        TEXT.replace("[plan]\npipeline = [2, 4]", "[plan]\ntensor = [2]\npipeline = [2]")
        .replace("micro_batch = [1, 2]", "micro_batch = [2]")
        .replace("zero = [0, 1]", "zero = [1]")
        .replace('scope = ["none", "full"]', 'scope = ["full"]')
    )
    assert json.loads(command("plan", cluster, "--json").out)["makespan"] <= planned["value"]
    assert told(command, cluster)["deployment"]["accounting"] == "engine"  # type: ignore[index]  # a table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lama-2-7b",), "no model 'lama-2-7b'; the nearest are llama-2-7b"),
        (("llama-2-7b", "tensor=5"), "tensor must divide heads 32, got 5; use tensor = 4"),
        (("llama-2-7b", "pipeline=3"), "pipeline must divide layers 32, got 3; use pipeline = 2"),
        (
            ("llama-2-7b", "size=3"),
            "no parameter 'size=3'; write zero=3; the parameters are tensor ",
        ),
        (("llama-2-7b", "zero=1", "zero=2"), "parameter zero is given twice"),
        (("llama-2-7b", "expert=700000000000", "data=999999999999"), "must be at most 16777216"),
        (("llama-2-7b", "zero=x"), "zero must be a whole number, got 'x'"),
        (("llama-2-7b", "data=0"), "data must be 1 or more, got 0"),
        (("llama-2-7b", "sequence_parallel=1"), "must be true or false"),
        (("llama-2-7b", "-o", "x.toml"), "costs -o takes a model's file"),
        (("absent.toml",), "expected a file, found no such file"),
        (("mixtral-8x7b", "expert=3", "data=3"), "expert must divide experts 8, got 3"),
        (("llama-2-7b", "tensr=2"), "no parameter 'tensr=2'; write tensor=2"),
        (
            ("llama-2-7b", "pipeline=64"),
            "pipeline must divide layers 32, got 64; use pipeline = 32",
        ),
        (("llama-2-7b", "zero=4"), "zero must be 0 to 3, got 4"),
        (
            ("llama-2-7b", "scope=some"),
            "scope must be one of none, attention, full, norm+act, op, or",
        ),
        (("llama-2-7b", "precision="), "precision must be a name, got nothing"),
        (("llama-2-7b", "tensor=\u0664"), "tensor must be a whole number"),
        # GPT-3 has 2048 learned positions; rotary ones end nowhere.
        (("gpt3-13b", "sequence=4096"), "got 4096; use sequence = 2048"),
    ],
)
def test_what_is_refused(
    command: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = command("costs", *words)
    assert answer.status == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert message in answer.err
    assert not list(tmp_path.iterdir())


def test_a_deployment_that_does_not_fit_is_not_written(
    command: Run, cluster: Path, tmp_path: Path
) -> None:
    cluster.write_text(TEXT.replace("128 MiB", "72 MiB"))
    answer = command("costs", cluster, "tensor=2", "pipeline=2", "-o", tmp_path / "x.toml")
    assert answer.status == 1
    assert "does not fit: one microbatch needs" in answer.err
    assert not (tmp_path / "x.toml").exists()
    told = command("costs", cluster, "tensor=2", "pipeline=2", "-o", tmp_path / "x.toml", "--json")
    assert told.status == 1
    assert json.loads(told.out)["reason"] in answer.err
    assert json.loads(command("costs", "llama-2-7b", "--json").out)["reason"] == ""
    wrong = command("costs", cluster, "tensor=2", "-o", tmp_path / "x.toml")
    assert wrong.status == 2
    assert "must be the 4 cards" in wrong.err


def test_numbers_that_no_problem_tells_are_not_written(
    command: Run, cluster: Path, tmp_path: Path
) -> None:
    cluster.write_text(TEXT.replace("flops = 1e12", "flops = 1"))
    answer = command("costs", cluster, "tensor=2", "pipeline=2", "-o", tmp_path / "x.toml")
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert "ticks in total" in answer.err
    assert not (tmp_path / "x.toml").exists()
