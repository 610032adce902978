"""``plan`` of ranges, of two deployments side by side, and the sheet of what is assumed."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

import bubbleproof as bp
from bubbleproof.costs.times.constants import CONSTANTS, published_factors
from bubbleproof.costs.times.software import Software
from bubbleproof.formats.clusters.changed_cluster import jobs_of, numbers_of
from bubbleproof.formats.clusters.cluster_toml import cluster_file_of_text
from bubbleproof.planners.assumption_sheet import assumption_sheet
from bubbleproof.planners.side_by_side import SideBySide, own_asked, side_by_side
from bubbleproof.planners.what_ifs import PlannedJobs
from proofs_tests.commands.conftest import Run
from proofs_tests.commands.small_cluster import SMALL
from proofs_tests.patience import PATIENCE

WORDS = ("--time-limit", int(PATIENCE))
H100 = """
[model]
name = "llama-3-8b"
[cluster]
card = "h100"
cards = 8
[batch]
samples = 32
sequence = 8192
"""


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_ranges_double_and_lists_are_taken_as_they_are() -> None:
    """64..512: 64, 128, 256, 512; the last is in it where a doubling meets it."""
    assert numbers_of("cards", "64..512") == (64, 128, 256, 512)
    assert numbers_of("cards", "3..20") == (3, 6, 12)
    assert numbers_of("samples", "512, 256,512") == (512, 256)
    assert numbers_of("cards", [8, 16]) == numbers_of("cards", "8..16") == (8, 16)
    assert jobs_of({"cards": "1,2", "samples": 4, "sequence": None}) == [
        "cards=1,samples=4", "cards=2,samples=4",
    ]  # fmt: skip
    assert jobs_of({"cards": None}) == []
    for wrong in ("0", "x", "8..", "-4", "", [True], [2.5], "8..4"):
        with pytest.raises(ValueError, match="cards must be whole numbers above 0"):
            numbers_of("cards", wrong)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="512 jobs or less, got 1,024"):
        jobs_of({"cards": [*range(1, 33)], "samples": [*range(1, 33)]})


def test_each_job_has_the_plan_of_its_file(command: Run, problem: Path) -> None:
    words = ("plan", problem, "--cards", "2,4", "--batch", "8,16", *WORDS)
    found = json.loads(command(*words, "--json").out)
    for one, (cards, samples) in zip(found["jobs"], product((2, 4), (8, 16)), strict=True):
        assert (one["cards"], one["samples"], one["sequence"]) == (cards, samples, 256)
        text = SMALL.replace("cards = 4", f"cards = {cards}")
        problem.write_text(text.replace("samples = 8", f"samples = {samples}"))
        alone = json.loads(command("plan", problem, "--json", *WORDS).out)
        assert (one["value"], one["status"]) == (alone["value"], alone["status"])
        assert one["mfu"] == alone["mfu"]
        rate = samples * 256 / alone["value"] * 1e6
        assert one["tokens_per_second"] == pytest.approx(rate, abs=0.1)
    problem.write_text(SMALL)
    lines = command(*words).out.splitlines()
    best = max(found["jobs"], key=lambda one: one["mfu"])
    assert found["best"] == best["change"]
    assert lines[0].startswith(f"BEST     {best['change']}: MFU {100 * best['mfu']:.1f} %")
    assert lines[1].split()[:4] == ["cards", "samples", "sequence", "iteration"]
    assert [line.split()[:2] for line in lines[2:6]] == [
        [str(cards), str(samples)] for cards, samples in product((2, 4), (8, 16))
    ]
    assert len(lines) <= 10


def test_of_many_jobs_ten_lines_and_a_table(command: Run, problem: Path) -> None:
    words = ("plan", problem, "--samples", "1,2,3,4,5,6,7,8,9", "--time-limit", 9)
    lines = command(*words).out.splitlines()
    assert len(lines) <= 10
    assert "and 3 jobs more (--all)" in lines[-1]
    table = command(*words, "--all").out
    assert "jobs" in table
    assert len(table.splitlines()) > len(lines) + 9


def test_one_number_takes_the_place_of_the_files(
    command: Run, problem: Path, tmp_path: Path
) -> None:
    """Its folder is verified: it holds the text of the job that was planned."""
    out = tmp_path / "out"
    answer = command("plan", problem, "--batch", 16, "-o", out, *WORDS)
    assert answer.status == 0
    assert answer.out[:7] in ("OPTIMAL", "BEST   ")
    assert command("verify", out).status == 0
    problem.write_text(SMALL.replace("samples = 8", "samples = 16"))
    assert answer.out.splitlines()[0] == command("plan", problem, *WORDS).out.splitlines()[0]


def test_a_job_that_cannot_be_is_a_row_and_the_others_are_planned(
    command: Run, problem: Path
) -> None:
    """A sample of more tokens than memory holds, and data of two with one sample."""
    problem.write_text(f"{SMALL}[plan]\ndata = [2]\npipeline = [2]\nmicro_batch = [1]\n")
    found = json.loads(command("plan", problem, "--samples", "3,4", "--json", *WORDS).out)
    assert found["jobs"][0]["value"] is None
    assert "3 samples are not divisible by data x micro_batch = 2" in found["jobs"][0]["reason"]
    assert found["jobs"][1]["value"] is not None
    first = command("plan", problem, "--samples", "3,4", *WORDS).out.splitlines()[0]
    assert first.startswith("BEST     samples=4")
    answer = command("plan", problem, "--samples", "3,5", *WORDS)
    assert answer.out.startswith("NO PLAN  0 of 2 jobs have a plan")
    assert answer.status == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--cards", "0"),
        ("--batch", "8..x"),
        ("--cards", "2,4", "-o", "out"),
        ("--cards", "2,4", "--what-if", "network=2x"),
        ("--yours", "pipeline=2", "--yours", "pipeline=4", "--certificate", "c.json"),
        ("--yours", "pipeline=2", "--yours", "pipeline=4", "--yours", "pipeline=1"),
        ("--yours", "pipeline=2", "--yours", "pipeline=3"),
        ("--assumptions", "--yours", "pipeline=2"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(
    command: Run, problem: Path, words: tuple[str, ...]
) -> None:
    answer = command("plan", problem, *words)
    assert answer.status == 2, answer.out
    assert answer.err.count("\n") == 1


def test_two_deployments_side_by_side(command: Run, problem: Path) -> None:
    """Terms and kinds add up to the iterations and the bytes, which are those of each alone."""
    words = ("plan", problem, "--yours", "pipeline=2", "--yours", "pipeline=4 scope=full")
    found = json.loads(command(*words, "--json").out)
    for name, own in (("first", "pipeline=2"), ("second", "pipeline=4 scope=full")):
        one = found[name]
        alone = json.loads(command("plan", problem, "--yours", own, "--json", *WORDS).out)
        assert one["value"] == alone["yours"]["value"] == sum(one["parts"].values())
        assert one["on_card"] == alone["yours"]["on_card"] == sum(one["memory"].values())
    difference = found["difference"]
    assert sum(difference["time"].values()) == found["second"]["value"] - found["first"]["value"]
    memory = found["second"]["on_card"] - found["first"]["on_card"]
    assert sum(difference["memory"].values()) == memory
    lines = command(*words).out.splitlines()
    assert lines[0].startswith("SECOND   ")
    assert [line.split()[0] for line in lines[1:5]] == ["first", "second", "time", "memory"]
    assert "settings data 2 -> 1, pipeline 2 -> 4, scope none -> full" in lines[5]
    assert len(lines) <= 10
    table = command(*words, "-v").out
    assert all(name in table for name in ("compute", "optimizer", "activations", "reserve"))


def test_a_cause_is_a_change_that_was_made_alone() -> None:
    """Of two that differ in the scope alone the cause is all of the difference."""
    file = cluster_file_of_text(SMALL, name="small")
    found = side_by_side(file, "pipeline=2 scope=full", "pipeline=2")
    (cause,) = found.causes
    assert cause == ("scope full -> none", found.first.iteration - found.second.iteration)
    same = side_by_side(file, "pipeline=2", "pipeline=2")
    assert same.lines[0] == "EVEN     both take as long"
    assert same.causes == ()


def test_what_has_no_room_tells_the_missing_bytes_and_what_would_fit() -> None:
    """Each change that is named fits when it is asked for itself."""
    file = cluster_file_of_text(SMALL.replace("128 MiB", "88 MiB"), name="small")
    own = own_asked(file, "pipeline=2")
    assert own is not None
    assert not isinstance(own, bp.Error)
    assert not own.fits
    assert own.fits_as
    for each in own.fits_as:
        sizes = each.combination.to_json()
        told = " ".join(f"{name}={value}" for name, value in sizes.items() if value != "")
        again = own_asked(file, told)
        assert again is not None
        assert not isinstance(again, bp.Error)
        assert again.fits
        assert again.iteration == each.iteration
    (line,) = [
        line
        for line in side_by_side(file, "pipeline=2", "pipeline=2 scope=full").lines
        if line.startswith("first")
    ]
    missing = (own.on_card - (88 << 20)) / (1 << 20)
    assert f"{missing:.3g} MiB are missing" in line
    assert "fits with" in line


def test_the_sheet_has_every_constant_and_what_makes_its_value() -> None:
    """A constant is where it starts, times the profile's factor and those that were fitted."""
    file = cluster_file_of_text(H100, name="job")
    cluster = file.training.cluster
    sheet = {each.name: each for each in assumption_sheet(file).assumed if each.kind == "constant"}
    assert list(sheet) == [each.name for each in CONSTANTS]
    factors = published_factors(cluster.card, cluster.runs)
    for each in CONSTANTS:
        one = sheet[each.name]
        value = each.starts(cluster.card) * dict(cluster.runs.constants).get(each.name, 1.0)
        for _, _, factor in (f for f in factors if f[0] == each.name):
            value *= factor
            assert f"x {factor:.4g} fitted to published rows" in one.source
        assert one.value == cluster.constants[each.name] == pytest.approx(value)
        assert (one.unit, one.used_for) == (each.unit, each.meaning)
    assert "from memory_gbs of h100" in sheet["memory"].source
    assert "from reached and tflops of h100" in sheet["matmul"].source
    assert "(a prior)" in sheet["launch"].source


def test_the_sheet_has_what_the_software_does_and_the_file_tells(
    command: Run, tmp_path: Path
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(H100.replace("cards = 8", 'cards = 8\nreserve = "3 GiB"\nefficiency = 0.5'))
    found = json.loads(command("plan", path, "--assumptions", "--json").out)["assumptions"]
    software = {each["name"] for each in found if each["kind"] == "software"}
    assert software == {*Software.__dataclass_fields__} - {
        "name", "source", "constants", "like", "products",
    }  # fmt: skip
    assert all(each["source"] for each in found)
    told = {each["name"]: each for each in found if each["kind"] == "cluster"}
    assert (told["reserve"]["value"], told["reserve"]["source"]) == ("3 GiB", "the file")
    assert told["efficiency"]["value"] == pytest.approx(0.5)
    assert told["efficiency"]["source"] == "the file"
    (matmul,) = [each for each in found if each["name"] == "matmul"]
    assert "as the file says" in matmul["source"]
    lines = command("plan", path, "--assumptions").out.splitlines()
    assert lines[0].startswith(f"{len(found)} assumptions: {len(CONSTANTS)} constants")
    assert len(lines) <= 10
    assert "exposed_gradient" in command("plan", path, "--assumptions", "-v").out


def test_the_door_answers_the_same(command: Run, problem: Path) -> None:
    jobs = bp.plan(problem, cards=[2, 4], samples="8,16", time_limit=PATIENCE)
    assert isinstance(jobs, PlannedJobs)
    told = json.loads(
        command("plan", problem, "--cards", "2,4", "--samples", "8,16", "--json", *WORDS).out
    )
    assert [one.to_json() for one in jobs.jobs] == told["jobs"]
    assert jobs.best is not None
    assert jobs.best.change == told["best"]
    pair = bp.plan(problem, yours=["pipeline=2", "pipeline=4"])
    assert isinstance(pair, SideBySide)
    words = ("plan", problem, "--yours", "pipeline=2", "--yours", "pipeline=4", "--json")
    assert pair.to_dict() == json.loads(command(*words).out)
    with pytest.raises(TypeError, match="write"):
        bp.write(problem.parent / "out", jobs)


def test_the_door_plans_beside_ones_own_and_changes(command: Run, problem: Path) -> None:
    asked = {"yours": "pipeline=4", "what_if": ["network=0.5x", "cards=-2,memory=64MiB"]}
    found = bp.plan(problem, **asked, tokens=1e9, time_limit=PATIENCE)  # type: ignore[arg-type]  # by name
    words = ["plan", problem, "--yours", "pipeline=4", "--tokens", 1e9, "--json", *WORDS]
    words += [word for change in asked["what_if"] for word in ("--what-if", change)]
    told = json.loads(command(*words).out)
    mine = found.to_dict()
    for key in ("yours", "what_if", "days", "value", "winner"):
        assert mine[key] == told[key], key
    assert [one["cards"] for one in told["what_if"]] == [4, 2]
    with pytest.raises(TypeError, match="what_if go with a model on a cluster"):
        bp.plan(bp.Pipeline(num_ranks=2, num_microbatches=2), what_if="cards=2")
    with pytest.raises(ValueError, match="--yours takes key=value"):
        bp.plan(problem, yours="pipelines=4")


def test_what_of_a_configuration_is_not_counted_is_said(command: Run, tmp_path: Path) -> None:
    """A sliding window beyond the sequence or a tower is a note of ``costs`` and of ``plan``."""
    config = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
        "vocab_size": 100, "max_position_embeddings": 64,
        "quantization_config": {"quant_method": "fp8"},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    _, _, rest = SMALL.partition("[cluster]")
    path = tmp_path / "job.toml"
    path.write_text(f'[model]\nconfig = "hf:{tmp_path}/config.json"\n[cluster]{rest}')
    notes = bp.plan(path, time_limit=PATIENCE).to_dict().get("notes")
    printed = command("costs", f"hf:{tmp_path}/config.json").out
    told = [line.partition("note     ")[2] for line in printed.splitlines() if "note  " in line]
    assert told
    assert notes == told
    assert json.loads(command("plan", path, "--json", *WORDS).out)["notes"] == told
    assert "not counted" in command("plan", path, "-v", *WORDS).out
