"""Where an iteration's time goes, and one's own configuration beside the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bubbleproof.costs.time_parts import TimeParts
from bubbleproof.formats.clusters.cluster_toml import ClusterFile, cluster_file_of_text
from bubbleproof.formats.clusters.own_configuration import own_configuration
from bubbleproof.planners.own_run import OwnRun, own_run
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.small_cluster import SMALL


def file_of(more: str = "", text: str = SMALL) -> ClusterFile:
    return cluster_file_of_text(text + more, name="small")


def parts(**changed: int) -> TimeParts:
    zero = dict.fromkeys(("compute", "tensor", "exchange", "bubble", "gradients", "optimizer"), 0)
    return TimeParts(**{**zero, **changed})


def run_of(file: ClusterFile, words: str) -> OwnRun:
    return own_run(file, own_configuration(words, file.training.cluster.cards))


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(f"{SMALL}[plan]\nzero = [0, 1]\nchunks = [1]\n")
    return path


def test_parts_are_the_iteration_and_those_of_absent_groups_are_nothing() -> None:
    for words in ("pipeline=4", "tensor=2 pipeline=2", "pipeline=2", "tensor=2", "zero=3"):
        own = run_of(file_of(), words)
        at = own.combination
        assert own.parts.iteration == own.iteration, words
        assert all(took >= 0 for took in own.parts.named.values()), words
        assert own.parts.compute > 0
        assert (own.parts.tensor > 0) == (at.tensor > 1), words
        assert (own.parts.exchange > 0) == (at.zero > 1), words
        assert (own.parts.gradients > 0) == (at.data > 1 and at.zero < 3), words
        # 1F1B of even stages: (p - 1) of (m + p - 1) passes are bubble, and a pipeline has some
        assert (own.parts.bubble > 0) == (at.pipeline > 1), words


def test_the_plans_own_deployment_takes_what_the_plan_takes(command: Run, problem: Path) -> None:
    """The plan comes by its search, ``--yours`` by one look at the words."""
    found = json.loads(command("plan", problem, "--work", 1, "--json").out)
    won = found["winner"]
    words = " ".join(f"{k}={won[k]}" for k in ("tensor", "pipeline", "micro_batch", "zero"))
    yours = f"{words} scope={won['scope']}"
    told = json.loads(command("plan", problem, "--work", 1, "--json", "--yours", yours).out)
    # the plan may have a better order than 1F1B, and never has a worse one
    assert told["yours"]["value"] >= told["value"] == found["value"]
    assert found["times"][0]["iteration"] == found["value"]
    for each in found["times"]:
        shares = sum(v for k, v in each.items() if k not in ("deployment", "iteration"))
        assert shares == each["iteration"]
    values = [each["iteration"] for each in found["times"]]
    assert values == sorted(values)
    assert "yours" not in found


def test_it_is_told_what_to_change(command: Run, problem: Path) -> None:
    told = command("plan", problem, "--work", 1, "--yours", "pipeline=2 zero=0", "-v").out
    for line in ("where the time goes", "would win if", "it is", "yours", "beside the plan"):
        assert line in told


def test_what_has_no_room_is_timed_on_a_larger_card() -> None:
    roomy = run_of(file_of(), "pipeline=2")
    tight = run_of(file_of(text=SMALL.replace("128 MiB", "16 MiB")), "pipeline=2")
    assert (roomy.fits, tight.fits) == (True, False)
    assert (tight.iteration, tight.on_card) == (roomy.iteration, roomy.on_card)


def test_what_would_have_to_change_is_the_part_that_would_do() -> None:
    best = parts(compute=1000, bubble=500)
    assert best.to_beat(best) == "nothing: it is as short"
    longer = parts(compute=1000, bubble=900, optimizer=100)  # 500 more, 400 of them bubble
    assert longer.to_beat(best) == "bubble 0.4 ms or less, not 0.9"
    # 1,600 more, the longest excess 1,000: no part alone would do
    far = parts(compute=1000, bubble=1500, gradients=600)
    assert far.to_beat(best) == "more than bubble: 1.6 ms less in all"


def test_products_of_eight_bits_are_faster_where_the_card_has_them() -> None:
    text = (
        '[model]\nname = "llama-3-8b"\n[cluster]\ncard = "CARD"\ncards = 8\nKEYS\n[batch]\n'
        "samples = 16\nsequence = 8192\n"
    )

    def run(card: str, keys: str = "") -> OwnRun:
        made = file_of(text=text.replace("CARD", card).replace("KEYS", keys))
        return run_of(made, "tensor=2")

    assert run("h100", 'products = "fp8"').parts.compute < run("h100").parts.compute
    assert run("h100", 'products = "bf16"') == run("h100")
    with pytest.raises(ValueError, match=r"cluster.products: expected bf16 .*, found 'fp8'"):
        run("a100-80gb", 'products = "fp8"')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tensor=4", r"must use the 4 cards, got tensor x context x pipeline x data = 4 x 1"),
        ("tensor=3", r"must use the 4 cards, got .* = 3 x 1; use sizes that divide them"),
        ("tensors=2", r"takes key=value with tensor, .* got 'tensors=2'; use such as tensor=4"),
        ("tensor", r"takes key=value with .* got 'tensor'"),
        ("scope=some", r"got 'scope=some'"),
        ("pipeline=2 chunks=9", r"4 layers are no 18 stages; use chunks = 2 at most"),
        ("pipeline=2 chunks=0", r"takes chunks of 1 or more, got 0"),
        ("pipeline=2 chunks=" + "9" * 5000, r"takes key=value with .* got 'chunks=9"),
        ("data=4 micro_batch=3", r"yours .*: 8 samples are not divisible by .* = 12"),
        ("pipeline=0", r"must use the 4 cards"),
    ],
)
def test_words_that_are_none_get_one_line(words: str, said: str) -> None:
    if words == "tensor=4":
        assert run_of(file_of(), words).combination.tensor == 4
        return
    with pytest.raises(ValueError, match=said):
        run_of(file_of(), words)


def test_a_problem_without_a_model_has_no_yours(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    path.write_text("ranks = 2\nmicrobatches = 2\n[durations]\nF = 1\nB = 2\n")
    answer = command("plan", path, "--yours", "pipeline=2")
    assert answer.status == 2
    assert "tells neither; use a file that starts from [model]" in answer.err
