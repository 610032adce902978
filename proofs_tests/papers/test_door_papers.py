"""The papers' names at the door: what they take, refuse and say, and Ctrl-C."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

import bubbleproof as bp
from bubbleproof.facts import FactSource
from bubbleproof.papers.planning.unmet import UnmetPremiseError
from proofs_tests.own_process import run_alone
from proofs_tests.structure import run_by
from proofs_tests.test_door import WRONG, has_sections
from proofs_tests.test_door_interrupted import after, found_by, press
from proofs_tests.test_door_results import every_form
from proofs_tests.test_pickling import own_errors


def a_proof_is_interrupted() -> None:
    from bubbleproof.papers.theorems import prover

    vars(prover)["prove_obligation"] = after(2)(vars(prover)["prove_obligation"])
    assert found_by(lambda: bp.prove("1f1b")) is None


def a_claim_is_interrupted() -> None:
    def made(p: int, m: int) -> object:
        press()
        return bp.family("1f1b")(p=p, m=m)

    domain = {"p": range(2, 4), "m": range(1, 4)}
    found = found_by(lambda: bp.claim(made, "makespan == 1", where=None, **domain))
    assert found is None


@pytest.mark.parametrize("work", [a_proof_is_interrupted, a_claim_is_interrupted])
def test_ctrl_c_ends_the_call(work: Callable[[], None]) -> None:
    run_alone(work)


def test_the_names_do_what_they_say() -> None:
    assert bp.prove("1f1b").verdict.name == "PROVED"
    assert "bpipe.mu" in bp.claims("bpipe")


RESULTS: list[Callable[[], FactSource]] = [
    lambda: bp.prove("1f1b"),
    lambda: bp.claim("1f1b", "peak_activations <= p", p=range(2, 4), m=range(1, 4)),
    lambda: bp.claim("1f1b", "peak_activations == p", p=range(2, 4), m=range(1, 4)),
]


@pytest.mark.parametrize("call", RESULTS)
def test_a_result_has_every_form_and_travels(call: Callable[[], FactSource]) -> None:
    every_form(found := call())
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("name", ["claim", "claims", "prove"])
def test_a_name_is_a_documented_door_function_and_listed(name: str) -> None:
    has_sections(name)
    assert getattr(bp, name).__code__.co_filename.endswith("arguments.py")
    assert name in dir(bp)
    assert name not in bp.__all__


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("name", ["prove", "claims"])
def test_what_is_no_name_is_refused_in_one_line(name: str, value: object) -> None:
    if value is None and name == "claims":
        return  # which means all of them
    with pytest.raises((TypeError, ValueError)) as caught:
        getattr(bp, name)(value)
    assert any(word in str(caught.value) for word in ("text", "theorem", "paper", "claims"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: bp.claims(paper="bpip"), "(did you mean 'bpipe'?)"),
        (lambda: bp.claims("pipemash"), "(did you mean 'pipemesh'?)"),
        (lambda: bp.prove("1f1v"), "(did you mean '1f1b'?)"),
        (lambda: bp.prove("gpip"), "(did you mean 'gpipe'?)"),
        (lambda: bp.prove("x"), "no theorem 'x'; the theorems are"),
        (
            lambda: bp.prove("gpipe", timeout="x"),
            "prove: timeout must be a number of seconds, got str 'x'",
        ),
        (lambda: bp.clams, "has no 'clams' (did you mean 'claims'?)"),
    ],
)
def test_what_is_wrong_is_told_with_the_nearest(call: Callable[[], object], told: str) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError)) as caught:
        call()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.torch
def test_errors_travel_between_processes() -> None:
    error = UnmetPremiseError("section II-A", "needs layers for every rank", "84 layers")
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found)) == (type(error), str(error))
    assert own_errors(is_of_papers=True) == {UnmetPremiseError}


def test_a_package_in_which_a_module_lies_is_run_by_importing_it() -> None:
    assert "papers.claims" in run_by("papers.tpipe.tpipe_schedules")  # where claims.domain lies
