"""``make proofs``: its table, and its status where Coq refuses a file or names an axiom.

In place of coqc and coqchk stand programs of three lines, so nothing is proved here
(``test_coq_proofs.py`` has Coq compile the same files).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from proofs_tests.coq import FILES, PROOFS, THEOREM, text_of

CLOSED = "Closed under the global context"
ANSWER = 'for last; do :; done; for line in $(sed -n "s/^Print Assumptions.*/x/p" $last)'
COQC = f'#!/bin/sh\n{ANSWER}; do echo "{CLOSED}"; done\n'
CHECKED = "#!/bin/sh\necho '* Axioms: <none>' >&2\n"
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def made(folder: Path, coqc: str, coqchk: str) -> subprocess.CompletedProcess[str]:
    """``make proofs`` with these programs for Coq's."""
    for name, text in (("coqc", coqc), ("coqchk", coqchk)):
        (folder / name).write_text(text, "utf-8")
        (folder / name).chmod(0o755)
    return subprocess.run(
        ["make", "-s", "-C", str(PROOFS), f"BUILD={folder / 'build'}"],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


@needs_make
def test_each_file_has_its_lines_theorems_and_seconds(tmp_path: Path) -> None:
    done = made(tmp_path, COQC, CHECKED)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\w+)(?:\.v)? +(\d+) +(\d+) +\d+\.\d$", done.stdout, re.MULTILINE)
    counts = {name: (int(lines), int(found)) for name, lines, found in rows}
    of_all = counts.pop("all")
    for file in FILES:
        text = text_of(file)
        assert counts[file[:-2]] == (text.count("\n"), len(THEOREM.findall(text)))
    assert of_all == tuple(map(sum, zip(*counts.values(), strict=True)))
    assert f"axioms: none under all {of_all[1]} theorems" in done.stdout
    assert "* Axioms: <none>" in done.stdout


@needs_make
@pytest.mark.parametrize(
    ("coqc", "coqchk"),
    [
        (COQC.replace(CLOSED, "Axioms: no : False"), CHECKED),
        (COQC, CHECKED.replace("<none>", "no")),
        ("#!/bin/sh\nexit 1\n", CHECKED),
        (COQC, "#!/bin/sh\nexit 1\n"),
    ],
)
def test_an_axiom_or_a_refusal_ends_it_with_an_error(
    tmp_path: Path, coqc: str, coqchk: str
) -> None:
    assert made(tmp_path, coqc, coqchk).returncode != 0


@needs_make
@pytest.mark.parametrize(("ends", "status"), [("exit 0", 0), ("exit 1", 2)])
def test_the_orders_are_made_and_then_compared(tmp_path: Path, ends: str, status: int) -> None:
    """With programs of a line for Coq's, OCaml's and ours; what is compiled is compiled once."""
    build = tmp_path / "build"
    for name, does in (
        ("coqc", 'for last; do :; done; touch "${last}o"; echo compiled $last'),
        ("ocamlopt", "exit 0"),
        ("python", f'echo "compared $@"; {ends}'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n", "utf-8")
        (tmp_path / name).chmod(0o755)
    command = ["make", "-s", "-C", str(PROOFS), "orders", f"BUILD={build}", "PYTHON=python"]
    compiled = []
    for _ in range(2):
        done = subprocess.run(
            command,
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        compared = f"compared -m proofs_tests.extracted.orders_page --program {build}/orders\n"
        assert done.stdout.endswith(compared)
        compiled.append(done.stdout.count("compiled"))
    assert compiled[0] > compiled[1] == 0


@needs_make
def test_without_coq_it_says_so(tmp_path: Path) -> None:
    for name in ("make", "sh"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for target in ("all", "checker", "orders"):
        done = subprocess.run(
            ["make", "-s", "-C", str(PROOFS), target, f"BUILD={tmp_path / 'build'}"],
            env={"PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0
        assert done.stdout.startswith("coqc is not installed, so ")
