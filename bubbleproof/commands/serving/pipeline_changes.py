"""Numbers of a pipeline that the page of ``serve`` changes: its shape, its ticks, its links, caps.

A number that differs between stages is shown and taken as a list, one for each stage; one that is
the same for all goes along where the shape changes. Numbers per slice stay as they are.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from pydantic import Field

from bubbleproof.formats.validation import Count, Layout, Natural
from bubbleproof.theory.pipelines.limits import require_size
from bubbleproof.theory.pipelines.pipeline import Pipeline

MOST_ACTIONS = 200_000  # of a shape that is judged while somebody waits: some seconds
MOST_STAGES = 4096
SHAPE = {
    "ranks": "num_ranks",
    "microbatches": "num_microbatches",
    "chunks": "num_chunks",
}
_WHOLE = {"forward": "forward", "backward": "backward"}
_SPLIT = {"forward": "forward", "input": "input_backward", "weight": "weight_backward"}
_TICKS = _WHOLE | _SPLIT
_PerStage = Natural | Annotated[list[Natural], Field(max_length=MOST_STAGES)]


class ChangesLayout(Layout):
    """What is changed of a pipeline; null for what stays."""

    ranks: Count | None = None
    microbatches: Count | None = None
    chunks: Count | None = None
    forward: _PerStage | None = None
    backward: _PerStage | None = None
    input: _PerStage | None = None
    weight: _PerStage | None = None
    latency: Natural | None = None

    @property
    def given(self) -> dict[str, int | list[int]]:
        """The changes by name."""
        return {name: value for name, value in self if value is not None}

    @property
    def of_shape(self) -> list[str]:
        """The names of those that ask for other orders."""
        return [name for name in self.given if name in SHAPE]


def numbers(pipeline: Pipeline, *, with_shape: bool) -> dict[str, str]:
    """What the page shows of a pipeline and lets one change, as text by name.

    The shape is there where other orders can be had, ``with_shape``.
    """
    shown = {name: str(getattr(pipeline, key)) for name, key in SHAPE.items() if with_shape}
    for name, key in (_SPLIT if pipeline.split_backward else _WHOLE).items():
        value = getattr(pipeline, key)
        if not any(isinstance(row, tuple) for row in value):
            words = [str(ticks) for ticks in value]
            shown[name] = words[0] if len(set(words)) == 1 else ",".join(words)
    return {**shown, "latency": str(pipeline.latency)}


def changed(pipeline: Pipeline, changes: ChangesLayout) -> Pipeline:
    """The pipeline with the changes.

    Raises ``ValueError`` in one line where they do not fit together, or make it too large for a
    page that answers at once.
    """
    keys = {**SHAPE, **_TICKS}
    given = {keys.get(name, name): value for name, value in changes.given.items()}
    if not changes.of_shape:
        return pipeline.with_changes(**given)
    _require_small(pipeline, changes)
    return pipeline.with_changes(**{**_alike(pipeline), **given})


def _require_small(pipeline: Pipeline, changes: ChangesLayout) -> None:
    shape = {
        "ranks": changes.ranks or pipeline.num_ranks,
        "microbatches": changes.microbatches or pipeline.num_microbatches,
        "chunks": changes.chunks or pipeline.num_chunks,
        "slices": pipeline.num_slices,
    }
    require_size(**shape)
    require_shown(2 * shape["ranks"] * shape["microbatches"] * shape["chunks"] * shape["slices"])


def require_shown(actions: int) -> None:
    """Raise ``ValueError`` for more actions than a page that answers at once takes."""
    if actions > MOST_ACTIONS:
        raise ValueError(
            f"a page that answers at once takes {MOST_ACTIONS:,} actions at most, got "
            f"{actions:,}; show draws larger ones"
        )


def _alike(pipeline: Pipeline) -> dict[str, object]:
    """The numbers that are the same for all stages or ranks, each once."""
    found: dict[str, object] = {}
    for field in fields(pipeline):
        value = getattr(pipeline, field.name)
        if field.name != "links" and isinstance(value, tuple) and len(set(value)) == 1:
            found[field.name] = value[0]
    return found
