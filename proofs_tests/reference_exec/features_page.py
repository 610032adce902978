"""The features of real models, each replayed or refused by name: a page.

    python -m proofs_tests.reference_exec.features_page --write docs/measured/features.md

The features are those that users' models have and a replay may not. Each is a model of two stages
of four units, on zb-h1 with two ranks and three microbatches.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.plans.training import LossScale, Training
from proofs_tests.reference_exec.cases import family_case, own, run

NO_OPTION = "no option of a replay says it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature, and the module and factory of a model that has it; none where there is no way."""

    name: str
    module: str = "feature_models"
    factory: str = ""
    dtype: str = "float64"
    clip: float | None = None
    accumulate: int = 1
    loss_scale: LossScale | None = None

    @property
    def spec(self) -> ModelSpec:
        return own(self.factory, self.module, self.dtype)

    def outcome(self) -> str:
        """``works``, ``refused: why``, or what is ``violated``."""
        if not self.factory:
            return f"missing: {NO_OPTION}"
        training = Training(
            optimizer="adam",
            steps=2,
            has_barrier=self.clip is not None or self.loss_scale is not None,
            clip=self.clip,
            accumulate=self.accumulate,
            loss_scale=self.loss_scale,
        )
        try:
            report = run(family_case("zb-h1", p=2, m=3), self.spec, training=training)
        except (ValueError, RuntimeError) as error:
            return f"refused: {str(error).splitlines()[0]}"
        if report.ok:
            peaks = " ".join(map(str, report.peak_bytes.measured))
            return f"works: gradients equal, peaks {peaks} bytes as predicted"
        are_equal = report.gradients_equal and report.losses_equal and report.weights_equal
        if are_equal and report.data_dependence:
            return f"said by name: gradients and weights equal; {report.data_dependence}"
        bits = "equal" if are_equal else "different"
        return f"violated, gradients {bits}: {report.failures[0]}"


def _feature(
    name: str,
    factory: str = "",
    module: str = "feature_models",
    *,
    dtype: str = "float64",
    clip: float | None = None,
    accumulate: int = 1,
    loss_scale: LossScale | None = None,
) -> Feature:
    return Feature(
        name=name,
        factory=factory,
        module=module,
        dtype=dtype,
        clip=clip,
        accumulate=accumulate,
        loss_scale=loss_scale,
    )


FEATURES = (
    _feature("dropout", "dropped", "drawing_models"),
    _feature("bfloat16", "bare", dtype="bfloat16"),
    _feature("autocast in a stage", "autocasts", dtype="float32"),
    _feature("bfloat16 inside, float32 between", "casts", dtype="float32"),
    _feature("tied weights across stages", "tied"),
    _feature("several tensors out of a stage", "several"),
    _feature("integers between stages", "integers"),
    _feature("masks and other arguments of a stage", "needs_mask"),
    _feature("frozen parameters", "adapted", "frozen_models"),
    _feature("LoRA by peft", "lora"),
    _feature("frozen first stage", "first", "frozen_models"),
    _feature("BatchNorm", "batch_norm"),
    _feature("spectral norm", "spectral"),
    _feature("auxiliary loss by an autograd function", "auxiliaries"),
    _feature("checkpoint inside a stage", "checkpoints"),
    _feature("torch.compile'd stage", "compiled"),
    _feature("collectives inside a stage (DDP, FSDP, DTensor)", "groups"),
    _feature("scaled dot product attention", "attentions"),
    _feature("gradient clipping by global norm", "bare", clip=0.05),
    _feature("gradient accumulation over passes", "bare", accumulate=3),
    _feature(
        "float16 with loss scaling", "bare", dtype="float16", loss_scale=LossScale(value=1024.0)
    ),
    _feature("shapes that differ by microbatch", "shapes"),
    _feature("loss by the items of a microbatch", "items"),
    _feature("stage without parameters", "parameter_free"),
    _feature("stage without parameters, first", "bare_first", "frozen_models"),
    _feature("writes into its input", "in_place"),
    _feature("views, a linear called twice", "views"),
    _feature("sparse gradients of an embedding", "sparse", "awkward_models"),
    _feature("hook of a weight", "doubling", "awkward_models"),
    _feature("hook after a gradient is added", "watching", "awkward_models"),
    _feature("isinstance(nn.Linear)", "asserting", "awkward_models"),
    _feature("NaN in a stage", "not_a_number"),
    _feature("bytes that depend on data", "routes"),
    _feature("skip connection in one tensor", "skips"),
)


def page() -> str:
    """The page: one row per feature."""
    found = [(feature.name, feature.outcome()) for feature in FEATURES]
    works = sum(outcome.startswith("works") for _, outcome in found)
    refused = sum(outcome.startswith("refused") for _, outcome in found)
    said = sum(outcome.startswith("said") for _, outcome in found)
    others = len(found) - works - refused - said
    rows = [f"| {name} | {outcome.replace('|', '/')} |" for name, outcome in found]
    head = [
        "# Features of real models",
        "",
        "Generated by `python -m proofs_tests.reference_exec.features_page --write "
        "docs/measured/features.md`; not edited.",
        "",
        f"{len(found)} features: {works} work, {refused} are refused by name, of {said} the limit "
        f"is said by name (status 1), {others} neither.",
        "",
        "| feature | a replay (zb-h1, two ranks, three microbatches, two steps of Adam) |",
        "| --- | --- |",
    ]
    return "\n".join([*head, *rows, ""])


def main() -> None:
    """Print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    target = parser.parse_args().write
    if target is None:
        sys.stdout.write(page())
    else:
        target.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
