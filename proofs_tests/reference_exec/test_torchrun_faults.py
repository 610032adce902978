"""A process that ends before its time ends all others, and one line says which one it was."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from proofs_tests.patience import PATIENCE
from proofs_tests.reference_exec.launched import (
    Launched,
    Start,
    free_port,
    launched,
    variables,
    wait_for,
)
from proofs_tests.reference_exec.processes import HAS_PROC, outlive
from proofs_tests.sized import sized

WORDS = ("1f1b", "p=2", "m=2", "--model", f"{Path(__file__).parent / 'troubled.py'}:model")


def starts(folder: Path, trouble: str, words: tuple[str, ...] = WORDS) -> list[Start]:
    port = free_port()
    more = {"TROUBLE": trouble, "REACHED": str(folder / "reached")}
    return [Start(words=words, variables=variables(rank, 2, port, **more)) for rank in (0, 1)]


def ended_by(folder: Path, trouble: str, strike: Callable[[Launched], None]) -> Launched:
    """Two ranks of which the second meets trouble; then they are struck."""
    with launched(folder, starts(folder, trouble)) as two:
        wait_for(folder / "reached", two)
        strike(two)
        assert None not in two.statuses()
        return two


def lines(said: str) -> list[str]:
    """What was printed, without what torch's own threads may say of closed connections."""
    return [line for line in said.splitlines() if not line.startswith("[")]


TROUBLES = [
    (
        "raises",
        "gloo replay ended: rank 1 failed: model stage 1 failed in F: RuntimeError: no luck today",
    ),
    ("leaves", "gloo replay ended: rank 1 died"),
    ("exits", "gloo replay ended: rank 1 failed: SystemExit: 0"),
]
STRIKES = [
    (0, signal.SIGKILL, "rank 0 died"),
    (1, signal.SIGTERM, "rank 1 ended by SIGTERM"),
    (1, signal.SIGKILL, "rank 1 died"),
    (0, signal.SIGTERM, "rank 0 ended by SIGTERM"),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("trouble", "text"), sized(TROUBLES[:2], full=TROUBLES))
def test_a_rank_that_ends_by_itself_ends_the_others(
    trouble: str, text: str, tmp_path: Path
) -> None:
    two = ended_by(tmp_path, trouble, lambda _: None)
    assert lines(two.errors(0)) == [text]
    assert two.errors(1) == two.output(1) == ""  # one line on each node
    assert two.statuses() == [1, 0 if trouble == "leaves" else 1]


@pytest.mark.sweep
@pytest.mark.parametrize(("number", "signal_", "text"), sized(STRIKES[:2], full=STRIKES))
def test_a_rank_that_is_struck_ends_the_others(
    number: int, signal_: signal.Signals, text: str, tmp_path: Path
) -> None:
    two = ended_by(tmp_path, "waits", lambda two: two.strike(signal_, number))
    said = lines(two.errors(0)) + lines(two.errors(1))
    assert said == [f"gloo replay ended: {text}"]
    struck = -signal.SIGKILL if signal_ is signal.SIGKILL else 1
    assert two.statuses() == [struck if rank == number else 1 for rank in (0, 1)]


def test_a_rank_that_hangs_is_named(tmp_path: Path) -> None:
    with launched(tmp_path, starts(tmp_path, "waits", (*WORDS, "--timeout", "1", "--json"))) as two:
        wait_for(tmp_path / "reached", two)
        two.strike(signal.SIGSTOP, 1)
        two.processes[0].join(PATIENCE)
        told = json.loads(two.output(0))
    assert told["ok"] is False
    (text,) = told["failures"]
    assert text.startswith("gloo replay ended: rank 0 stalled: ")
    assert text.endswith("; rank 1 gave no report")
    assert two.processes[0].exitcode == 1


def test_ctrl_c_ends_all_with_one_line(tmp_path: Path) -> None:
    two = ended_by(tmp_path, "waits", lambda two: two.strike(signal.SIGINT))
    assert lines(two.errors(0)) + lines(two.errors(1)) == ["bubbleproof: interrupted"]
    assert two.statuses() == [130, 130]


def under_an_agent() -> None:
    """Go on as the child of a process that only waits for it, as of a torchrun."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    Path(f"{os.environ['REACHED']}.{os.environ['RANK']}").write_text(str(os.getpid()))


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc to know which processes there are")
@pytest.mark.sweep
@pytest.mark.parametrize("number", sized([1], full=[1, 0]))
def test_the_ranks_of_an_agent_that_is_killed_end_and_are_named(
    number: int, tmp_path: Path
) -> None:
    two = [
        replace(
            start,
            variables={**start.variables, "TORCHELASTIC_RUN_ID": "none", "GROUP_RANK": str(node)},
            setup=under_an_agent,
        )
        for node, start in enumerate(starts(tmp_path, "waits"))
    ]
    with launched(tmp_path, two) as agents:
        wait_for(tmp_path / "reached", agents)
        ranks = {int((tmp_path / f"reached.{rank}").read_text()) for rank in (0, 1)}
        agents.strike(signal.SIGKILL, number)
        assert outlive(ranks, PATIENCE) == set()
        statuses = agents.statuses()
    assert statuses == [-signal.SIGKILL if n == number else 1 for n in (0, 1)]
    where = f"rank {number} on node {number} ({socket.gethostname()})"
    for rank in (0, 1):  # a line on each node
        assert lines(agents.errors(rank)) == [
            f"gloo replay ended: {where} lost torchrun, which has ended"
        ]
