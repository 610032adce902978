"""Type checkers resolve the rooms after each kind of install, whether links exist or not.

A checkout without links is what a zip archive unpacks to, and git on Windows: each link is then a
small file that holds where it leads.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

import bubbleproof as bp
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.structure import BESIDE, ROOT

USER = """\
import bubbleproof as bp
from bubbleproof.theory.model.problem import Problem
from bubbleproof.verify.verdict import Verdict

pipeline = bp.Pipeline(num_ranks=4, num_microbatches=6)
result = bp.solve(pipeline)
verdict: Verdict = bp.check(pipeline, result)
reveal_type(result)
reveal_type(bp.Problem)
wrong: Problem = verdict
bp.Pipeline(num_rank=4, num_microbatches=6)
"""
# What a user may write with each name of the door; a type checker finds nothing wrong in it.
EVERY_NAME = """\
import bubbleproof as bp


def loss_of(name: str) -> float:
    cluster, model = bp.Cluster(card="h100", cards=8), bp.Model(
        layers=2, hidden=64, heads=4, feed_forward=256, vocabulary=1000
    )
    planned = bp.plan(model=model, cluster=cluster, samples=8, sequence=64, progress=print)
    bp.write("P", planned)
    print(planned.to_dict(), planned.to_frame())
    print(bp.plan(model="llama-3-70b", card="h100", cards=64, samples=128, sequence=8192))
    weights: int = bp.costs(model, tensor=2).state_bytes
    ms = [each.iteration_ms for each in bp.estimate("rows.csv", "h100")]
    error = bp.calibrate("rows.csv", "mine.toml", card="h100").mean_error
    return error + sum(ms) + weights


def searched(problem: bp.Problem) -> tuple[bp.Result, bp.Schedule | None]:
    pipeline = bp.Pipeline(num_ranks=2, num_microbatches=3)
    result: bp.Result = bp.solve(pipeline, progress=print)
    points = [point.makespan for point in bp.pareto(problem, progress=print).points]
    mended = bp.repair("1f1b p=2 m=3", problem=pipeline)
    verdict: bp.Verdict = bp.check(pipeline, result)
    first: list[bp.Violation] = list(verdict.violations)
    told: list[dict[str, object]] = [result.to_dict(), verdict.to_dict()]
    print(told, result.to_frame(), bp.check(result).ok)
    share: float = bp.measure(pipeline, result).idle_ratio_float
    rows = [(str(action), rank, end - start) for action, rank, start, end in result.schedule or ()]
    print(points, mended, first, share, rows, bp.idle(pipeline, result).ticks_by_cause())
    return result, result.schedule


def ran(build: bp.OwnModel) -> None:
    member = bp.family(bp.families().popitem()[0])(p=2, m=3)
    bp.register(bp.family("1f1b"))
    bp.convert(member, "x.csv", communication=True)
    print(bp.diff(member, [["0F0", "0B0"]]).same, bp.hang("dumps").sentence)
    print(bp.trace(["a.json", "b.json"], schedule=member, progress=print).to_frame())
    print(bp.hand_over(member, "folder", to="torch-2.13").start)
    try:
        print(bp.replay(member, model=lambda: build, progress=print).ok, bp.read("s.json"))
    except bp.Error as error:
        print(error)
    bp.profile(None, "p.toml", ranks=2, microbatches=4).to_frame()
    bp.show(member, window=(0, 5)).save("x.svg")
"""
# Lines 8 and 9 ask; 10 gives what is no Problem; 11 misspells a parameter, and so lacks one.
SEEN = (
    'program.py:8: note: Revealed type is "bubbleproof.report.solved_result.SolvedResult"',
    'program.py:9: note: Revealed type is "def (',
    "program.py:10: error: Incompatible types in assignment",
    'program.py:11: error: Unexpected keyword argument "num_rank" for "Pipeline"',
)
LINKS = {f"bubbleproof/{room}": f"../{room}" for room in BESIDE} | {
    "src/bubbleproof": "../bubbleproof"
}
INSTALLS = ("clone", "editable", "wheel")


def run(*words: str, cwd: Path) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def checkout(folder: Path, *, links: bool) -> Path:
    """What git would check out of the files it tracks here, as they are now."""
    names = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    kept = ("bubbleproof/", "src/", *(f"{room}/" for room in BESIDE))
    for name in names:
        if name.startswith(kept) or name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            target, source = folder / name, ROOT / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink() and not links:
                target.write_text(str(source.readlink()), encoding="utf-8")
            else:
                shutil.copy(source, target, follow_symlinks=False)
    return folder


def built(sources: Path, target: Path, kind: str = "wheel") -> Path:
    """The wheel of a checkout, by the backend that pip calls."""
    pytest.importorskip("setuptools", minversion="77", reason="the wheel cannot be built")
    code = f"from setuptools import build_meta; build_meta.build_{kind}({str(target)!r})"
    target.mkdir()
    run(sys.executable, "-c", code, cwd=sources)
    (wheel,) = target.glob("*.whl")
    return wheel


def contents(wheel: Path) -> dict[str, str]:
    """The digest of each file of the package in a wheel."""
    with ZipFile(wheel) as packed:
        names = [name for name in packed.namelist() if name.startswith("bubbleproof/")]
        return {name: sha256(packed.read(name)).hexdigest() for name in names}


def environment(folder: Path, wheel: Path | None) -> Path:
    """The Python of an environment of its own: a wheel unpacked in it, and no checkout in sight.

    It sees the libraries of this one, but not its package: what installed that stands in a
    ``.pth``, and none is read from a folder that a ``.pth`` names.
    """
    run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=folder.parent)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    if wheel is not None:
        with ZipFile(wheel) as packed:
            packed.extractall(packages)
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with links."""
    return checkout(tmp_path_factory.mktemp("linked"), links=True)


def program(install: str, sources: Path, folder: Path) -> tuple[Path, Path]:
    """A Python with this kind of install, and the folder where a user's program stands."""
    if install == "clone":
        return environment(folder / "env", None), sources
    wheel = built(sources, folder / "dist", install)
    (folder / "user").mkdir()
    return environment(folder / "env", wheel), folder / "user"


def test_the_links_of_a_checkout_are_these() -> None:
    lines = run("git", "ls-files", "--stage", cwd=ROOT).splitlines()
    names = [line.partition("\t")[2] for line in lines if line.startswith("120000")]
    assert {name: (ROOT / name).readlink().as_posix() for name in names} == LINKS


def told(python: Path, here: Path, *words: str, program: str = USER) -> list[str]:
    """What mypy says of a user's program, whatever it finds right."""
    (here / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        (str(python), "-m", "mypy", "--strict", "--config-file=", *words, "program.py"),
        cwd=here, capture_output=True, text=True, check=False, timeout=sized(1, full=4) * PATIENCE,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("program.py:")]


@pytest.mark.parametrize("install", INSTALLS)
def test_a_type_checker_finds_the_rooms(install: str, linked: Path, tmp_path: Path) -> None:
    lines = told(*program(install, linked, tmp_path), "--follow-imports=skip")
    assert [line for line in lines if "[import" in line] == []


def test_a_room_that_is_not_found_is_told(tmp_path: Path) -> None:
    # Python itself finds it: by setuptools' finder, which no tool can follow.
    plain = checkout(tmp_path / "tree", links=False)
    lines = told(*program("editable", plain, tmp_path), "--follow-imports=skip")
    assert {line.split(":")[1] for line in lines if "[import" in line} >= {"2", "3"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where mypy keeps what it knows of the libraries."""
    return f"--cache-dir={tmp_path_factory.mktemp('cache')}"


def test_the_program_with_every_name_has_them_all() -> None:
    assert [name for name in bp.__all__ if f"bp.{name}" not in EVERY_NAME] == []


@pytest.mark.sweep
@pytest.mark.parametrize("install", sized((), full=INSTALLS))
def test_a_type_checker_types_the_rooms(
    install: str, linked: Path, tmp_path: Path, cache: str
) -> None:
    where = program(install, linked, tmp_path)
    assert told(*where, cache, program=EVERY_NAME) == []
    lines = told(*where, cache)
    assert [begin for begin in SEEN if not any(line.startswith(begin) for line in lines)] == []
    assert {line.split(":")[1] for line in lines if ": error:" in line} == {"10", "11"}


@pytest.mark.parametrize("install", ["editable", "wheel"])
@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_an_install_has_one_name_for_a_room(install: str, links: bool, tmp_path: Path) -> None:
    python, here = program(install, checkout(tmp_path / "tree", links=links), tmp_path)
    names = [f"bubbleproof.{room}" for room in BESIDE]
    code = f"""
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
for name in {names}:
    print(Path(import_module(name).__file__).resolve())
print([name for name in {(*BESIDE, "benchmarks", "proofs_tests", "setup")} if find_spec(name)])
"""
    *files, others = run(str(python), "-c", code, cwd=here).splitlines()
    home = tmp_path / ("tree" if install == "editable" else "env")
    assert all(Path(file).is_relative_to(home.resolve()) for file in files)
    assert others == "[]"


def test_a_checkout_without_links_gives_the_same_wheel(linked: Path, tmp_path: Path) -> None:
    plain = checkout(tmp_path / "plain", links=False)
    assert all((plain / name).is_file() for name in LINKS)
    wheel = contents(built(plain, tmp_path / "from-plain"))
    assert wheel == contents(built(linked, tmp_path / "from-linked"))
    tracked = {path.relative_to(plain).as_posix() for path in plain.rglob("*.py")} - {"setup.py"}
    tracked = {name for name in tracked if not name.startswith("build/")}
    expected = {
        name if name.startswith("bubbleproof/") else f"bubbleproof/{name}" for name in tracked
    }
    assert {name for name in wheel if name.endswith(".py")} == expected
