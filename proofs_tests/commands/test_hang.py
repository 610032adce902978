"""``hang``: what it prints, its status, and its JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from proofs_tests.commands.conftest import Run

ROOT = Path(__file__).parents[2]
DUMPS, TABLE = ROOT / "examples" / "ci" / "hang", ROOT / "examples" / "ci" / "just-in-time.csv"


def test_a_hang_ends_with_1_and_names_the_rule(command: Run) -> None:
    answer = command("hang", DUMPS, "--schedule", TABLE)
    assert answer.status == 1
    first, second, *_ = lines = answer.out.splitlines()
    assert first == "DEADLOCK  ranks 0 and 1 wait for each other"
    assert second.startswith("0SEND_F1 on rank 0 waits for")
    assert len(lines) <= 10
    assert "rule 6 refuses just-in-time under pair-stream: deadlock" in answer.out


def test_the_first_line_alone_or_where_to_look(command: Run) -> None:
    words = ["hang", DUMPS, "--schedule", TABLE]
    assert command(*words, "-q").out == "DEADLOCK  ranks 0 and 1 wait for each other\n"
    assert "where to look" in command(*words, "-v").out


def test_json_tells_the_cells(command: Run) -> None:
    answer = command("hang", DUMPS, "--schedule", TABLE, "--json")
    told = json.loads(answer.out)
    assert told["kind"] == "cycle"
    assert told["semantics"] == "pair-stream"
    assert {(cell["rank"], cell["action"]) for cell in told["cells"]} >= {(0, "0SEND_F1")}
    assert (told["missing_ranks"], told["lost_calls"]) == ([], [])


def test_one_of_two_dumps_is_a_partial_answer_with_3(command: Run) -> None:
    answer = command("hang", DUMPS / "nccl_trace_rank_0.json")
    assert answer.status == 3
    assert "the answer is partial: no dump of rank 1" in answer.out


def test_a_schedule_of_other_ranks_is_refused(command: Run) -> None:
    answer = command("hang", DUMPS, "--schedule", "1f1b p=4 m=4")
    assert answer.status == 2
    assert "has 4 ranks, the dumps are of a job with 2" in answer.err
    assert answer.err.count("\n") == 1


def test_a_dump_twice_is_refused(command: Run, tmp_path: Path) -> None:
    shutil.copy(DUMPS / "nccl_trace_rank_0.json", tmp_path / "other_0.json")
    answer = command("hang", DUMPS, tmp_path / "other_0.json")
    assert answer.status == 2
    assert "expected one dump of rank 0" in answer.err


def test_a_name_reaches_no_terminal_as_it_is(command: Run, tmp_path: Path) -> None:
    name = "\x1b[31mX\n\u202e"
    for path in sorted(DUMPS.glob("*.json")):
        dump = json.loads(path.read_text())
        for entry in dump["entries"]:
            entry.update(profiling_name=f"nccl:{name}", is_p2p=False, state="scheduled")
        (tmp_path / path.name).write_text(json.dumps(dump))
    for words in ([], ["--json"]):
        answer = command("hang", tmp_path, *words)
        assert answer.status in (1, 3)
        assert not {"\x1b", "\u202e"} & {*answer.out, *answer.err}
        assert all(line.isprintable() for line in answer.out.splitlines())


def test_the_file_is_named_where_a_name_is_refused(command: Run, tmp_path: Path) -> None:
    dump = json.loads((DUMPS / "nccl_trace_rank_0.json").read_text())
    dump["pg_config"] = {"\x1b[31m": {"ranks": "nobody"}}
    (tmp_path / "nccl_trace_rank_0.json").write_text(json.dumps(dump))
    answer = command("hang", tmp_path)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert f"{tmp_path}/nccl_trace_rank_0.json: pg_config." in answer.err
    assert answer.err.strip().isprintable()
