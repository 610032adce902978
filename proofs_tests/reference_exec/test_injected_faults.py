"""Faults in the executor are seen, each of them; and the sweep knows one that is missed."""

from __future__ import annotations

import pytest

from proofs_tests.reference_exec import hoarding, injected_faults
from proofs_tests.reference_exec.fault_cases import CASES
from proofs_tests.reference_exec.injected_faults import INJECTED, Injected, Marks, sweep
from proofs_tests.sized import sized

# what is kept too long is in ``test_hoarding`` too
QUICK = [f for f in INJECTED if "1f1b" in f.case and f.patch.__module__ != hoarding.__name__]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "fault", sized(QUICK, full=INJECTED),
    ids=lambda fault: fault.name,
)  # fmt: skip
def test_a_fault_is_seen(fault: Injected) -> None:
    assert fault.run()


def test_there_are_thirty_kinds_and_more() -> None:
    assert len({fault.patch for fault in INJECTED}) >= 50
    assert len({fault.name for fault in INJECTED}) == len(INJECTED)
    assert {fault.case for fault in INJECTED} == {*CASES}


def _harmless(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    del patch
    marks.append("ran")


def _unreached(patch: pytest.MonkeyPatch, marks: Marks) -> None:
    del patch, marks


def test_a_sweep_tells_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    fault = Injected(patch=_harmless, case="1f1b")
    monkeypatch.setattr(injected_faults, "INJECTED", (fault,))
    swept = sweep(told.append)
    assert (swept.injected, swept.seen, swept.clean) == (1, 0, 1)
    assert swept.missed == ("_harmless on 1f1b",)
    assert told == ["_harmless on 1f1b: MISSED"]
    assert str(swept) == "1 faults injected, 0 seen, 1 missed; 1 cases without a fault replay"


def test_a_fault_that_never_ran_is_no_fault() -> None:
    with pytest.raises(RuntimeError, match="_unreached on 1f1b was not injected"):
        Injected(patch=_unreached, case="1f1b").run()
