"""``plan MODEL``: a model by its name or configuration, with its cards and its batch as options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run

FILE = """
name = "{name}"
[model]
{model}
[cluster]
card = "h100"
cards = 4
[batch]
samples = 8
sequence = 2048
"""
JOB = ("--card", "h100", "--cards", 4, "--batch", 8, "--sequence", 2048, "--work", 0.2, "--json")
LLAMA = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "vocab_size": 1000,
    "num_hidden_layers": 4, "num_attention_heads": 8, "max_position_embeddings": 2048,
}  # fmt: skip


def planned(command: Run, *words: object) -> dict[str, object]:
    found = command("plan", *words)
    assert (found.status, found.err) in ((0, ""), (3, ""))
    answer = json.loads(found.out)
    return {key: answer[key] for key in ("name", "value", "lower_bound", "lower_bound_of")}


@pytest.mark.parametrize("framework", ["", "any"])
def test_it_is_the_plan_of_the_file_that_says_the_same(
    command: Run, tmp_path: Path, framework: str
) -> None:
    config, file = tmp_path / "config.json", tmp_path / "job.toml"
    config.write_text(json.dumps(LLAMA))
    more = ("--framework", framework) if framework else ()
    for word, key, name in (
        ("llama-3.2-1b", 'name = "llama-3.2-1b"', "llama-3.2-1b-4xh100"),
        (f"hf:{config}", f'config = "hf:{config}"', "config-4xh100"),
    ):
        asked = FILE.format(name=name, model=key)
        file.write_text(asked + (f'[plan]\nframework = "{framework}"\n' if framework else ""))
        assert planned(command, word, *JOB, *more) == planned(
            command, file, "--work", 0.2, "--json"
        )


def test_its_folder_is_verified_and_handed_over(command: Run, tmp_path: Path) -> None:
    folder, words = tmp_path / "out", [word for word in JOB if word != "--json"]
    assert command("plan", "llama-3.2-1b", *words, "-o", folder).status in (0, 3)
    assert command("verify", folder).status == 0
    written = command("hand-over", folder, "--to", "megatron-core", "-o", tmp_path / "launch")
    assert written.status == 0


def test_several_numbers_are_several_jobs(command: Run) -> None:
    words = ("--card", "h100", "--cards", "2,4", "--batch", 8, "--sequence", 2048, "--work", 0.4)
    found = command("plan", "llama-3.2-1b", *words)
    assert found.status in (0, 3)
    assert "2 jobs" in found.out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("llama-3.2-1b",), "llama-3.2-1b is a model: tell its cards and the batch too"),
        (("llama-3.2-1b", "--card", "h100", "--cards", 8), "--batch 512"),
        (("hf:config.json", "--cards", 8, "--batch", 8), "--card h100"),
        (("llama-3.2-1b", "--card", "h10", "--cards", 8, "--batch", 8), "found 'h10'"),
        (("FILE", "--card", "h100"), "--card goes with a model in place of a file"),
        (("FILE", "--framework", "torch"), "--framework goes with a model in place of a file"),
        (("llama-3.2-1b", *JOB, "--framework", "torh"), "torh"),
        (("hf:none.json", *JOB), "none.json"),
    ],
)
def test_half_a_job_is_a_line(
    command: Run, tmp_path: Path, words: tuple[object, ...], what: str
) -> None:
    file = tmp_path / "job.toml"
    file.write_text(FILE.format(name="job", model='name = "llama-3.2-1b"'))
    answer = command("plan", *[file if word == "FILE" else word for word in words])
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert what in answer.err
    assert "bubbleproof-" not in answer.err  # a file that nobody wrote
