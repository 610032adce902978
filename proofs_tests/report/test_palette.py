"""Colours: told apart by every common colour vision, and readable under text."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from bubbleproof.report.palette import WORDS, fill, luminance, text_on
from bubbleproof.theory.model.actions import Kind

Floats = npt.NDArray[np.float64]

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
VISIONS: dict[str, list[list[float]]] = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
COMPUTE = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R)


def lab(colour: str, vision: str) -> Floats:
    """CIELAB (D65) of ``#rrggbb`` as the vision sees it."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(VISIONS[vision]) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    white = np.array([0.9505, 1.0, 1.089])
    xyz = (np.array(to_xyz) @ seen) / white
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISIONS)
def test_kinds_of_compute_are_told_apart(vision: str) -> None:
    for one, other in combinations(COMPUTE, 2):
        # about 2.3 is just noticeable; areas side by side are easy to tell apart at 10
        far = np.linalg.norm(lab(fill(one), vision) - lab(fill(other), vision))
        assert far > 25, (one, other)
        shades = [lab(fill(k, chunk=1, num_chunks=2), vision) for k in (one, other)]
        assert np.linalg.norm(shades[0] - shades[1]) > 12, (one, other)


def test_text_stands_out_on_every_fill() -> None:
    for kind in Kind:
        for chunk in range(4):
            ground = fill(kind, chunk=chunk, num_chunks=4)
            light, dark = sorted([luminance(ground), luminance(text_on(ground))], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2 level AA


def test_every_kind_has_its_own_colour_and_words() -> None:
    assert len({fill(kind) for kind in Kind}) == len(Kind)
    assert len({WORDS[kind] for kind in Kind}) == len(Kind)


def test_luminance_of_black_and_white() -> None:
    assert luminance("#000000") == 0.0
    assert luminance("#ffffff") == pytest.approx(1.0)
