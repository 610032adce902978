"""torch's schedule objects (``torch.distributed.pipelining``), read in process as orders per rank.

Every class that lays out its order before it runs keeps it for all ranks: with messages and
collectives as ``pipeline_order_with_comms`` where its runtime runs that, else as
``pipeline_order``. The single-stage classes GPipe and 1F1B run the published order, whatever the
table says that newer versions keep of them to be printed (that of 1F1B misses actions in torch
2.13); of these the ranks and microbatches are read, and the order is the family's. Nothing of torch
is imported here; an object is known by its class's module or by these attributes.
"""

from __future__ import annotations

from collections.abc import Mapping

from bubbleproof.formats.errors import UnusableInput
from bubbleproof.formats.held.held_orders import orders_file
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.families import family
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline

MODULE = "torch.distributed.pipelining"
ORDERS = ("pipeline_order_with_comms", "pipeline_order")
BY_CLASS = {"ScheduleGPipe": "gpipe", "Schedule1F1B": "1f1b"}


def is_torch_schedule(value: object) -> bool:
    """Whether this is a schedule object of torch, or looks like one."""
    if isinstance(value, type):
        return False
    modules = [str(getattr(each, "__module__", "")) for each in type(value).__mro__]
    is_theirs = any(m.startswith(MODULE) for m in modules) and hasattr(value, "_n_microbatches")
    return is_theirs or hasattr(value, "pipeline_order")


def torch_schedule_file(
    value: object, *, problem: Problem | None = None, pipeline: Pipeline | None = None
) -> ScheduleFile:
    """The schedule that an object of torch runs, on a problem where one is given.

    Raises ``UnusableInput`` for a class that keeps no order (forward only), and as ``orders_file``.
    """
    name = type(value).__name__
    sizes = [getattr(value, key, None) for key in ("_num_stages", "_n_microbatches")]
    p, m = sizes
    if name in BY_CLASS and isinstance(p, int) and isinstance(m, int):
        program = family(BY_CLASS[name])(p=p, m=m).schedule.program
        return orders_file(program, problem=problem, pipeline=pipeline, name=name)
    for attribute in ORDERS:
        order = getattr(value, attribute, None)
        if isinstance(order, Mapping) and order:
            return orders_file(dict(order), problem=problem, pipeline=pipeline, name=name)
    raise UnusableInput("", "a schedule that keeps its order (pipeline_order)", "none", name)
