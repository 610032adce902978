"""Processes that were given different things say in what, and run nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch

from bubbleproof.commands.replaying.replay_options import (
    CommunicationOptions,
    ModelOptions,
    ReplayRequest,
    RunOptions,
    TrainingOptions,
)
from bubbleproof.commands.replaying.under_torchrun import OF_ONE_PROCESS, RunParts
from bubbleproof.formats.inputs import read_schedule_input
from bubbleproof.reference_exec.drivers import agreement
from bubbleproof.reference_exec.drivers.agreement import (
    IdentityPart,
    Paper,
    content_digest,
    disagreement,
    own_files,
    refusal,
)
from bubbleproof.reference_exec.drivers.gloo import RankFailed, run_gloo
from bubbleproof.reference_exec.drivers.place import ProcessPlace
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own import source_digest
from bubbleproof.reference_exec.plans.training import Training
from bubbleproof.theory.model.actions import Kind
from proofs_tests import structure
from proofs_tests.reference_exec.cases import family_case
from proofs_tests.reference_exec.launched import Start, free_port, launched, variables

ADVICE = "start all of them with one schedule, one model, the same options and versions"
MODEL = Path(__file__).parent / "troubled.py"
ISSUE = ("p=4", "m=7", "--no-count-bytes")


def papers(*parts: Mapping[str, str], nodes: str = "aabb") -> list[Paper]:
    return [
        Paper(rank=rank, node=nodes[rank], parts={n: (mark, mark) for n, mark in each.items()})
        for rank, each in enumerate(parts)
    ]


def test_who_differs_in_what_is_said() -> None:
    one, other = {"schedule": "x", "--seed": "1"}, {"schedule": "x", "--seed": "2"}
    assert disagreement(papers(one, one, one)) is None
    assert disagreement(papers(one, one, other)) == (
        f"the processes differ, nothing was run: --seed: 1 on ranks 0-1 on a, 2 on rank 2 on b; "
        f"{ADVICE}"
    )
    alone = papers(other, one, nodes="aa")
    assert "--seed: 2 on rank 0, 1 on rank 1;" in str(disagreement(alone))


def test_what_follows_from_a_difference_is_not_told() -> None:
    one, other = {"torch": "2", "program": "x"}, {"torch": "3", "program": "y"}
    assert "program" not in str(disagreement(papers(one, other)))
    assert "program: x on rank 0" in str(disagreement(papers(one, {**one, "program": "y"})))


def test_many_groups_are_counted() -> None:
    said = disagreement(papers(*({"weights": str(rank)} for rank in range(6)), nodes="aaaaaa"))
    assert "3 on rank 3, others on 2 groups of ranks;" in str(said)


def test_one_that_cannot_run_is_named_unless_all_say_so() -> None:
    able, unable = papers({}, {}, nodes="ab")
    unable = replace(unable, refusal="no file x.json")
    assert refusal([able]) is None
    assert refusal([able, unable]) == "rank 1 on b: no file x.json"
    assert refusal([unable]) == "no file x.json"
    # what it had read until then is compared all the same
    assert disagreement([able, replace(unable, parts={"--seed": ("1", "1")})]) is None


def test_papers_are_sent_and_read() -> None:
    paper = Paper(rank=1, node="a", parts={"torch": ("x", "2.13")}, refusal="no")
    assert Paper.from_json(asdict(paper)) == paper
    with pytest.raises(ValueError, match="said nothing of what it runs"):
        Paper.from_json({"rank": "1"})


class Other(Enum):
    F = 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [12]),
        (["ab", "c"], ["a", "bc"]),
        (1, 1.0),
        (1, True),
        (1, "1"),
        (None, "None"),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, [("a", 1)]),
        ({1, 2}, [1, 2]),
        (Kind.F, Other.F),
        (np.arange(4), np.arange(4).reshape(2, 2)),
        (np.arange(4), np.arange(4.0)),
        (torch.zeros(2), torch.tensor([0.0, -0.0])),  # equal, but not in their bits
        (Training(steps=1), Training(steps=2)),
    ],
)
def test_different_contents_have_different_digests(one: object, other: object) -> None:
    assert content_digest(one) != content_digest(other)


def test_equal_contents_have_one_digest() -> None:
    assert content_digest({"a": 1, "b": 2}) == content_digest({"b": 2, "a": 1})
    assert content_digest({9, 1, 5}) == content_digest(frozenset([5, 9, 1]))
    assert content_digest(np.arange(6)[::2]) == content_digest(np.array([0, 2, 4]))
    with pytest.raises(TypeError, match="function has no digest"):
        content_digest(content_digest)


REQUEST = ReplayRequest(schedule=["1f1b", "p=2", "m=2"], training=TrainingOptions(steps=2))
# another value of every option that a replay has
OTHER: dict[str, ReplayRequest] = {
    "--backend": replace(REQUEST, run=RunOptions(backend="nccl")),
    "--device": replace(REQUEST, run=RunOptions(device="cuda")),
    "--seed": replace(REQUEST, run=RunOptions(seed=1)),
    "--unsafe": replace(REQUEST, run=RunOptions(unsafe=True)),
    "--no-count-bytes": replace(REQUEST, run=RunOptions(no_count_bytes=True)),
    "--no-count-work": replace(REQUEST, run=RunOptions(no_count_work=True)),
    "--comm": replace(REQUEST, communication=CommunicationOptions(comm="rendezvous")),
    "--share-gpu": replace(REQUEST, communication=CommunicationOptions(share_gpu=True)),
    "--timeout": replace(REQUEST, communication=CommunicationOptions(timeout=61.0)),
    **{
        option: replace(REQUEST, training=training)
        for option, training in {
            "--optimizer": TrainingOptions(steps=2, optimizer="adam"),
            "--steps": TrainingOptions(steps=3),
            "--learning-rate": TrainingOptions(steps=2, learning_rate=0.5),
            "--barrier": TrainingOptions(steps=2, barrier=True),
            "--clip": TrainingOptions(steps=2, clip=0.5),
            "--accumulate": TrainingOptions(steps=2, accumulate=2),
            "--loss-scale": TrainingOptions(steps=2, loss_scale="1024"),
            "--data-parallel": TrainingOptions(steps=2, data_parallel=2),
            "--zero": TrainingOptions(steps=2, zero="3"),
        }.items()
    },
    **{
        option: replace(REQUEST, model=model)
        for option, model in {
            "--model": ModelOptions(model="transformer"),
            "--hidden": ModelOptions(hidden=16),
            "--layers": ModelOptions(layers="1,2"),
            "--heads": ModelOptions(heads=4),
            "--kv-heads": ModelOptions(kv_heads=2),
            "--sequence": ModelOptions(sequence=5),
            "--batch": ModelOptions(batch=3),
            "--vocabulary": ModelOptions(vocabulary=7),
            "--tied": ModelOptions(tied=True, vocabulary=7),
            "--dtype": ModelOptions(dtype="float32"),
            "--model-seed": ModelOptions(model_seed=1),
        }.items()
    },
}


def paper_of(request: ReplayRequest, rank: int = 0) -> Paper:
    return RunParts(request).paper(ProcessPlace(rank=rank, world_size=2, local_rank=0), None)


@pytest.mark.parametrize("option", OTHER)
def test_every_option_is_agreed_on(option: str) -> None:
    said = disagreement([paper_of(REQUEST), paper_of(OTHER[option], 1)])
    assert said is not None
    assert f"{option}: " in said
    assert said.count(" on rank 1") == (2 if option == "--tied" else 1)  # which needs a vocabulary


def test_no_option_is_left_out() -> None:
    groups = (REQUEST.run, REQUEST.model, REQUEST.training, REQUEST.communication, REQUEST.output)
    names = {field.name for group in groups for field in fields(group)}
    tried = {option.removeprefix("--").replace("-", "_") for option in OTHER}
    assert tried | {*OF_ONE_PROCESS} == names


@pytest.mark.parametrize("name", ["bubbleproof", "Python", "numpy", "torch"])
def test_every_version_is_agreed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = paper_of(REQUEST)
    faked = {**agreement.versions(), name: agreement.IdentityPart.of("0.0")}
    monkeypatch.setattr("bubbleproof.commands.replaying.under_torchrun.versions", lambda: faked)
    said = disagreement([here, paper_of(REQUEST, 1)])
    assert said is not None
    assert f"nothing was run: {name}: " in said
    assert "0.0 on rank 1" in said


def test_orders_starts_and_problem_are_agreed_on() -> None:
    def paper(*words: str) -> Paper:
        parts, given = RunParts(REQUEST), read_schedule_input(words)
        parts.know(given, given.timed())
        return parts.paper(ProcessPlace(rank=len(words) % 2, world_size=2, local_rank=0), None)

    one = paper("1f1b", "p=2", "m=2")
    assert disagreement([one, paper("1f1b", "p=2", "m=2")]) is None
    longer = str(disagreement([one, paper("1f1b", "p=2", "m=2", "tB=3")]))
    assert "1f1b p=2 m=2 tB=3 (sha256 " in longer
    assert "problem: sha256 " in longer
    # 1F1B swaps 0F1 and 0B0 of GPipe's orders on one problem, but for what may be held
    assert "gpipe p=2 m=2 (sha256 " in str(disagreement([one, paper("gpipe", "p=2", "m=2")]))


def spoilt_torch() -> None:
    torch.__version__ = "0.0"  # type: ignore[assignment]  # a version of text


def started(words: tuple[str, ...], rank: int, port: int, **more: str) -> Start:
    return Start(words=words, variables=variables(rank, 4, port, **more))


def test_processes_that_differ_run_nothing(tmp_path: Path) -> None:
    """Two nodes given a schedule each had every row asked for hold: what issue 10 found."""
    port = free_port()
    four = [
        started(("zb-h1" if rank < 2 else "1f1b", *ISSUE), rank, port, GROUP_RANK=str(rank // 2))
        for rank in range(4)
    ]
    four[1] = replace(four[1], words=(*four[1].words, "--dtype", "float32"))
    four[3] = replace(four[3], setup=spoilt_torch)
    with launched(tmp_path, four) as ranks:
        assert ranks.statuses() == [2, 2, 2, 2]
        said = {ranks.errors(rank) for rank in range(4)}
        assert [ranks.output(rank) for rank in range(4)] == [""] * 4
    (line,) = said  # all say the same, in one line
    assert line.count("\n") == 1
    assert line.startswith("bubbleproof: the processes differ, nothing was run: ")
    for part in (
        "--dtype: not given on ranks 0, 2-3 on node 0 (",
        "float32 on rank 1 on node 0 (",
        f"torch: {torch.__version__} on ranks 0-2 on ",
        "0.0 on rank 3 on node 1 (",
        "schedule: zb-h1 p=4 m=7 (sha256 ",
    ):
        assert part in line


def test_processes_of_another_number_are_refused(tmp_path: Path) -> None:
    port = free_port()
    two = [
        Start(words=("1f1b", "p=2", "m=2"), variables=variables(rank, size, port))
        for rank, size in ((0, 2), (1, 4))
    ]
    with launched(tmp_path, two) as ranks:
        assert ranks.statuses() == [2, 2]
        assert ranks.errors(0) == ranks.errors(1)
        assert "the same number of processes: 2 on rank 0, 4 on rank 1" in ranks.errors(0)


def edited(path: Path) -> str:
    """The model file with another rate of the tanh: a digit, so that its size stays."""
    source = MODEL.read_text().replace("manual_seed(7)", "manual_seed(8)")
    path.write_text(source)
    return f"{path}:model"


def test_a_model_file_that_differs_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL.read_text())
    edited(tmp_path / "edited.py")
    parts: list[Paper] = []
    for name in ("model", "edited"):
        request = replace(REQUEST, model=ModelOptions(model=f"{tmp_path / name}.py:model"))
        known, given = RunParts(request), read_schedule_input(REQUEST.schedule)
        known.know(given, given.timed())
        parts.append(known.paper(ProcessPlace(rank=len(parts), world_size=2, local_rank=0), None))
    said = str(disagreement(parts))
    assert f"model file: {tmp_path}/model.py:model (sha256 " in said
    assert "weights and first batch of the model: sha256 " in said


def test_a_model_file_that_was_edited_meanwhile_is_named_by_the_gloo_driver(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(MODEL.read_text())
    spec = ModelSpec(kind="own", factory=f"{path}:model")
    plan = family_case("1f1b", p=2, m=2).plan(spec)
    loaded = source_digest(spec.factory)
    edited(path)
    assert source_digest(spec.factory) == loaded  # this process keeps what it has loaded
    with pytest.raises(
        RankFailed, match=r"ranks? [01](-1)? failed: ValueError: model file is .* here an"
    ):
        run_gloo(plan)


def test_every_file_of_the_package_is_part_of_what_is_agreed_on() -> None:
    read = [(name, path.read_bytes()) for name, path in sorted(structure.files().items())]
    assert own_files() == {"files of bubbleproof": IdentityPart.of_content(content_digest(read))}
