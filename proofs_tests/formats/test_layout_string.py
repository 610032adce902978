"""Megatron's layout strings: what is written is read back, and what is none is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubbleproof.formats import UnusableInput
from bubbleproof.formats.layout_string import layers_of, layout_of, read_layout
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.conftest import command as command


@given(st.lists(st.integers(0, 40), min_size=1, max_size=64))
def test_a_layout_is_read_back_as_the_layers_that_were_cut(layers: list[int]) -> None:
    stages = layers_of(layout_of(layers))
    assert [stage.count("t") for stage in stages] == layers
    assert stages[0][0] == "E"
    assert stages[-1][-1] == "L"


def test_a_published_layout_has_its_stages() -> None:
    """``Et*3|(tt|)*29,m|L``: 61 layers on 32 stages, of which 29 have two, and one prediction."""
    stages = layers_of("Et*3|(tt|)*29,m|L")
    assert len(stages) == 1 + 29 + 2
    assert sum(stage.count("t") for stage in stages) == 3 + 2 * 29
    assert stages[-2:] == (("m",), ("L",))
    assert layers_of("E|t||tt|L") == (("E",), ("t",), (), ("t", "t"), ("L",))
    # 2 + 34*2 + 3 + 3*2 + 1 layers; empty stages would stand between two bars.
    published = layers_of("Et*2|(t*2|)*34,t*3|(t*2|)*3,tL")
    assert [stage.count("t") for stage in published] == [2, *[2] * 34, 3, *[2] * 3, 1]


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("Etx|tL", "got 'x'"),
        ("t|tL", "begins with one E"),
        ("Et|t", "ends with one L"),
        ("EtEL", "begins with one E"),
        ("E(t|tL", "got '('"),
        ("Et*70000|L", "at most 65536 letters"),
        ("E((t|)*300)*300L", "got '('"),  # Megatron reads no repetition within another
        ("E(t|)*70000L", "at most 65536 letters"),
        ("Et*9999999999999999999L", "at most 65536 letters"),
        ("Etm|tL", "behind every layer t"),
        ("Et|m|mL", "all layers m in one stage"),
        ("", "begins with one E"),
    ],
)
def test_what_is_no_layout_is_refused(layout: str, said: str) -> None:
    with pytest.raises(ValueError, match="a layout") as caught:
        layers_of(layout)
    assert said in str(caught.value)


# Megatron-Bridge 1880: 2 stages, the embedding with 13 layers and 14 with the loss.
MOONLIGHT = "E,(t)*13|(t)*14,L\n"
ARGUMENTS = """--pipeline-model-parallel-size 2
--pipeline-model-parallel-layout "Et*3|(tt|)*2,mL"
"""


@pytest.fixture
def moonlight(tmp_path: Path) -> str:
    path = tmp_path / "moonlight.layout"
    path.write_text(MOONLIGHT)
    return str(path)


def test_a_file_is_a_layout_or_the_arguments_of_a_training(moonlight: str, tmp_path: Path) -> None:
    found = read_layout(moonlight)
    assert (found.layers, found.num_ranks) == ((13, 14), None)
    arguments = tmp_path / "megatron.args"
    arguments.write_text(ARGUMENTS.replace("size 2", "size 4"))
    found = read_layout(str(arguments))
    assert (found.layers, found.num_ranks) == ((3, 2, 2, 0), 4)
    for text, said in (
        ("--pipeline-model-parallel-size 4\n", "expected --pipeline-model-parallel-layout among"),
        (ARGUMENTS.replace("size 2", "size 3"), "divides the 4 stages of the layout, found 3"),
        (ARGUMENTS.replace("Et", "Ex"), "got 'x'"),
    ):
        arguments.write_text(text)
        with pytest.raises(UnusableInput) as caught:
            read_layout(str(arguments))
        assert said in str(caught.value)


def test_measure_says_what_lies_where(moonlight: str, tmp_path: Path, command: Run) -> None:
    answer = command("measure", moonlight)
    assert answer.status == 0
    assert answer.out.startswith("27 layers in 2 stages: 13 | 14\n")
    assert "embedding, 13 layers" in answer.out
    assert "14 layers, loss" in answer.out
    (tmp_path / "x.args").write_text(ARGUMENTS)
    found = json.loads(command("measure", tmp_path / "x.args", "--json").out)
    assert (found["layers"], found["ranks"], found["chunks"]) == (7, 2, 2)
    # Megatron: stage i is on rank i mod p, as chunk i div p.
    places = [(each["rank"], each["chunk"], each["layers"]) for each in found["stages"]]
    assert places == [(0, 0, 3), (1, 0, 2), (0, 1, 2), (1, 1, 0)]
    assert command("measure", moonlight, "--why").status == 2


@pytest.mark.parametrize(
    "words",
    ["verify", "solve", "plan", "show", "run", "costs", "pareto", "hand-over --to torch -o out"],
)
def test_other_commands_say_what_a_layout_lacks(words: str, moonlight: str, command: Run) -> None:
    name, *more = words.split()
    answer = command(name, moonlight, *more)
    assert (answer.status, answer.out) == (2, "")
    assert "a Megatron layout: it says where layers lie, not how long they take" in answer.err
    assert f"bubbleproof measure {moonlight} reads it" in answer.err


def test_replay_takes_the_layers_of_a_layout(tmp_path: Path, command: Run) -> None:
    pytest.importorskip("torch")
    (tmp_path / "small.layout").write_text("Et|t*2L")
    words = ["replay", "1f1b", "p=2", "m=2", "--json", "--layers"]
    found = json.loads(command(*words, tmp_path / "small.layout").out)
    assert found["ok"]
    assert (
        found["measured_peak_bytes"]
        == json.loads(command(*words, "1,2").out)["measured_peak_bytes"]
    )
