"""Environments with the frameworks' wheels from the package registry, for Python on a CPU.

One environment has torch and what the frameworks import; each framework is unpacked by itself, and
comes first on the path of the script that asks it.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TORCH = "torch==2.13.0"
NEEDED = (
    TORCH, "numpy", "packaging", "pyyaml", "typing_extensions", "einops", "psutil", "tqdm", "tyro",
    "omegaconf", "transformers", "datasets", "torchdata", "spmd_types", "tensorboard", "py-cpuinfo",
    "msgpack", "hjson", "pydantic", "torchao",
)  # fmt: skip


def environment(folder: Path, needed: Sequence[str] = NEEDED) -> Path:
    """The Python of an environment with what the wheels import."""
    python = folder / "env" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "env", with_pip=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", *needed], check=True)
    return python


def unpacked(python: Path, folder: Path, wanted: str) -> Path:
    """Where the packages of such as ``torchtitan==0.3.0`` lie: its wheel, else its source."""
    found = folder / wanted.replace("==", "-")
    if found.exists():
        return next(found.glob("deepspeed-*/"), found)  # a source has a folder of its own
    told = [str(python), "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
    with_wheel = ["--only-binary=:all:", "--python-version", "3.12"]
    with_wheel += ["--platform", "manylinux_2_28_x86_64"]
    for kind in (with_wheel, []):
        target = folder / "files" / wanted
        if not subprocess.run([*told, *kind, "-d", str(target), wanted], check=False).returncode:
            break
    (file,) = target.iterdir()
    if file.suffix == ".whl":
        zipfile.ZipFile(file).extractall(found)
    else:
        with tarfile.open(file) as source:
            source.extractall(found, filter="data")
    return unpacked(python, folder, wanted)


def answers(python: Path, packages: Path, script: str, asked: object) -> Any:
    """What a script of this folder prints last, of what is asked on its standard input."""
    done = subprocess.run(
        [str(python), str(Path(__file__).with_name(f"{script}.py"))],
        input=json.dumps(asked),
        env={
            "PYTHONPATH": str(packages),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": "/usr/bin:/bin",
            "HOME": str(Path.home()),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
