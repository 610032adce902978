"""What PyTorch's pipeline runtime is told besides computations and messages, by version of torch.

``_PipelineScheduleRuntime`` takes a table in two forms. To computations alone (``compute_only``) it
adds all else itself. One with messages (``compute_comms``) is run as it stands, so that what the
runtime needs has to be in it:

``REDUCE_GRAD``
    from 2.10 on, behind the last B or W of each stage: nowhere else are gradients divided by the
    number of microbatches (``scale_grads=True``, the default) and reduced over the replicas of FSDP
    and DDP. Before, the last backward of a stage did that, from 2.7 on (2.6 divides nothing), but
    only a B divides: where a stage ends with a W its gradients stay m times too large.
``WAIT_REDUCE_GRAD``
    from 2.15 on, behind each REDUCE_GRAD and before its rank's next one.
``WAIT_SEND_F``, ``WAIT_SEND_B``
    from 2.15 on, one for each SEND, behind it; the runtime keeps what is sent until then. Before
    that it waits for all SENDs as a step ends.
``UNSHARD``, ``RESHARD``
    where FSDP shards a stage: around what computes with it, by turns (``pytorch_shards``).
``OVERLAP_F_B``
    from 2.9 on.

All differences between versions are told here: read from the sources of torch 2.6.0 to 2.15.0
(``docs/measured/pytorch-versions.md`` is made from them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bubbleproof.theory.model.actions import Action, Kind
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.programs.messages import as_kind, parts_of

Version = tuple[int, int]

OLDEST, NEWEST = (2, 6), (2, 15)
SCALES_SINCE = (2, 7)  # ``scale_grads``; before, the ranks of stages are an argument instead
OUTPUTS_SINCE = (2, 10)  # ``step(return_outputs=...)``
REDUCES_SINCE, WAITS_SINCE = (2, 10), (2, 15)
SINCE: dict[Kind, Version] = {
    **dict.fromkeys((Kind.F, Kind.B, Kind.I, Kind.W, Kind.UNSHARD, Kind.RESHARD), OLDEST),
    **dict.fromkeys((Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B), OLDEST),
    Kind.OVERLAP_F_B: (2, 9),
    Kind.REDUCE_GRAD: REDUCES_SINCE,
    **dict.fromkeys((Kind.WAIT_SEND_F, Kind.WAIT_SEND_B, Kind.WAIT_REDUCE_GRAD), WAITS_SINCE),
}
WAIT_OF = {Kind.SEND_F: Kind.WAIT_SEND_F, Kind.SEND_B: Kind.WAIT_SEND_B}
_MESSAGES = (*WAIT_OF, Kind.RECV_F, Kind.RECV_B)
_LAST = (Kind.B, Kind.W)  # what a stage's gradient is complete after


def torch_version(text: str) -> Version:
    """The version that ``text`` names (``2.13``, ``2.13.0+cpu``).

    Raises ``ValueError`` for what is none, and for one that was not looked at.

    Parameters
    ----------
    text
        A version as torch tells its own, or the first two numbers of it.

    Returns
    -------
    Version
        Major and minor number.

    Examples
    --------
    >>> torch_version("2.13.0+cpu")
    (2, 13)
    """
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", text, re.ASCII)
    found = (int(match[1]), int(match[2])) if match else None
    if found is None or not OLDEST <= found <= NEWEST:
        raise ValueError(
            f"a version of torch must be {shown(OLDEST)} to {shown(NEWEST)} (their tables are "
            f"known), got {text[:60]!r}"
        )
    return found


def shown(version: Version) -> str:
    """The version as people write it."""
    return ".".join(map(str, version))


def like(version: Version) -> str:
    """The versions whose tables with messages are written alike: ``2.10 to 2.14``."""
    changes = sorted({OLDEST, *SINCE.values()})
    first = max(change for change in changes if change <= version)
    later = [change for change in changes if change > version]
    last = (later[0][0], later[0][1] - 1) if later else NEWEST
    return shown(first) if first == last else f"{shown(first)} to {shown(last)}"


def completed(program: Program, version: Version) -> Program:
    """A lowered program with what a version's runtime needs, less what it has no words for.

    What the program has of a kind stays where it stands. Preconditions: its rows are messages and
    collectives of ranks, and computations that the version knows.
    """
    ranks = int(program.resource.max(initial=-1)) + 1
    return Program.from_orders([_completed(order, version) for order in program.orders(ranks)])


def _completed(order: Sequence[Action], version: Version) -> list[Action]:
    known = [action for action in order if SINCE.get(action.kind, OLDEST) <= version]
    if version >= REDUCES_SINCE:
        known = _reducing(known)
    if version >= WAITS_SINCE:
        known = _waiting_for_reductions(_waiting_for_sends(known))
    return known


def _reducing(order: list[Action]) -> list[Action]:
    """A REDUCE_GRAD for each stage that has none: behind its last backward and what that sends."""
    there = {action.stage for action in order if action.kind is Kind.REDUCE_GRAD}
    last = {part.stage: i for i, action in enumerate(order) for part in _ends(action)}
    due: dict[int, list[Action]] = {}
    for stage, i in last.items():
        if stage not in there:
            while i + 1 < len(order) and order[i + 1].kind in _MESSAGES:
                i += 1
            due.setdefault(i, []).append(Action(stage=stage, kind=Kind.REDUCE_GRAD))
    return [one for i, action in enumerate(order) for one in (action, *due.get(i, ()))]


def _ends(action: Action) -> Iterable[Action]:
    return (part for part in parts_of(action) if part.kind in _LAST)


def _waiting_for_sends(order: list[Action]) -> list[Action]:
    """A wait for each SEND, unless there are waits: of SEND_F behind its stage's backward.

    That backward shows that the message has been received; all others stand at the end.
    """
    if any(action.kind in WAIT_OF.values() for action in order):
        return order
    found: list[Action] = []
    open_: dict[Action, Action] = {}
    for action in order:
        found.append(action)
        if action.kind in WAIT_OF:
            open_[action] = as_kind(action, WAIT_OF[action.kind])
        for part in parts_of(action):
            if part.kind in (Kind.B, Kind.I):
                found += filter(None, [open_.pop(as_kind(part, Kind.SEND_F), None)])
    return [*found, *open_.values()]


def _waiting_for_reductions(order: list[Action]) -> list[Action]:
    """A wait behind each REDUCE_GRAD whose stage has none."""
    there = {action.stage for action in order if action.kind is Kind.WAIT_REDUCE_GRAD}
    found: list[Action] = []
    for action in order:
        found.append(action)
        if action.kind is Kind.REDUCE_GRAD and action.stage not in there:
            found.append(Action(stage=action.stage, kind=Kind.WAIT_REDUCE_GRAD))
    return found


def lacks(program: Program, version: Version) -> tuple[str, ...]:
    """What a table with messages has too much or too little for a version, one phrase each."""
    newer = {a.kind for a in program.actions if SINCE.get(a.kind, version) > version}
    found = [f"{kind.name} is not known" for kind in sorted(newer)]
    known = program.take(~program.actions.is_kind(*newer))
    added = [a for a in completed(known, version).actions if a not in {*known.actions}]
    found += [f"{kind.name} is missing" for kind in sorted({action.kind for action in added})]
    return tuple(found)


def runs_on(program: Program) -> tuple[str, ...]:
    """The versions, as ``like`` says them, whose runtime has all it needs in such a table."""
    changes = sorted({OLDEST, *SINCE.values()})
    return tuple(like(version) for version in changes if not lacks(program, version))
