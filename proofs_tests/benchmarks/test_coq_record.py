"""The record of the proofs: which bound is raised, and that a command's failure is not recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.coq_record import raised, said, theorems

THEOREM = """\
Theorem takes : within rows 0 248.
Proof. reflexivity. Qed.

Theorem least : forall others first last,
  248 <= last - first.
Proof. reflexivity. Qed.
"""


def test_the_bound_alone_is_raised() -> None:
    assert raised(THEOREM) == THEOREM.replace("248 <=", "249 <=")
    plan = "Theorem all : Plans.every_candidate_takes space bundle 98.\n"
    assert raised(plan) == plan.replace("98", "99")
    with pytest.raises(ValueError, match="found 0"):
        raised("Theorem none : True.")


def test_theorems_are_told_without_their_proofs() -> None:
    assert theorems(THEOREM) == [
        "Theorem takes : within rows 0 248.",
        "Theorem least : forall others first last,\n  248 <= last - first.",
    ]


def test_what_ends_with_another_status_is_no_record(tmp_path: Path) -> None:
    assert said(["sh", "-c", "echo seen; exit 1"], tmp_path, status=1) == "seen\n"
    with pytest.raises(ChildProcessError, match="ended with 1: seen"):
        said(["sh", "-c", "echo seen; exit 1"], tmp_path)
