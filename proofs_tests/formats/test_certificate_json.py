"""Certificate files: what is written is read back, and what no file may hold is refused by name."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pytest

from bubbleproof.formats import UnusableInput, read_certificate, write_certificate
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.certificates.certificate import Drup, Lemma
from bubbleproof.verify.certificates.certificate_rule import Certificate
from bubbleproof.verify.certificates.crossings import Crossings
from bubbleproof.verify.certificates.microbatch_windows import MicrobatchWindow, MicrobatchWindows
from bubbleproof.verify.certificates.one_machine import OneMachine
from bubbleproof.verify.certificates.one_store import OneStore
from bubbleproof.verify.certificates.tick_prices import Tariff, TickPrices
from bubbleproof.verify.certificates.volume import Volume
from proofs_tests.cases import hand_built, overlapped

PROBLEM = Pipeline(num_ranks=2, num_microbatches=2).problem()
F0, F1, B1 = (PROBLEM.task(text) for text in ("0F0", "1F1", "1B1"))
ONE = OneMachine(resource=1, tasks=(F1, B1), bound=9)
ROOM = OneStore(resource=1, store=0, begin=3, end=2, bound=9, objective="span_idle")
PRICES = TickPrices(
    resources=(Tariff(of=1, steps=((0, 3), (7, 0))), Tariff(of=0, steps=())),
    stores=(Tariff(of=1, steps=((2, 1 << 40),)),),
    bound=9,
)
STEPS = Drup(
    bound=10,
    lemmas=(
        Lemma(literals=((">=", B1, 7),), crowd=(F1, F0)),
        Lemma(rule="suppose", literals=(("<", B1, F1),)),
        Lemma(crowd=(F1, B1), full=F1),
        Lemma(rule="absurd"),
    ),
)
LEMMAS = Drup(
    bound=-3,
    objective="span_idle",
    rank=1,
    lemmas=(
        Lemma(literals=((">=", F0, -2), ("<=", PROBLEM.num_tasks + 1, 5), ("<", B1, F1))),
        Lemma(literals=(), full=F1),
        Lemma(literals=()),
    ),
)


# Of the last rank alone: its tasks are 1F0 and so on, and `rank0` is the clock.
WINDOWS = MicrobatchWindows(
    first=PROBLEM.task("1F0"),
    store=1,
    windows=(
        MicrobatchWindow(count=2, ranks=(1,), proof=OneMachine(resource=0, tasks=(3,), bound=4)),
        MicrobatchWindow(
            count=1,
            ranks=(1,),
            proof=Drup(bound=2, lemmas=(Lemma(literals=((">=", 2, 7), ("<", 0, 1))),)),
            times=3,
        ),
    ),
    bound=9,
)


@pytest.mark.parametrize(
    "certificate",
    [
        *(ONE, ROOM, Volume(store=1, bound=7), Crossings(store=1, bound=7)),
        *(PRICES, STEPS, LEMMAS, WINDOWS),
    ],
)
def test_what_is_written_is_read_back(certificate: Certificate, tmp_path: Path) -> None:
    write_certificate(tmp_path / "c.json", PROBLEM, certificate, name="small")
    assert read_certificate(tmp_path / "c.json", PROBLEM) == certificate


@pytest.mark.parametrize("problem", [hand_built().problem, overlapped().problem])
def test_every_task_and_resource_has_a_name(problem: Problem, tmp_path: Path) -> None:
    tasks = tuple(range(problem.num_tasks))
    lemma = Lemma(literals=tuple(("<=", task, 1) for task in tasks), full=tasks[-1])
    for certificate in (
        OneMachine(resource=len(problem.resources) - 1, tasks=tasks, bound=1),
        OneStore(resource=0, store=len(problem.stores) - 1, begin=0, end=0, bound=1),
        Drup(bound=1, lemmas=(lemma,)),
    ):
        write_certificate(tmp_path / "c.json", problem, certificate)
        assert read_certificate(tmp_path / "c.json", problem) == certificate


def test_long_proofs_are_packed(tmp_path: Path) -> None:
    lemma = Lemma(literals=tuple(("<=", F0, ticks) for ticks in range(2000)))
    long = Drup(bound=1, lemmas=(lemma,) * 20)
    write_certificate(tmp_path / "c.json", PROBLEM, long)
    content = json.loads((tmp_path / "c.json").read_text())
    assert "packed" in content
    assert "lemmas" not in content
    assert (tmp_path / "c.json").stat().st_size < 40_000
    assert read_certificate(tmp_path / "c.json", PROBLEM) == long


FILE: dict[str, object] = {
    "format": "bubbleproof/certificate",
    "version": 1,
    "kind": "drup",
    "objective": "makespan",
    "bound": 9,
    "lemmas": ["0F0>=1 1F0<0B0"],
}


def refusal(content: object, tmp_path: Path) -> str:
    path = tmp_path / "c.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(UnusableInput) as caught:
        read_certificate(path, PROBLEM)
    return str(caught.value).replace(f"{tmp_path}/c.json: ", "")


def changed(tmp_path: Path, **changes: object) -> str:
    return refusal({k: v for k, v in (FILE | changes).items() if v is not None}, tmp_path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert "expected valid JSON" in refusal("{", tmp_path)
    wanted = 'format: expected "bubbleproof/certificate", found '
    assert refusal([], tmp_path) == wanted + "a list of 0"
    assert changed(tmp_path, format="bubbleproof/schedule") == wanted + "'bubbleproof/schedule'"
    assert changed(tmp_path, version=2) == "version: expected 1, found 2"
    kinds = "one-machine, one-store, volume, crossings, prices, drup, windows"
    assert changed(tmp_path, kind="oracle") == f"kind: expected one of {kinds}, found 'oracle'"
    assert changed(tmp_path, kind=["drup"]).startswith("kind: expected one of")
    with pytest.raises(UnusableInput, match="no such file"):
        read_certificate(tmp_path / "none.json", PROBLEM)


def test_keys_are_checked(tmp_path: Path) -> None:
    assert changed(tmp_path, bound=None) == "bound: expected this key, found nothing"
    assert changed(tmp_path, bound=9.5).startswith("bound: expected a whole number")
    assert changed(tmp_path, objective="peak") == (
        "objective: expected 'makespan' or 'span_idle', found 'peak'"
    )
    assert "did you mean 'lemmas'" in changed(tmp_path, lemma=[])
    assert changed(tmp_path, rank=-1) == "rank: expected a whole number of 0 or more, found -1"
    both = "expected either the key lemmas or the key packed, found "
    assert changed(tmp_path, packed="") == both + "both"
    assert changed(tmp_path, lemmas=None) == both + "neither"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0F0>=x", "expected a literal such as 0F3>=12, 0F3<=12 or 0B1<0F3, found '0F0>=x'"),
        ("0F0", "found '0F0'"),
        ("0F0>1", "found '0F0>1'"),
        ("0F0<=1<=2", "found '0F0<=1<=2'"),
        ("0F0>=99999999999999999999", "expected a literal"),
        ("0F7>=1", "expected a task of the schedule's problem, found '0F7'"),
        ("rank2>=1", "expected a task of the schedule's problem, found 'rank2'"),
        ("0F0>=1 @9F9", "expected a task of the schedule's problem, found '9F9'"),
        ("0F0>=1 +9F9", "expected a task of the schedule's problem, found '9F9'"),
        ("+0F0 0F0>=1", "found '+0F0'"),
        ("assume 0F0>=1", "found 'assume'"),
        ("0F0>=1 suppose", "found 'suppose'"),
    ],
)
def test_lemmas_are_refused_with_their_place(line: str, message: str, tmp_path: Path) -> None:
    told = changed(tmp_path, lemmas=["", line])
    assert told.startswith("lemmas[1]: expected")
    assert message in told


def test_packed_text_is_refused_unless_whole(tmp_path: Path) -> None:
    good = zlib.compress(b"0F0>=1")

    def told(raw: bytes) -> str:
        return changed(tmp_path, lemmas=None, packed=base64.b64encode(raw).decode())

    other = "packed: expected ASCII text, zlib in base64, found another text"
    assert changed(tmp_path, lemmas=None, packed="#") == other
    assert told(b"plain") == other
    assert told(zlib.compress("é".encode())) == other
    assert told(good[:-5]).startswith("packed: expected a whole compressed text")
    packer, space = zlib.compressobj(level=1), b" " * (1 << 20)
    first, again = (packer.compress(space) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    bomb = first + 256 * again  # 257 MiB
    assert zlib.decompressobj().decompress(bomb, 3 << 20) == 3 * space
    assert told(bomb) == "packed: expected at most 256 MiB once unpacked, found more"


def test_names_of_other_kinds_are_refused(tmp_path: Path) -> None:
    one = {key: FILE[key] for key in ("format", "version", "objective", "bound")}
    machine = one | {"kind": "one-machine", "resource": "rank 7", "tasks": ["0F0"]}
    assert refusal(machine, tmp_path) == (
        "resource: expected a resource such as rank 0, rank 1, found 'rank 7'"
    )
    there = machine | {"resource": "rank 0", "tasks": ["0F0", "0X0"]}
    assert refusal(there, tmp_path) == (
        "tasks[1]: expected a task of the schedule's problem, found '0X0'"
    )
    room = one | {"kind": "one-store", "resource": "rank 0", "begin": 0, "end": 0}
    assert refusal(room | {"store": "memory of rank 7"}, tmp_path) == (
        "store: expected a store such as memory of rank 0, memory of rank 1, "
        "found 'memory of rank 7'"
    )
    assert refusal(room | {"store": "memory of rank 0", "end": -1}, tmp_path).startswith("end: ")


def test_a_bound_too_wide_for_json_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="bound: expected at most"):
        write_certificate(tmp_path / "c.json", PROBLEM, Drup(bound=1 << 60, lemmas=()))
    assert not (tmp_path / "c.json").exists()
