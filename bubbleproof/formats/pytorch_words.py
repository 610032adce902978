"""What is said of PyTorch tables: which runtime takes one as it stands, and what it is given as."""

from __future__ import annotations

from bubbleproof.formats import ScheduleFile
from bubbleproof.theory.model.actions import Kind
from bubbleproof.theory.pipelines.programs.pytorch_runtime import (
    NEWEST,
    REDUCES_SINCE,
    Version,
    lacks,
    like,
    runs_on,
    shown,
    torch_version,
)

COMPUTE_ONLY = (
    "computations alone, for any torch: _PipelineScheduleRuntime's "
    '_load_csv(FILE, format="compute_only") adds SEND, RECV, UNSHARD, RESHARD and REDUCE_GRAD; for '
    "torchtitan (pipeline_parallel_schedule_csv, scale_grads=False there) and NeMo-Automodel "
    "(pp_schedule_csv), which read no other form"
)


def chosen_version(asked: str | None) -> Version:
    """The version of torch asked for; else the installed one, where its tables are known.

    Raises ``ValueError`` for a version whose tables are not.
    """
    if asked is not None:
        return torch_version(asked)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return torch_version(version("torch"))
    except (PackageNotFoundError, ValueError):
        return NEWEST


def handed_to(version: Version, *, communication: bool) -> str:
    """Which runtime takes a table that was written, and how."""
    if not communication:
        return COMPUTE_ONLY
    return (
        f"with messages, for torch {like(version)} alone: _PipelineScheduleRuntime's "
        '_load_csv(FILE, format="compute_comms") runs it as it stands; not for torchtitan or '
        "NeMo-Automodel"
    )


def told_of(given: ScheduleFile) -> str:
    """Which versions of PyTorch's runtime have all they need in a table with messages."""
    table = given.table
    if table is None:
        return ""
    if not (versions := runs_on(table)):
        why = ", ".join(lacks(table, NEWEST))
        return (
            f"PyTorch's runtime takes this table as it stands on no torch: on {shown(NEWEST)} {why}"
        )
    sentence = f"PyTorch's runtime takes this table as it stands on torch {' and '.join(versions)}"
    if table.actions.is_kind(Kind.REDUCE_GRAD).any():
        return sentence
    return (
        f"{sentence}; without REDUCE_GRAD {shown(REDUCES_SINCE)} and newer neither divide its "
        "gradients by the microbatches nor reduce them (convert --communication writes it)"
    )
