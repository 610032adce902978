"""The package without a wing: an install of a checkout without ``papers/`` works and says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from bubbleproof.former_names import MOVED, FormerNameWarning
from proofs_tests.patience import PATIENCE
from proofs_tests.structure import ROOT
from proofs_tests.test_tools_see import built, checkout, environment

MESH = """
ranks = 3
microbatches = 12
[durations]
forward = 60
backward = 120
[memory]
activation = 24
capacity = 400
static = 200
[plan]
chunks = [6]
[paper.pipemesh]
parameters = 25
replicas = 3
communication = 300
"""
LACKING = "needs bubbleproof.papers, which this installation has not"
NO_ENTRY = "pip install . (or -e .) in a checkout"


class Installed:
    """A Python with a package, and a folder of its own to call it in."""

    def __init__(self, python: Path, folder: Path, begin: str = "") -> None:
        self.python, self.folder, self.begin = python, folder, begin

    def python_says(self, code: str) -> tuple[int, str, str]:
        """Status, output and errors of a program."""
        return self._done("-c", f"{self.begin}import sys; {code}")

    def command(self, *words: str) -> tuple[int, str, str]:
        """Those of a command line."""
        return self.python_says(
            f"sys.argv = {['bubbleproof', *words]}; from bubbleproof.__main__ import main; main()"
        )

    def _done(self, *words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            (str(self.python), "-I", *words),
            cwd=self.folder, capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr


def wingless(folder: Path) -> Path:
    """A checkout without the folder of the papers and its link."""
    sources = checkout(folder, links=True)
    shutil.rmtree(sources / "papers")
    (sources / "bubbleproof" / "papers").unlink()
    return sources


@pytest.fixture(scope="module", params=["wheel", "editable"])
def core(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An install of such a checkout."""
    folder = tmp_path_factory.mktemp("core")
    wheel = built(wingless(folder / "tree"), folder / "dist", request.param)
    (folder / "user").mkdir()
    return Installed(environment(folder / "env", wheel), folder / "user")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """This checkout, papers and all, as if nobody had installed it: no entry point is found."""
    hide = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import importlib.metadata
def none(name):
    raise importlib.metadata.PackageNotFoundError(name)
importlib.metadata.distribution = none
"""
    return Installed(Path(sys.executable), tmp_path_factory.mktemp("clone"), hide)


@pytest.fixture(scope="module")
def meshed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan made with ``--paper``, where the papers are."""
    folder = tmp_path_factory.mktemp("meshed")
    (folder / "mesh.toml").write_text(MESH)
    words = ("plan", "mesh.toml", "--paper", "pipemesh", "--work", "1", "-o", "mesh")
    status, _, said = Installed(Path(sys.executable), folder).command(*words)
    assert status == 0, said
    return folder


def one_line(said: tuple[int, str, str], *words: str) -> None:
    """That a command was refused in one line, which has the words."""
    status, out, err = said
    assert (status, out, err.count("\n")) == (2, "", 1), said
    assert all(word in err for word in words), err


def test_the_core_is_whole_without_papers(core: Installed, meshed: Path) -> None:
    status, out, _ = core.command("--help")
    assert status == 0
    assert "convert" in out
    assert "claims" not in out
    example = str(ROOT / "examples" / "researcher" / "plan.toml")
    for words in (
        ("measure", "1f1b", "p=4", "m=8"),
        ("verify", "1f1b", "p=4", "m=8"),
        ("solve", str(ROOT / "examples" / "researcher" / "split-backward.toml"), "--work", "1"),
        ("plan", example, "--work", "1", "-o", "planned", "--certificate", "planned.json"),
        ("verify", "planned", "--certificate", "planned.json"),
        ("plan", str(meshed / "mesh.toml"), "--work", "1"),  # its [paper.pipemesh] is not looked at
    ):
        status, _, err = core.command(*words)
        assert status in (0, 3), (words, err)
        assert "Traceback" not in err
    code = "import bubbleproof as bp; print(len(bp.families()), hasattr(bp, 'claims'), *dir(bp))"
    status, out, err = core.python_says(code)
    count, has_claims, *names = out.split()
    assert (status, int(count) > 20, has_claims) == (0, True, "False"), err
    assert {"solve", "plan"} <= {*names}
    assert not {"claim", "claims", "prove"} & {*names}


def test_what_papers_give_is_missed_in_one_line(core: Installed, meshed: Path) -> None:
    one_line(core.command("claims", "--paper", "bpipe"), f"claims {LACKING}")
    one_line(core.command("prove", "1f1b"), f"prove {LACKING}")
    asked = ("--paper", "bpipe", "--work", "1")
    for name in ("researcher/plan.toml", "cluster/llama-13b-64xA100.toml"):
        said = core.command("plan", str(ROOT / "examples" / name), *asked)
        one_line(said, f"plan --paper {LACKING}")
    plan = str(meshed / "mesh")
    one_line(core.command("verify", plan), "pipeline 'pipemesh'", LACKING)
    status, _, err = core.python_says(f"import bubbleproof as bp; bp.check(bp.read({plan!r}))")
    assert status == 1
    assert LACKING in err.splitlines()[-1]
    status, _, err = core.python_says("import bubbleproof as bp; bp.claims")
    assert (status, err.splitlines()[-1]) == (1, f"AttributeError: bubbleproof.claims {LACKING}")


def test_a_checkout_that_nobody_installed_says_how_wings_are_found(
    clone: Installed, meshed: Path
) -> None:
    assert clone.command("verify", "1f1b", "p=2", "m=2")[0] == 0
    one_line(clone.command("claims"), "'claims'", NO_ENTRY)
    one_line(clone.command("verify", str(meshed / "mesh")), "pipeline 'pipemesh'", NO_ENTRY)
    status, _, err = clone.python_says("import bubbleproof as bp; bp.claims")
    assert status == 1
    assert NO_ENTRY in err.splitlines()[-1]


def test_every_former_name_gives_the_module_and_warns() -> None:
    for old, new in MOVED.items():
        assert find_spec(f"bubbleproof.{new}") is not None
        with pytest.warns(FormerNameWarning, match=f"bubbleproof.{old} is bubbleproof.{new} now"):
            found = import_module(f"bubbleproof.{old}")
        assert found is import_module(f"bubbleproof.{new}")
        assert found.__spec__ is not None
        assert found.__spec__.name == f"bubbleproof.{new}"
        del sys.modules[f"bubbleproof.{old}"]
