"""What a rank keeps beyond the model is seen, at the first action after which it should be gone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bubbleproof.reference_exec.broken import BrokenProgram
from proofs_tests.reference_exec import hoarding
from proofs_tests.reference_exec.cases import TINY, family_case, run

WIDE = replace(TINY, hidden=8)
# one token of 8 float64 are 64 bytes, an activation of 3 tokens 192
ACTIVATION = 192


@pytest.mark.parametrize(
    ("hoard", "family", "told"),
    [
        (hoarding.saved_activations, "1f1b", r"rank 0: .* at 0B0 \(action \d+\)"),
        (hoarding.saved_activations, "bpipe", r"beyond them at 0"),
        (hoarding.operands, "zb-h1", r"rank 0: .* beyond them at 0W0"),
        (hoarding.first_forwards, "trecomp", r"rank 0: .* beyond them at 0F0 \(action 0\)"),
        # the tensor on the context is an output's copy
        (hoarding.contexts, "1f1b", rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0F0 "),
        (hoarding.scratch, "1f1b", rf"rank 0: .*: {4 << 20} bytes beyond them at 0F0 \(action 0\)"),
        (hoarding.scratch, "1f1b", rf"; {3 * (4 << 20)} bytes beyond them at 0\w+ \(.*\) at most"),
        (
            hoarding.outputs_in_a_list,
            "zb-h1",
            rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0F0",
        ),
        (hoarding.whole_graphs, "1f1b", r"rank 0: .* beyond them at 0B0"),
        (hoarding.attributes, "1f1b", rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0F0"),
        (hoarding.hooks, "1f1b", rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0B0"),
        (hoarding.storages, "1f1b", rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0F0"),
        (hoarding.arrays, "1f1b", rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0B0"),
        (hoarding.stretched, "1f1b", r"rank 0: .*: 64 bytes beyond them at 0F0 \(action 0\)"),
        (hoarding.stretched, "1f1b", r"rank 0: .*; 192 bytes beyond them at 0\w+ \(.*\) at most"),
        (hoarding.swapped, "1f1b", r"rank 0: .*: \d+ bytes beyond them at 0F0 \(action 0\)"),
        (hoarding.swollen, "1f1b", r"rank 0: .*: 64 bytes beyond them at 0F0 \(action 0\)"),
        (hoarding.received, "1f1b", rf"rank 0: .*: {ACTIVATION} bytes beyond them at 0\w+ "),
        (hoarding.sent, "1f1b", rf"rank 1: .*: {ACTIVATION} bytes beyond them at 1B1"),
    ],
    ids=lambda value: getattr(value, "__name__", None) if callable(value) else None,
)
def test_what_is_kept_is_seen_and_named(
    hoard: hoarding.Hoard, family: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = family_case(family, p=4, m=6) if family == "bpipe" else family_case(family, p=2, m=3)
    assert run(case, WIDE).ok
    kept: hoarding.Kept = []
    hoard(monkeypatch, kept)
    report = run(case, WIDE)
    assert kept, "the fault was not injected"
    assert report.gradients_equal
    assert report.losses_equal
    assert not report.ok
    assert any(re.search(told, failure) for failure in report.failures), report.failures
    kept.clear()


def test_what_is_hidden_from_the_collector_ends_the_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    hoarding.frozen(monkeypatch, [])
    why = r"^rank 0, action 0: gc\.freeze\(\) or the like hid what was made"
    with pytest.raises(BrokenProgram, match=why):
        run(family_case("1f1b", p=2, m=3), WIDE)
    assert run(family_case("1f1b", p=2, m=3), WIDE, count_bytes=False).ok
