"""Profiles: the right moments are subtracted, and bytes are those of the closed form."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubbleproof.reference_exec.evidence.profiling import profile_stages
from bubbleproof.reference_exec.models.footprint import footprint, weight_bytes
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.runtime.device import CpuDevice


class ScriptedDevice(CpuDevice):
    """A cpu whose clock ticks as told: by so much at each mark."""

    def __init__(self, steps: list[float]) -> None:
        self.steps = steps
        self.now = 0.0

    def mark(self) -> float:
        self.now += self.steps.pop(0)
        return self.now


def test_medians_are_of_the_counted_rounds_alone() -> None:
    warm_split, warm_whole = [0.0, 900, 900, 900], [0.0, 900, 900]
    split = [[7.0, 10, 20, 30], [7.0, 12, 20, 33], [7.0, 11, 29, 31]]
    whole = [[7.0, 500, 40], [7.0, 500, 46], [7.0, 500, 41]]
    script = [step for part in (warm_split, *split, warm_whole, *whole) for step in part]
    device = ScriptedDevice(script)
    (stage,) = profile_stages(ModelSpec(), 1, device=device, warmup=1, repeats=3)
    assert script == []
    assert stage.forward.seconds == (10, 12, 11)
    assert stage.forward.spread == (10, 12)
    assert stage.input_backward.median == 20
    assert stage.weight_backward.median == 31
    assert stage.backward.median == 41


SHAPE = {"hidden": 8, "layers": (1, 3, 2), "sequence": 3, "dtype": "float32"}


@pytest.mark.parametrize(
    "spec",
    [
        *(ModelSpec(kind=kind, **SHAPE) for kind in ("mlp", "transformer", "llama")),  # type: ignore[arg-type]  # of several types
        ModelSpec(kind="transformer", vocabulary=5, tied=True, **SHAPE),  # type: ignore[arg-type]  # likewise
    ],
    ids=["mlp", "transformer", "llama", "words"],
)
def test_bytes_are_those_of_the_closed_form(spec: ModelSpec) -> None:
    profiles = profile_stages(spec, 3, warmup=1, repeats=1)
    spec = spec.on(3)
    for number, stage in enumerate(profiles):
        expected = footprint(spec, number, 3)
        assert stage.stage == number
        assert stage.activation_bytes == expected.activation_bytes
        assert stage.kept_for_weight_bytes == expected.weight_bytes
        assert stage.static_bytes == 2 * weight_bytes(spec, number)
        times = (stage.forward, stage.input_backward, stage.weight_backward, stage.backward)
        assert all(each.median > 0 for each in times)


def test_a_users_own_stages_are_measured() -> None:
    factory = str(Path(__file__).parents[2] / "examples" / "model" / "own_model.py") + ":build"
    profiles = profile_stages(ModelSpec(kind="own", factory=factory), 4, warmup=1, repeats=1)
    # 11 words to vectors of 12: 132 numbers of 8 bytes, and as much gradient; vectors to scores of
    # 11 words: 12 x 11 weights and 11 biases
    assert profiles[0].static_bytes == 2 * 8 * 132
    assert profiles[3].static_bytes == 2 * 8 * 143
    assert profiles[1].activation_bytes == profiles[2].activation_bytes > 0


def test_a_round_of_each_is_needed() -> None:
    with pytest.raises(ValueError, match="profile warmup must be 1 or more, got 0"):
        profile_stages(ModelSpec(), 1, warmup=0)
    with pytest.raises(ValueError, match="profile repeats must be 1 or more, got 0"):
        profile_stages(ModelSpec(), 1, repeats=0)
