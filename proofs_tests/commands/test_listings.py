"""``families``, ``cards``, ``models``, ``frameworks``: what there is, in a table and as JSON."""

from __future__ import annotations

import json
import shlex

import pytest

from bubbleproof.costs import known_models
from bubbleproof.costs.times.card_files import cards
from bubbleproof.frameworks import FRAMEWORKS
from bubbleproof.theory.families import families
from proofs_tests.commands.conftest import Run

NAMES = {
    "families": [*families()],
    "cards": [*cards()],
    "models": [*known_models()],
    "frameworks": [each.name for each in FRAMEWORKS],
}


@pytest.mark.parametrize("kind", NAMES)
def test_all_of_them_are_listed(kind: str, command: Run) -> None:
    told = json.loads(command(kind, "--json").out)[kind]
    assert [each["name"] for each in told] == NAMES[kind]
    answer = command(kind)
    assert answer.out.startswith(f"{len(NAMES[kind])} {kind}; ")
    assert all(f" {name} " in answer.out for name in NAMES[kind])
    assert len(command(kind, "-q").out.splitlines()) == 1


@pytest.mark.parametrize("kind", NAMES)
def test_one_of_them_is_told_whole(kind: str, command: Run) -> None:
    for name in NAMES[kind][:3]:
        (told,) = json.loads(command(kind, name, "--json").out)[kind]
        answer = command(kind, name)
        assert answer.status == 0
        assert answer.out.startswith(f"{name}: ")
        rows = [line.split(maxsplit=1)[0] for line in answer.out.splitlines()[1:]]
        assert rows == [key.split("_")[0] for key in list(told)[1:]]
        assert command(kind, name, "-v").status == 2


def test_what_is_published_of_a_family(command: Run) -> None:
    """1F1B at p=4 m=8 idles 3 of 11 and keeps 4 activations; DualPipe needs m even and 2 p."""
    (told,) = json.loads(command("families", "1f1b", "--json").out)["families"]
    assert (told["idle_ratio"], told["peak_activations"]) == ("3/11", 4)
    (told,) = json.loads(command("families", "dualpipe", "--json").out)["families"]
    for row in told["legal"]:
        assert all(m % 2 == 0 and m >= row["ranks"] for m in row["microbatches"])


@pytest.mark.parametrize("name", NAMES["families"])
def test_the_example_of_a_family_runs_and_so_does_no_other_shape(name: str, command: Run) -> None:
    (told,) = json.loads(command("families", name, "--json").out)["families"]
    program, *words = shlex.split(told["example"])
    assert program == "bubbleproof"
    assert command(*words).status == 0
    for row in told["legal"]:
        for m in (1, 3, 4):
            status = command("measure", name, f"p={row['ranks']}", f"m={m}", "--json").status
            assert (status == 0) == (m in row["microbatches"]), (row, m)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cards", "h10"), "no card 'h10'; the nearest are h100"),
        (("models", "lama-3-70b"), "no model 'lama-3-70b'; the nearest are llama-3-70b"),
        (("families", "1f2b"), "no family '1f2b' (did you mean '1f1b'?)"),
        (("frameworks", "megatro"), "(did you mean 'megatron'?)"),
    ],
)
def test_another_name_is_refused_with_the_nearest(
    words: tuple[str, ...], says: str, command: Run
) -> None:
    answer = command(*words)
    assert (answer.status, answer.out) == (2, "")
    assert says in answer.err
