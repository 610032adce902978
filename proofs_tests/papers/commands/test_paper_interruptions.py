"""Ctrl-C while claims are decided and theorems proved: what was found is printed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence

import pytest

from bubbleproof.papers.audit.audit import Outcomes, Shard
from bubbleproof.parallel import run_all
from proofs_tests.commands.test_interruptions import answer, interrupting
from proofs_tests.own_process import run_alone
from proofs_tests.sized import sized


def interrupted_claims_at_once() -> None:
    from bubbleproof.papers.audit import audit

    vars(audit)["run_all"] = interrupting(run_all, 1)
    status, out = answer("claims", "--audit", "--quick", "--workers", "1", "--paper", "bpipe")
    assert status == 130
    assert "is decided yet" in out
    assert out.count("\n") == 1


def interrupted_prove() -> None:
    from bubbleproof.papers.theorems import prover

    prover.prove_obligation = interrupting(prover.prove_obligation, 30)
    status, out = answer("prove")
    assert status == 130
    assert "proved" in out


def first_alone(
    _: object,
    work: Callable[[Shard], Outcomes],
    shards: Sequence[Shard],
    *,
    on_done: Callable[[int, Outcomes], None],
) -> None:
    """``run_all``, interrupted after the first shard."""
    on_done(0, work(shards[0]))
    raise KeyboardInterrupt


def interrupted_claims() -> None:
    """After the first shard: a figure has one case and is decided, Appendix A has 120."""
    from bubbleproof.papers.audit import audit
    from bubbleproof.papers.commands import claims as command
    from bubbleproof.papers.registry import claims

    chosen = {name: claims()[name] for name in ("mepipe.figure-5.memory", "bpipe.appA.mu")}
    vars(command)["claims"] = lambda *_: chosen
    vars(audit)["run_all"] = first_alone
    status, out = answer("claims", "--audit", "--quick", "--workers", "1", "--json")
    assert status == 130
    verdicts = {claim["id"]: claim["verdict"] for claim in json.loads(out)["claims"]}
    assert verdicts["bpipe.appA.mu"] is None
    assert verdicts["mepipe.figure-5.memory"] is not None


@pytest.mark.sweep
@pytest.mark.parametrize(
    "work",
    sized(
        [interrupted_claims],
        full=[interrupted_prove, interrupted_claims, interrupted_claims_at_once],
    ),
)
def test_what_was_found_is_printed(work: Callable[[], None]) -> None:
    run_alone(work)


def z3_takes_it() -> None:
    """A Ctrl-C while Z3 checks cancels the check, and Python hears nothing of it."""
    import threading

    import z3  # type: ignore[import-untyped]  # z3 ships no annotations

    from bubbleproof.papers.theorems import prover
    from bubbleproof.papers.theorems.theorem_library import theorems

    plain = z3.SimpleSolver

    def with_a_hard_query() -> z3.Solver:
        solver = plain()
        a, b, c = z3.Ints("a b c")
        solver.add(a**3 + b**3 + c**3 == 114, a > 10)  # whether there are such is an open question
        solver.from_string = lambda _: None  # the theorem's own query would be over at once
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        return solver

    z3.SimpleSolver = with_a_hard_query
    with pytest.raises(KeyboardInterrupt):
        prover.prove(theorems()["1f1b"], timeout_ms=600_000)


def test_a_ctrl_c_that_z3_takes_is_passed_on() -> None:
    run_alone(z3_takes_it)
