"""``replay``: what it answers and writes, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from proofs_tests.commands.conftest import Run
from proofs_tests.report.replay_content import replay_in

pytestmark = pytest.mark.torch


def test_replay_answers_with_evidence(command: Run) -> None:
    answer = command("replay", "zb-h1", "p=3", "m=4", "--seed", "7", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"], found["gradients_equal"]) == (0, True, True)
    assert found["measured_peak_bytes"] == found["predicted_peak_bytes"]
    assert found["seed"] == 7


def test_replay_without_counting_bytes_says_so(command: Run, tmp_path: Path) -> None:
    words = ["replay", "1f1b", "p=2", "m=3", "--no-count-bytes"]
    answer = command(*words)
    assert answer.status == 0
    assert "not counted" in answer.out
    answer = command(*words, "--json", "-o", tmp_path / "run.html")
    told = json.loads(answer.out)
    assert (answer.status, told["ok"], told["counts_bytes"]) == (0, True, False)
    assert told["measured_peak_bytes"] == told["predicted_peak_bytes"] == []
    assert "not counted" in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_replay_tells_what_was_computed(command: Run, tmp_path: Path) -> None:
    answer = command("replay", "zb-h1", "p=2", "m=2", "-o", tmp_path / "x.json", "--json")
    told = json.loads(answer.out)
    # two microbatches, F and B of two GEMMs of 2 x 8 x 8 x 32: 6 GEMMs each
    assert told["measured_flops"] == told["predicted_flops"] == [2 * 6 * 4096] * 2
    found = replay_in(tmp_path / "x.json")
    assert found.work is not None
    assert found.work.measured == [2 * 6 * 4096] * 2
    assert found.work.not_counted == told["not_counted_work"] != []


def test_replay_says_first_whether_it_passes(command: Run) -> None:
    """Ten lines at most, each of what was compared; what nothing compared where it is asked for."""
    words = ["replay", "1f1b", "p=2", "m=4"]
    first, numbers, peaks = command(*words).out.splitlines()
    assert first == "PASS  gradients bit-identical to the reference (2 ranks, float64)"
    assert re.fullmatch(
        r"losses identical · error to plain backward \S+ · 32 actions: FLOPs as predicted", numbers
    )
    assert re.match(r"peak activation memory \S+ and \S+ KiB, as predicted ", peaks)
    assert command(*words, "-q").out.splitlines() == [first]
    assert "peak" not in command(*words, "--no-count-bytes").out.replace("(-v", "")
    explained = command(*words, "--explain").out
    assert "Not counted among live bytes:" in explained
    assert "Not checked:" in explained


def test_replay_without_counting_work_says_so(command: Run, tmp_path: Path) -> None:
    words = ["replay", "1f1b", "p=2", "m=3", "--no-count-work"]
    assert "FLOPs" not in command(*words).out
    answer = command(*words, "-v", "--explain", "-o", tmp_path / "x.json")
    assert answer.status == 0
    assert "work at each action" in answer.out
    assert "not asked" in answer.out
    assert "Not counted as work" not in answer.out
    assert replay_in(tmp_path / "x.json").work is None


def test_replay_leaves_a_file_a_page_and_a_trace(command: Run, tmp_path: Path) -> None:
    targets = [tmp_path / f"x.{ending}" for ending in ("json", "html", "perfetto.json")]
    outputs = [word for target in targets for word in ("-o", target)]
    assert command("replay", "zb-h1", "p=2", "m=3", *outputs).status == 0
    found = replay_in(targets[0])
    assert found.ok
    assert found.machine.versions.keys() >= {"python", "torch", "bubbleproof"}
    # zb-h1: F, I and W of 3 microbatches on each of 2 ranks
    computed = [row for rows in found.trace.values() for row in rows if row[4]]
    assert len(computed) == 2 * 3 * 3
    assert all(measured == predicted for *_, measured, predicted in computed)
    assert "What was not checked" in targets[1].read_text()
    events = json.loads(targets[2].read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 2 * 3 * 3


def test_replay_knows_before_it_runs_that_a_file_cannot_be_written(
    command: Run, tmp_path: Path
) -> None:
    (tmp_path / "x.json").mkdir()
    (tmp_path / "file").touch()
    words = ["replay", "1f1b", "p=2", "m=2", "-o"]
    answer = command(*words, tmp_path / "x.json")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.endswith("x.json: expected a regular file to write, found a folder\n")
    answer = command(*words, tmp_path / "file" / "x.json")
    assert (answer.status, answer.out) == (2, "")
    assert "x.json: expected a file in a folder, found " in answer.err
    assert "has ended" not in answer.err


def test_replay_makes_the_folder_of_each_of_its_files(command: Run, tmp_path: Path) -> None:
    targets = [tmp_path / ending / f"x.{ending}" for ending in ("json", "html", "perfetto.json")]
    outputs = [word for target in targets for word in ("-o", target)]
    assert command("replay", "1f1b", "p=2", "m=2", *outputs).status == 0
    assert all(target.is_file() for target in targets)


def test_replay_tells_what_it_found_also_where_its_file_cannot_be_written(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("bubbleproof.commands.replaying.replay_files.write_replay", full)
    answer = command("replay", "1f1b", "p=2", "m=2", "--json", "-o", tmp_path / "x.json")
    assert answer.status == 2
    assert json.loads(answer.out)["ok"] is True
    assert "no space left on device" in answer.err


def test_a_failed_comparison_with_pytorch_is_one_json_object_too(
    command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("rank 1 died")

    runtime = "bubbleproof.reference_exec.pytorch.runtime.compare_with_torch_runtime"
    monkeypatch.setattr(runtime, fail)
    answer = command("replay", "1f1b", "p=2", "m=2", "--backend", "torch-runtime", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"], found["failures"]) == (1, False, ["rank 1 died"])


def test_replay_writes_no_other_file(command: Run, tmp_path: Path) -> None:
    answer = command("replay", "1f1b", "p=2", "m=2", "-o", tmp_path / "x.svg")
    assert answer.status == 2
    assert "must end in one of .html .perfetto.json .json" in answer.err


def test_replay_on_processes(command: Run) -> None:
    words = "replay 1f1b p=2 m=3 --backend gloo --dtype float32"
    answer = command(*words.split(), "-v")
    assert answer.status == 0
    assert answer.out.startswith("PASS  gradients bit-identical to the reference (2 ranks, float32")
    assert "gradients (gloo, 2 ranks, mlp float32)" in answer.out


def test_replay_by_pytorch_s_own_runtime(command: Run) -> None:
    answer = command("replay", "zb-h1", "p=2", "m=3", "--backend", "torch-runtime", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"], found["gradients_equal"]) == (0, True, True)
    assert found["differing"] == []


def test_replay_of_a_llama_with_uneven_stages(command: Run) -> None:
    model = ["--model", "llama", "--heads", "4", "--kv-heads", "2", "--layers", "1,2"]
    answer = command("replay", "zb-h1", "p=2", "m=2", *model, "--json")
    assert answer.status == 0
    assert json.loads(answer.out)["model"] == "llama"


def test_replay_takes_optimizer_steps(command: Run) -> None:
    words = ["zb-h1", "p=2", "m=2", "--optimizer", "adam", "--steps", "2"]
    answer = command("replay", *words, "-v")
    assert answer.status == 0
    assert "\nweights after 2 steps of adam, stage by stage: bit-identical" in answer.out
    assert "model state per rank: weights, gradients," in answer.out
    found = json.loads(command("replay", *words, "--barrier", "--json").out)
    assert (found["steps"], found["optimizer"], found["has_barrier"]) == (2, "adam", True)
    # an mlp layer of hidden 8: 8 x 64 + 7 x 8 parameters of 8 bytes in 6 tensors
    layer = (8 * 64 + 7 * 8) * 8
    state = {"weights": layer, "gradients": layer, "optimizer": 2 * layer + 6 * 4}
    assert found["measured_model_state"] == found["predicted_model_state"] == [state] * 2


def test_replay_of_a_tied_model(command: Run) -> None:
    words = ["--model", "transformer", "--vocabulary", "7", "--tied", "--steps", "2"]
    assert command("replay", "1f1b", "p=2", "m=2", *words).status == 0


def test_replay_of_a_model_of_one_s_own(command: Run) -> None:
    example = Path(__file__).resolve().parent.parent.parent / "examples" / "model" / "own_model.py"
    answer = command("replay", "zb-h1", "p=4", "m=4", "--model", f"{example}:build", "--json")
    assert answer.status == 0
    assert json.loads(answer.out)["model"] == "own"


def test_replay_refuses_what_is_not_verified(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    command("convert", "1f1b", "p=2", "m=2", path)
    content = json.loads(path.read_text())
    content["orders"]["rank 1"][0][1] = 0  # 1F0 before its input is there
    path.write_text(json.dumps(content))
    answer = command("replay", path)
    assert answer.status == 2
    assert "replay refuses what is not verified: 1F0 starts at 0, but waits for 0F0" in answer.err


def test_replay_runs_what_is_not_verified_where_it_is_told_to_and_says_so(
    command: Run, tmp_path: Path
) -> None:
    path = tmp_path / "s.json"
    command("convert", "zb-h1", "p=2", "m=2", path)
    content = json.loads(path.read_text())
    content["orders"]["rank 0"] = [row for row in content["orders"]["rank 0"] if row[0] != "0W1"]
    path.write_text(json.dumps(content))
    assert command("replay", path).status == 2
    answer = command("replay", path, "--unsafe", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["ok"], found["unsafe"]) == (1, False, True)
    assert found["broken_rules"] == ["complete", "dataflow"]
    assert "left over: 0I1 without W" in found["stopped"]
    shown = command("replay", path, "--unsafe", "-v")
    assert shown.status == 1
    assert shown.out.startswith("FAIL  not verified, complete: ")
    assert "UNSAFE: run without being verified" in shown.out
    assert "UNSAFE: dataflow" in shown.out
    assert "UNSAFE: running what is not verified; broken: complete, dataflow" in shown.err


def test_replay_of_an_order_that_waits_for_itself(command: Run, tmp_path: Path) -> None:
    path = tmp_path / "crossed.csv"
    path.write_text("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")
    assert command("replay", path).status == 2
    answer = command("replay", path, "--unsafe", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["gradients_equal"]) == (1, False)
    assert {"communication", "dataflow"} <= set(found["broken_rules"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["replay", "1f1b", "p=2", "m=2", "--backend", "x"],
            "one of virtual, gloo, torch-runtime, or nc",
        ),
        (
            ["replay", "1f1b", "p=2", "m=2", "--comm", "x"],
            "must be one of buffered, rendezvous, pa",
        ),
        (["replay", "chimera", "p=2", "m=2", "--backend", "torch-runtime"], "each stage on one"),
        (
            ["replay", "1f1b", "p=2", "m=2", "--optimizer", "x"],
            "must be one of sgd, momentum, adam",
        ),
        (
            ["replay", "1f1b", "p=2", "m=2", "--steps", "0"],
            "replay steps must be 1 or more, whole, got 0",
        ),
        (["replay", "1f1b", "p=2", "m=2", "--learning-rate", "-1"], "rate must be more than 0"),
        (
            ["replay", "1f1b", "p=2", "m=2", "--backend", "torch-runtime", "--steps", "1"],
            "--steps has no meaning for --backend torch-runtime; leave it out",
        ),
        *(
            (["replay", "1f1b", "p=2", "m=2", "--backend", "torch-runtime", *words], message)
            for words, message in (
                (["--no-count-bytes"], "--no-count-bytes has no meaning for --backend torch-"),
                (["--no-count-work"], "--no-count-work has no meaning for --backend torch-"),
                (["--device", "cuda"], "torch-runtime computes on the cpu, got cuda"),
                (["--timeout", "nan"], "timeout must be more than 0 and at most"),
            )
        ),
        (["replay", "1f1b", "p=2", "m=2", "--dialect", "x"], "--dialect must be new or old, got"),
        (["replay", "1f1b", "p=2", "m=2", "--dialect", "new"], "is for a PyTorch table (.csv), go"),
        # an F and a B of each microbatch on each rank
        (["replay", "1f1b", "p=2", "m=99999999999"], "actions, got 399999999996 (2 ranks, 999999"),
        (
            ["replay", "1f1b", "p=2", "m=2", "--hidden", "10000000"],
            # 2 stages of 8 h^2 + 7 h weights and their gradients, of 8 bytes; then of 8 tokens
            # 6 h + 2 each in the layer, and on the last stage the error and the loss, 8 h + 1
            f"needs {(2 * 2 * (8 * 10**14 + 7 * 10**7) + 8 * (6 * 10**7 + 2) + 8 * 10**7 + 1) * 8}",
        ),
        (["replay", "1f1b", "p=2", "m=2", "--model", "none.py:f"], "none.py:f: no file none.py"),
        (["replay", "1f1b", "p=2", "m=2", "--tied"], "tied needs a vocabulary"),
        (["replay", "1f1b", "p=2", "m=2", "--model", "own"], "factory belongs to kind own"),
        (["replay", "1f1b", "p=2", "m=2", "--layers", "1,x"], "one per stage such as 2,3,3,2, got"),
        (["replay", "1f1b", "p=2", "m=2", "--layers", "1,2,1"], "one per stage (2), got 3"),
        (["replay", "1f1b", "p=2", "m=2", "--model", "llama", "--heads", "3"], "multiple of heads"),
        (["replay", "1f1b", "p=2", "m=2", "--hidden", "0"], "model hidden must be 1 or more"),
    ],
)
def test_unusable_words(command: Run, words: list[str], message: str) -> None:
    answer = command(*words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert answer.err.count("\n") == 1
