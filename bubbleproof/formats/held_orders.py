"""Orders that somebody holds in a program, as a ``ScheduleFile``: what each rank does, in a list.

Taken are a list (or tuple) of lists, one a rank; a mapping from ranks to lists; a ``Program``; and
what ``read_table`` gives. An entry is an action's text (``0F0``), an ``Action``, any object whose
``str`` is such a text (torch's ``_Action``), or None for an idle step. SEND and RECV may stand in
them. Without a problem the pipeline is inferred as from a table; what only PyTorch's runtime does
(UNSHARD, RESHARD, REDUCE_GRAD) is then kept beside the program, as a table's reader keeps it.

Of torch's schedule objects (``torch.distributed.pipelining``) every class that lays out its order
before it runs keeps it for all ranks: with messages and collectives as
``pipeline_order_with_comms`` where its runtime runs that, else as ``pipeline_order``. The
single-stage classes GPipe and 1F1B run the published order, whatever the table says that newer
versions keep of them to be printed (that of 1F1B misses actions in torch 2.13); of these the ranks
and microbatches are read, and the order is the family's. Nothing of torch is imported here; an
object is known by its class's module or by these attributes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from bubbleproof.formats.action_text import known_action
from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.inference import infer_pipeline, timed
from bubbleproof.formats.pytorch_csv import CollectiveCell, TableFile, apart
from bubbleproof.formats.schedule_file import ScheduleFile
from bubbleproof.theory.families import family
from bubbleproof.theory.model.actions import COMMUNICATION_KINDS, Action
from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.model.schedule import Program, Schedule
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.communication.matching import compute_part

Cells = tuple[CollectiveCell, ...]


def is_orders(value: object) -> bool:
    """Whether this is one of the forms that ``orders_file`` takes."""
    if isinstance(value, Program | TableFile):
        return True
    if isinstance(value, Schedule):
        return False
    rows = value.values() if isinstance(value, Mapping) else value
    if isinstance(rows, str) or not isinstance(rows, Collection) or len(rows) == 0:
        return False
    return all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows)


def orders_file(
    value: object,
    *,
    problem: Problem | None = None,
    pipeline: Pipeline | None = None,
    name: str = "",
) -> ScheduleFile:
    """The schedule of orders, each action as early as it can be; on a problem where one is given.

    Raises ``UnusableInput`` naming rank and action for what is no action, and where no pipeline has
    the orders' shape. Precondition: ``is_orders(value)``.
    """
    program, cells = _program(value, problem)
    if problem is None:
        has_messages = program.actions.is_kind(*COMMUNICATION_KINDS).any()
        pipeline = infer_pipeline(compute_part(program) if has_messages else program)
        problem = pipeline.problem()
    found = ScheduleFile(
        problem=problem,
        program=program,
        pipeline=pipeline,
        name=name,
        collectives=None if isinstance(value, Program) else cells,
    )
    return timed(found)


def _program(value: object, problem: Problem | None) -> tuple[Program, Cells]:
    if isinstance(value, TableFile):
        return value.program, value.collectives
    if isinstance(value, Program):
        return value, ()
    orders = [[a for a in row if a is not None] for row in _actions(value)]
    return apart(orders, problem)


def _actions(value: object) -> list[list[Action | None]]:
    """The actions of each rank; of a mapping by its keys, which must be the ranks 0, 1, ..."""
    if isinstance(value, Mapping):
        if set(value) != set(range(len(value))):
            keys = " ".join(map(str, list(value)[:8]))
            raise UnusableInput("", f"the ranks 0 to {len(value) - 1} as keys", quoted(keys))
        value = [value[rank] for rank in range(len(value))]
    if not isinstance(value, Iterable):
        raise UnusableInput("", "the actions of each rank", quoted(type(value).__name__))
    return [
        [_action(entry, rank, place) for place, entry in enumerate(row)]
        for rank, row in enumerate(value)
    ]


def _action(entry: object, rank: int, place: int) -> Action | None:
    if entry is None or isinstance(entry, Action):
        return entry
    text = str(entry).strip()
    found = known_action(text) if text else None
    if found is None and text:
        expected = "an action such as 0F0, its text or None"
        raise UnusableInput(f"rank {rank}, entry {place}", expected, quoted(text))
    return found


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
