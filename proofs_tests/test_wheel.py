"""The wheel holds the package whole, and runs what the README and the notebooks show.

``make wheel-test`` does the same in an environment of its own, where nothing else was installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

from proofs_tests.patience import PATIENCE
from proofs_tests.structure import BESIDE

ROOT = Path(__file__).parents[1]
SOURCES = ("bubbleproof", "src", *BESIDE, "setup.py", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents of a wheel, built from a copy of the sources and unpacked."""
    pytest.importorskip("setuptools", minversion="77", reason="the wheel cannot be built")
    sources, target = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, sources / name, symlinks=True, ignore=skipped)
        else:
            shutil.copy(ROOT / name, sources)
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(target)!r})"
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=sources,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    (wheel,) = target.glob("*.whl")
    with ZipFile(wheel) as packed:
        packed.extractall(target)
    return target


def test_the_wheel_holds_every_file_of_the_package(unpacked: Path) -> None:
    def files(root: Path) -> set[Path]:
        found = {path.relative_to(root) for path in root.rglob("*.*")}
        return {path for path in found if path.suffix != ".pyc" and path.name != "__pycache__"}

    beside = {Path(room) / path for room in BESIDE for path in files(ROOT / room)}
    assert files(unpacked / "bubbleproof") == files(ROOT / "bubbleproof") | beside
    assert {path.name for path in unpacked.iterdir() if path.is_dir()} == {
        "bubbleproof",
        f"bubbleproof-{version('bubbleproof')}.dist-info",
    }


@pytest.mark.torch
def test_the_readme_and_the_notebooks_run_on_the_wheel(unpacked: Path) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "examples").glob("*/*.ipynb"))]
    code = "import bubbleproof; print(bubbleproof.__file__)"
    script = [ROOT / "proofs_tests" / "shown.py", *pages]
    for words, expected in (
        (["-c", code], f"{unpacked / 'bubbleproof' / '__init__.py'}\n"),
        (script, ""),  # no difference
    ):
        done = subprocess.run(
            [sys.executable, "-P", *words],
            cwd=unpacked,
            env={**os.environ, "PYTHONPATH": str(unpacked)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
