"""Cards: what their files say, and names that are not there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bubbleproof.costs.times.calibration import Calibration, uncalibrated
from bubbleproof.costs.times.card_files import FOLDER, card, card_of, cards
from bubbleproof.costs.times.constants import CONSTANTS, NAMES, require_constants, starts
from bubbleproof.costs.times.profiles import software
from bubbleproof.formats.clusters.hardware_toml import FORMER, hardware_text, read_hardware
from bubbleproof.formats.errors import UnusableInput

# Dense 16-bit TFLOP/s, GiB, and GB/s of memory, read from the data sheets again for this test.
SHEETS = {
    "v100": (125, 32, 900), "a10": (125, 24, 600), "a100-40gb": (312, 40, 1555),
    "a100-80gb": (312, 80, 2039), "h100": (989.4, 80, 3350), "h200": (989.4, 141, 4800),
    "b200": (2250, 180, 7700), "rtx-4090": (165.2, 24, 1008), "rtx-3090": (71, 24, 936),
    "gb200": (2450, 186, 8000), "gb300": (2500, 279, 8000), "h800": (989.4, 80, 3350),
    "h20": (148, 96, 4000), "l40s": (362.05, 48, 864), "mi300x": (1307.4, 192, 5300),
}  # fmt: skip


def test_the_cards_are_those_of_the_data_sheets() -> None:
    found = {n: (c.half_tflops, c.memory_gib, c.memory_gbs) for n, c in cards().items()}
    assert found == SHEETS
    assert card("A100-80GB").memory_bytes == 80 * 2**30
    for name in cards():
        assert (FOLDER / f"{name}.toml").read_text().startswith(("# NVIDIA", "# AMD"))  # its source


def test_an_unknown_card_has_nearest_names() -> None:
    with pytest.raises(ValueError, match="no card 'a100'; the nearest are a100-"):
        card("a100")


def test_a_card_of_wrong_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="card b200: memory_gbs must be above 0, got -1"):
        replace(card("b200"), memory_gbs=-1)
    with pytest.raises(ValueError, match="reached must be above 0"):
        replace(card("b200"), reached=-0.5)
    with pytest.raises(ValueError, match="tflops needs bf16 or fp16"):
        replace(card("b200"), tflops={"fp8": 1.0})
    text = (FOLDER / "b200.toml").read_text().replace("link_gbs", "links")
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(ValueError, match="differs in link"):
        card_of("x", tmp_path / "x.toml")


def test_constants_have_a_meaning_a_unit_and_a_number() -> None:
    assert len(CONSTANTS) <= 36
    assert tuple(each.name for each in CONSTANTS) == NAMES
    for each in cards().values():
        require_constants(starts(each))
    assert all(each.meaning and each.unit for each in CONSTANTS)


def test_hardware_is_read_as_it_was_written(tmp_path: Path) -> None:
    begun = replace(uncalibrated(card("h100")), fitted=("matmul",), rows=9, scope_many_nodes="full")
    path = tmp_path / "x.toml"
    path.write_text(hardware_text(begun, "a note\nof two lines"))
    again = read_hardware(path)
    assert again.constants == pytest.approx(begun.constants)
    assert replace(again, constants=begun.constants) == begun


def test_a_file_of_another_version_is_read_with_the_starts_of_what_it_lacks(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hardware.toml"
    lines = hardware_text(uncalibrated(card("h200")), "").splitlines()
    old = [line for line in lines if not line.startswith(("fp8", "exposed_tensor"))]
    assert len(lines) - len(old) == 2
    former = [f"{name} = {{ value = 100.0 }}" for name in FORMER]
    path.write_text("\n".join([*old, *former]), "utf-8")
    found = read_hardware(path).constants
    assert found == pytest.approx(starts(card("h200")), rel=1e-3)  # a file has four digits
    path.write_text("\n".join([*old, "odds = { value = 1.0 }"]), "utf-8")
    with pytest.raises(UnusableInput, match="no constant 'odds'; the nearest are odd"):
        read_hardware(path)


def test_constants_of_one_software_are_not_those_of_another() -> None:
    """Fitted ones are as far from their start on other cards; other software has its own starts."""
    begun, runs = card("h100"), software("megatron-core-overlapped")
    fitted = starts(begun, runs) | {"memory": 2 * starts(begun, runs)["memory"]}
    by = Calibration(card=begun, constants=fitted, fitted=("memory",), software=(runs.name,))
    assert by.constants_of(begun, runs) == pytest.approx(fitted)
    other = card("h200")
    twice = 2 * starts(other, runs)["memory"]
    assert by.constants_of(other, runs)["memory"] == pytest.approx(twice)
    core = software("megatron-core")
    assert by.constants_of(begun, core) == starts(begun, core)


def test_a_card_without_measured_rows_is_its_data_sheet() -> None:
    assert read_hardware("h200") == uncalibrated(card("h200"))
    assert read_hardware("a100-80gb").rows == 532
    with pytest.raises(UnusableInput, match="hardware: expected a known card"):
        read_hardware("none")
