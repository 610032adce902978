"""MEPipe's Table 2: the messages once more by hand."""

from __future__ import annotations

from bubbleproof.papers.mepipe.mepipe_svpp import handed_on


def test_slices_send_parts_of_what_samples_send() -> None:
    # p = 3, n = 3: 2 boundaries, 3 samples, both ways: 12 samples, in 24 halves.
    at = {"p": 3, "m": 3, "v": 1, "s": 2, "tF": 1, "tB": 1}
    assert handed_on("1f1b", at) == handed_on("svpp", at) == 12
